"""The parameter server: tables, vocabulary, clocks, recovery, the Arrow Flight service."""
