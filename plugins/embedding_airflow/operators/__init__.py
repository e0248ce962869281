"""One operator a file: what a DAG's tasks do."""
