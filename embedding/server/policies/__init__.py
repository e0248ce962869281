"""Consistency policies: when a delta reaches the tables and when a node may read them.

Each is a pure function of the board (who is at which clock, what is held back), so that all are
tested alike on generated orders of events. `traits.POLICIES` knows them by name.
"""
