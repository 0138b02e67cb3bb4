"""Tests of what runs tell about themselves."""
