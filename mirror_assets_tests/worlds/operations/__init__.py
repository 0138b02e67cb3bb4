"""Every operation on Delta tables that differ in their features: what lands, and that mirror and source stay equal."""
