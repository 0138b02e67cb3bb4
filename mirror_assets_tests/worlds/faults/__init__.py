"""Proof (b): whatever happens to whichever request of a publisher on the loopback OneLake, all lands exactly once."""
