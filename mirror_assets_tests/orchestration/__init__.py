"""Tests of sensors, jobs and names."""
