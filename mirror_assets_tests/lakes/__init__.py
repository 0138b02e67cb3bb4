"""Tests of mirror_assets.lakes."""
