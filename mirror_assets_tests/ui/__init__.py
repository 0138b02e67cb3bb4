"""Dagster's pages in a real browser, on the processes that `make dev` starts (`make ui`)."""
