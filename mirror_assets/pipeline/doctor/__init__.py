"""Asks each source, through both readers, whether it can be mirrored, and says what to do where it can't."""
