"""What only the JVM of a classic session offers: Spark's analysis of expressions."""
