"""Tests of the predictions of VACUUM."""
