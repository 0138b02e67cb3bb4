"""The questions that concern the mirror as a whole: whether its tables are found, and Fabric's limits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

from mirror_assets.config.discovered import RuleOutcome
from mirror_assets.config.model import Config
from mirror_assets.errors import MirrorError
from mirror_assets.landing.cost import daily_bytes
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.daemon_pool import DaemonPool
from mirror_assets.pipeline.doctor.answers import DoctorAnswer, no, ok, warn
from mirror_assets.zones import Store

FOUND = "does `discover` find its tables?"
LIMITS = "is the mirror within Fabric's limits?"
# Of a mirrored database, and Microsoft's advice about keys (reference `landing-zone` §4.20, §4.37).
_MOST_TABLES, _MOST_DAILY_BYTES, _MANY_KEYS = 1_000, 1e12, 5
_TABLES_AT_ONCE = 8


def examine_mirror(config: Config, store: Store, contexts: Sequence[TableContext]) -> Iterator[DoctorAnswer]:
    """Yield an answer for each rule of `discover`, and one about Fabric's limits, with what lands of these tables."""
    for rule in config.discovered.rules:
        yield _discovered(rule).about(rule.place, FOUND)
    pool = DaemonPool("doctor", _TABLES_AT_ONCE)
    landing = [pool.submit(partial(_daily_bytes, context)) for context in contexts]
    yield within_limits(config, sum(one.result() for one in landing)).about(store.root, LIMITS)


def _discovered(rule: RuleOutcome) -> DoctorAnswer:
    if rule.trouble:
        words, _, next_step = rule.trouble.partition(" Next: ")
        return no(words, next_step)
    if not rule.is_well:
        return no("no table is there", "correct `from`, or write the tables first.")
    return ok(f"{rule.tables:,} tables are there, and {rule.mirrored:,} of them are mirrored")


def within_limits(config: Config, day_bytes: float) -> DoctorAnswer:
    """Return a warning for each limit that the mirror exceeds, if `day_bytes` land in a day."""
    tables, day = config.all_tables(), f"about {day_bytes / 1e9:,.1f} GB of changes a day"
    many_keys = [str(table.name) for table in tables if len(table.keys) >= _MANY_KEYS]
    problems = list[str]()
    if len(tables) > _MOST_TABLES:
        problems.append(f"{len(tables):,} tables, and Fabric mirrors at most {_MOST_TABLES:,}")
    if day_bytes > _MOST_DAILY_BYTES:
        problems.append(f"{day}, and Fabric slows down after 1 TB")
    next_step = (
        "divide the tables between several mirrored databases, each with its own mirror.yaml." if problems else ""
    )
    if many_keys:
        named = ", ".join(many_keys[:3]) + (", …" if len(many_keys) > 3 else "")
        problems.append(f"Fabric advises fewer than {_MANY_KEYS} key columns, and {named} has as many or more")
        next_step = f"{next_step} Mirror a shorter key if the source has one.".strip()
    if problems:
        return warn("; ".join(problems), next_step)
    return ok(f"{len(tables):,} of {_MOST_TABLES:,} tables, {day} of 1 TB, fewer than {_MANY_KEYS} key columns")


def _daily_bytes(context: TableContext) -> float:
    """Return the bytes that land in a day; 0 if unknown."""
    try:
        manifest = context.manifest()
        found = daily_bytes(context.store, context.name, manifest, time.time()) if manifest else None
    except MirrorError:
        return 0.0  # the questions to the table say so
    return found or 0.0
