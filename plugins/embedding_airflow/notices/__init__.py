"""Notices of reports and of runs that are late: what they say, and how they are sent."""
