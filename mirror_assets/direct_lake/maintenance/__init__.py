"""Plan a table's maintenance for Direct Lake: statements, reasons and predicted effects, from the log alone."""
