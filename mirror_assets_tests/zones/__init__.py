"""Tests of the store interface: one contract for every store, and what is special about each."""
