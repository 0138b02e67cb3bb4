"""Report how Direct Lake reads a Delta table: guardrails, layout, columns, framing, VACUUM and maintenance.

Nothing else imports this package but the entry points: `commands.py` (the command line), `asset_checks.py` (Dagster's
asset checks) and `maintenance_job.py` (the job `maintenance`). The other modules start neither Spark nor Dagster.
"""
