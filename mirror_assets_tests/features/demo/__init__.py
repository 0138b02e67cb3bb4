"""Tests of mirror_assets.features.demo."""
