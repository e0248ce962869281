"""Every question about a store of snapshots, answered once; pages, commands and programs show."""
