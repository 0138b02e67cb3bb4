"""Tests of the target side: names, control files, and publication exactly once under faults and races."""
