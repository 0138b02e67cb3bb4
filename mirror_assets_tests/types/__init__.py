"""Every type and name of a column, from the source to the mirror."""
