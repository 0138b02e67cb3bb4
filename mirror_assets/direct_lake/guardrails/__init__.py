"""Whether a model fits into a capacity: Direct Lake's limits per SKU against what its tables measure."""
