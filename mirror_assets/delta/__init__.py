"""The source side: read a Delta table's log, plan slices, encode them with Spark."""
