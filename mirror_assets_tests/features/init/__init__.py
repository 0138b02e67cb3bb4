"""`init`: what it finds, proposes and writes."""
