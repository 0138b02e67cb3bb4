"""The asset checks of Direct Lake, and the job that maintains tables."""
