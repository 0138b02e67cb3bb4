"""Tests of the replay of logs."""
