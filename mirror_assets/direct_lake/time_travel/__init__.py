"""A table as it was: versions and times, how paths and statements name them, and which version a time means."""
