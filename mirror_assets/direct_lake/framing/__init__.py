"""What Direct Lake keeps, and what it must load, when it is framed anew: from the log alone."""
