"""Nodes that train in memory which they share with the server: on its host, or on its GPU."""
