"""Sensors and jobs: when things happen."""
