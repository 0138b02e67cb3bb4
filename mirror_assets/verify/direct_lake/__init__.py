"""What reports of Direct Lake mean for a table that a model reads, or may read: an error, a warning, or a note."""
