"""All that there is to say of a table, in one value: what the command line, the checks and the notebook show."""
