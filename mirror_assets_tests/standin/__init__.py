"""Tests of the local replicator and of reconcile."""
