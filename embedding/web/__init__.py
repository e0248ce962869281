"""The trends page: a FastAPI application with its own static files."""
