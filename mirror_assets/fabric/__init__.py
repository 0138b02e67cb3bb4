"""Fabric's REST API: creates and starts a mirrored database, and reads its state."""
