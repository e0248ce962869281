"""Server groups: each a parameter server with a replica of all rows; one of them leads (ADR 15)."""
