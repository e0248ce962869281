"""Nothing acknowledged is lost: checkpoints, journal, sequence numbers."""
