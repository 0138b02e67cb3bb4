"""A loopback of Fabric's REST interface for mirrored databases, and tests through Microsoft's real client."""
