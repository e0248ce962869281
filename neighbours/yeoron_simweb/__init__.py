"""A simulated web for demos and tests: plays a dated corpus as news, board and comments."""
