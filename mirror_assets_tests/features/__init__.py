"""Tests of the features, in folders of the same names."""
