"""What Yeoron found, as files for other programs: Parquet, CSV, JSON-LD, GEXF."""
