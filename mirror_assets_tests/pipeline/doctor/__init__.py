"""Tests of the doctor's questions and answers."""
