"""Where tables are kept, SQLite in the home or PostgreSQL; and moving them to the other."""
