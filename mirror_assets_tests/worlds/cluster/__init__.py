"""The same jobs on a Spark cluster of several processes."""
