"""The histories of the demo's tables, one file per table; each file says why its key is the key."""
