"""Tests of the room history."""
