"""Asset checks: thin around the audits, so that UI, command line and CI say the same."""
