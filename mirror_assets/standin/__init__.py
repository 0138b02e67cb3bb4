"""The local stand-in for Fabric's replicator: it applies landing files to Delta tables, by Microsoft's rules."""
