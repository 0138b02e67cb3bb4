"""Partitions, sensors, jobs and schedules: when things happen."""
