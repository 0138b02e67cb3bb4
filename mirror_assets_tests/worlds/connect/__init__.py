"""A Spark Connect server on this machine, and a way to it that drops connections."""
