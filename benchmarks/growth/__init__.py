"""Growth with size: each size in a process of its own, on synthetic tables."""
