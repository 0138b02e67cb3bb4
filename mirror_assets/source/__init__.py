"""The source tables: their Delta logs, read without Spark, and the plan that follows from a log."""
