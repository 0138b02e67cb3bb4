"""Tests of mirror_assets.storage.lake."""
