"""The survey of a lake, keys, and the draft of mirror.yaml: what may open a Spark session."""
