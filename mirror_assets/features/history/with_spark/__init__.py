"""What reads a source with Spark and appends to its history."""
