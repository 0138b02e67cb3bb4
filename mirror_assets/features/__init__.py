"""What the core does without: each folder is a feature with one entry point, and the core imports none of them."""
