"""The asset check of what the SQL endpoint shows."""
