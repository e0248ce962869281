"""What a server says of itself: status, metrics, health."""
