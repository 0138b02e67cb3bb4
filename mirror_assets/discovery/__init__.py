"""The tables below a place: found by listing, and cached in a file. Decides nothing."""
