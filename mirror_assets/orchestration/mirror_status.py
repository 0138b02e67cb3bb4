"""The asset `mirror_status`: its newest materialization shows the health of all tables. The job `checks` writes it."""

from __future__ import annotations

import hashlib
import re
import textwrap
import time
from collections import Counter

import dagster as dg

from mirror_assets.errors import NEXT
from mirror_assets.orchestration.dagster_internals import DATA_VERSION_TAG
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.table_status import CELLS, Status, read_status
from mirror_assets.orchestration.translator import MetadataItem, safe
from mirror_assets.pipeline.many_tables import DaemonPool
from mirror_assets.pipeline.project import Project
from mirror_assets.pipeline.table_health import Urgency

# An unchanged status is written once a day, so that people see that the checks run.
_AGAIN_SECONDS = 86_400.0
_TABLES_AT_ONCE = 16
# Versions and lags change all the time; they are on the pages of the tables.
_COLUMNS = ("table", "health", "why")
# A page of more rows is slow, and its event large: the tables that need attention are the first.
_MOST_ROWS = 200
_LONGEST_WHY, _NAMED = 200, 3
_NUMBER = re.compile(r"[\d,.]*\d")


def status_asset(assets: MirrorAssets) -> dg.AssetSpec:
    """Return the external asset of the status of all tables."""
    return dg.AssetSpec(
        _key(assets),
        group_name="mirror",
        description=f"Health of {len(assets.config.tables)} tables, the most urgent first: see the newest "
        f"materialization. The schedule `{assets.full_name('checks')}` writes one when the health of a table changes, "
        "and once a day.\n\n`mirror-assets status`",
    )


def materialize_status(context: dg.OpExecutionContext, assets: MirrorAssets, project: Project, limit: float) -> None:
    """Log the status of all tables, unless the newest materialization says the same.

    Waits `limit` seconds for stores.
    """
    found = read_status(project, (), DaemonPool("status", _TABLES_AT_ONCE), limit)
    key, digest = _key(assets), _digest(found)
    newest = context.instance.get_latest_materialization_event(key)
    known = newest.asset_materialization if newest else None
    is_same = known is not None and (known.tags or {}).get(DATA_VERSION_TAG) == digest
    if is_same and newest is not None and time.time() - newest.timestamp < _AGAIN_SECONDS:
        return
    metadata: dict[str, MetadataItem] = {"summary": _summary(found), "status": dg.MetadataValue.md(_markdown(found))}
    context.log_event(dg.AssetMaterialization(key, metadata=metadata, tags={DATA_VERSION_TAG: digest}))


def _key(assets: MirrorAssets) -> dg.AssetKey:
    """Return the key: `mirror_status` for mirror.yaml, with the name of the mirror in a project of others.

    Several files in one instance have different names.
    """
    return dg.AssetKey([assets.full_name(f"{safe(assets.config.file.stem)}_status")])


def _digest(found: Status) -> str:
    """Return a digest of each table's health and reason, without numbers: those change all the time."""
    lines = sorted(f"{line.table} {line.health} {line.why}" for line in found.lines)
    return hashlib.sha256(_NUMBER.sub("#", "\n".join([*lines, *found.notes])).encode()).hexdigest()[:16]


def _summary(found: Status) -> str:
    """Return how many tables have each health, and the most urgent ones by name."""
    counts = Counter(line.health for line in found.lines)
    counted = ", ".join(f"{number} {health}" for health, number in counts.most_common()) or "no tables"
    urgent = [f"{line.table} ({line.health})" for line in found.by_urgency if line.urgency is not Urgency.NOT]
    if not urgent:
        return counted
    return f"{counted}. Act on {', '.join(urgent[:_NAMED])}{', …' if len(urgent) > _NAMED else ''}"


def _markdown(found: Status) -> str:
    """Return the tables, the most urgent first, and below them the notes and errors of the landing zone."""
    lines = found.by_urgency
    rows = [_row(_COLUMNS), _row(["---"] * len(_COLUMNS))]
    for line in lines[:_MOST_ROWS]:
        cells = (CELLS[name](line) for name in _COLUMNS)
        rows.append(_row([_plain(str(cell)) if cell is not None else "" for cell in cells]))
    below = [*found.notes, *(str(error) for error in found.errors)]
    if len(lines) > _MOST_ROWS:
        below.insert(0, f"{len(lines) - _MOST_ROWS} more tables: `mirror-assets status` shows all.")
    return "\n".join([*rows, *(f"\n{_plain(text)}" for text in below)])


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Return text that Markdown shows unchanged, on one line; what is wrong and the next step are cut between words."""
    short = NEXT.join(textwrap.shorten(part, _LONGEST_WHY, placeholder=" …") for part in text.split(NEXT, 1))
    return "".join(f"\\{char}" if char in "\\|`*_<>[]#~" else char for char in short)
