"""Lists the tables of a place and stores the result in a file; decides nothing."""
