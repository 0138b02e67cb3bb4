"""Gives each table's pool its limit of one, explicitly: a default alone lets the first queue pass of a pool through."""

from __future__ import annotations

import dagster as dg

from mirror_assets.automation.names import pool_name
from mirror_assets.config import Config, load_config


def set_pools(config: Config, instance: dg.DagsterInstance) -> None:
    """One run at a time for every table; saves wasted work, safety never rests on it."""
    for table in config.all_tables():
        instance.event_log_storage.set_concurrency_slots(pool_name(table.name), 1)


if __name__ == "__main__":
    with dg.DagsterInstance.get() as opened:
        set_pools(load_config(), opened)
