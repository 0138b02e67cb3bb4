"""Proof (e): `mirror-assets run` processes, killed with their Spark anywhere, land everything exactly once."""
