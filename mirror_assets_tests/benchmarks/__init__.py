"""The arithmetic of the benchmarks: no test measures time."""
