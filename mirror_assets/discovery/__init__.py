"""Which tables lie below a place: found by listing, remembered in a file, never decided upon here."""
