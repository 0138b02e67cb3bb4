"""A local Fabric: its REST API for mirrored databases, over TLS."""
