"""What the DAGs write to MLflow: runs of snapshots and of trainings, and registered models."""
