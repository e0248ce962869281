"""The commands of `yeoron`, a file for each group; `embedding.cli` puts them together."""
