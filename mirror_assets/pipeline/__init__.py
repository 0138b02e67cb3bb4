"""One table's way from the source's log to landing files: plan, stage, check, land, rebuild. No Dagster."""
