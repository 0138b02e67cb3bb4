"""Faults planted under a real daemon: who is told, when, by which words, and how it ends (`make planted`)."""
