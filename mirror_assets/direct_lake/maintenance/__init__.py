"""A plan to keep a table ready for Direct Lake: statements, why, and what they will do, foretold from the log alone."""
