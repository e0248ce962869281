"""What changed between snapshots: shift, emergence, significance, history, report."""
