"""Where tables lie: SQLite in the home, or PostgreSQL; and moving them from one to the other."""
