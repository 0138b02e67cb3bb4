"""How a table lies in its files, and what of that makes Direct Lake slow."""
