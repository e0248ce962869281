"""How rows and deltas travel: wire format, client, compression."""
