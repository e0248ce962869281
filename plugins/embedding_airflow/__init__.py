"""Yeoron's Airflow side: operators, sensors, triggers, links, assets."""
