"""Proofs of `deploy/` and docs/production.md: valid files, a restored landing zone, and services under a supervisor."""
