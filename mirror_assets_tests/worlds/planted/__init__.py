"""Faults planted under a real daemon: which messages arrive, when, and how it ends (`make planted`)."""
