"""The asset, the job and the check of histories, and what they open."""
