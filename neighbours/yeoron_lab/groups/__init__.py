"""Server groups: parameter servers with a replica of all rows each (SINGA, Ooi 2015;
docs/adr/0015-server-groups.md)."""
