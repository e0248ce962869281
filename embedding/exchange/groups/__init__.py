"""What server groups say to each other (ADR 15)."""
