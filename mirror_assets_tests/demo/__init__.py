"""Tests of mirror_assets.demo."""
