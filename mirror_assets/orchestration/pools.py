"""Set the limit of each table's pool to one run. Dagster's default limit doesn't hold for a pool's first runs."""

from __future__ import annotations

import sys

import dagster as dg

from mirror_assets.config import Config, load_config
from mirror_assets.errors import MirrorError
from mirror_assets.orchestration.asset_names import history_pool, pool_name


def set_pools(config: Config, instance: dg.DagsterInstance) -> None:
    """Limit every table to one run at a time, which saves wasted work; correctness does not depend on it."""
    for table in config.all_tables():
        instance.event_log_storage.set_concurrency_slots(pool_name(table.name), 1)
        if table.keeps_history:
            instance.event_log_storage.set_concurrency_slots(history_pool(table.name), 1)


def main() -> None:
    """Set the pools of all tables in the instance of DAGSTER_HOME; exit with the error if mirror.yaml is invalid."""
    try:
        config = load_config()
    except MirrorError as error:
        sys.exit(f"error: {error}")
    with dg.DagsterInstance.get() as opened:
        set_pools(config, opened)


if __name__ == "__main__":
    main()
