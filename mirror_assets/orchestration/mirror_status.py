"""The asset `mirror_status`: its newest observation shows the status of all tables. The job `checks` writes it."""

from __future__ import annotations

import hashlib
import time
from collections import Counter

import dagster as dg

from mirror_assets.composition import Project
from mirror_assets.orchestration.asset_names import MetadataItem, safe
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.slice_metadata import DATA_VERSION_TAG
from mirror_assets.orchestration.table_status import CELLS, Status, StatusLine, read_status
from mirror_assets.pipeline.daemon_pool import DaemonPool

# What a table says is observed at once when it changes; new versions and lags alone, after this time.
_NUMBERS_SECONDS = 3600.0
_AGAIN_SECONDS = 86_400.0
_TABLES_AT_ONCE = 16
_COLUMNS = ("table", "health", "why", "source", "landed", "mirror has", "lag")
# A page of more rows is slow, and its event large: the tables that need attention are the first.
_MOST_ROWS = 200
_LONGEST_WHY = 300


def status_asset(assets: MirrorAssets) -> dg.AssetSpec:
    """Return the external asset of the status of all tables."""
    return dg.AssetSpec(
        _key(assets),
        group_name="mirror",
        description=f"Status of {len(assets.config.tables)} tables: see the newest observation. The schedule "
        f"`{assets.full_name('checks')}` writes one when the health of a table changes, hourly if only versions do, "
        "and daily otherwise.\n\n`mirror-assets status`",
    )


def observe_status(context: dg.OpExecutionContext, assets: MirrorAssets, project: Project, limit: float) -> None:
    """Log the status of all tables, unless the newest observation says the same; wait `limit` seconds for stores."""
    found = read_status(project, (), DaemonPool("status", _TABLES_AT_ONCE), limit)
    key, table, words = _key(assets), _markdown(found), _words(found)
    newest = context.instance.fetch_observations(key, limit=1).records
    if newest and not _is_due(newest[0], table, words):
        return
    counts = Counter(line.health for line in found.lines)
    metadata: dict[str, MetadataItem] = {
        "summary": ", ".join(f"{number} {health}" for health, number in counts.most_common()) or "no tables",
        "status": dg.MetadataValue.md(table),
    }
    context.log_event(dg.AssetObservation(key, metadata=metadata, tags={DATA_VERSION_TAG: words}))


def _key(assets: MirrorAssets) -> dg.AssetKey:
    """Return the key: `mirror_status` for mirror.yaml, with the name of the mirror in a project of others.

    Several files in one instance have different names.
    """
    return dg.AssetKey([assets.full_name(f"{safe(assets.config.file.stem)}_status")])


def _is_due(newest: dg.EventLogRecord, table: str, words: str) -> bool:
    observed = newest.asset_observation
    if observed is None or observed.tags.get(DATA_VERSION_TAG) != words:
        return True
    age = time.time() - newest.timestamp
    return age >= (_AGAIN_SECONDS if observed.metadata["status"].value == table else _NUMBERS_SECONDS)


def _words(found: Status) -> str:
    """Return a digest of each table's health, without numbers: those change all the time."""
    lines = sorted(f"{line.table} {line.health}" for line in found.lines)
    return hashlib.sha256("\n".join([*lines, *found.notes]).encode()).hexdigest()[:16]


def _markdown(found: Status) -> str:
    """Return the tables, the most urgent first, and below them the notes and errors of the landing zone."""
    lines = found.by_urgency
    rows = [_row(_COLUMNS), _row(["---"] * len(_COLUMNS)), *(_row(_cells(line)) for line in lines[:_MOST_ROWS])]
    below = [*found.notes, *(str(error) for error in found.errors)]
    if len(lines) > _MOST_ROWS:
        below.insert(0, f"{len(lines) - _MOST_ROWS} more tables: `mirror-assets status` shows all.")
    return "\n".join([*rows, *(f"\n{_plain(text)}" for text in below)])


def _cells(line: StatusLine) -> list[str]:
    return ["" if (value := CELLS[name](line)) is None else _plain(str(value))[:_LONGEST_WHY] for name in _COLUMNS]


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Return text that Markdown shows unchanged, on one line."""
    escaped = "".join(f"\\{char}" if char in "\\|`*_<>[]#~" else char for char in text)
    return " ".join(escaped.split())
