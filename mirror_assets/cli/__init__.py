"""The command line: thin, on the same definitions as the Dagster UI. Exit codes: 0 fine, 1 failed, 2 bad setting."""

from mirror_assets.cli.main import main

__all__ = ["main"]
