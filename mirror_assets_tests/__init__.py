"""Tests of mirror_assets, laid out as the package is."""
