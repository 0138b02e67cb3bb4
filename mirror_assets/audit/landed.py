"""Checks on the table folder: what landed is what was committed, without a gap, and nothing else is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mirror_assets.audit.finding import CheckResult
from mirror_assets.audit.kept_history import read_history
from mirror_assets.audit.table_folder import TableFolder, folder_problems, is_serviced, visible_files
from mirror_assets.landing.format import Manifest
from mirror_assets.landing.metadata import declared_keys
from mirror_assets.landing.names import PROCESSED, READY_TO_DELETE, TableName
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.storage import Store

FILE_CONTINUITY = "file_continuity"
_CONTROL_FILE_LIMIT = 1 << 20


def file_continuity(store: Store, table: TableName, applied: int | None) -> CheckResult:
    """Landing files are valid names in sequence, each with the committed content, and the manifest agrees.

    Looks at all that is there and all that is kept. `applied` is the last number that the replicator has applied, or
    None when nobody knows: files up to it may be gone.
    """
    current = drive(read_manifest(table), store)
    if current is None:
        waiting = visible_files(store.list(table.folder))
        stray = [f"{info.path} has landed without a manifest" for info in waiting]
        return CheckResult(FILE_CONTINUITY, tuple(stray), {"files": len(waiting)})
    history = read_history(store, table, current.manifest)
    finished = [info for name in (PROCESSED, READY_TO_DELETE) for info in store.list(f"{table.folder}/{name}")]
    listing = store.list(table.folder)
    folder = TableFolder(
        table, history.generations, visible_files(listing), tuple(finished), serviced=is_serviced(listing)
    )
    problems = (*history.problems, *folder_problems(store, folder, applied))
    return check_continuity(current.manifest, folder, problems)


def check_continuity(manifest: Manifest, folder: TableFolder, problems: Iterable[str]) -> CheckResult:
    """The finding of the check, with its figures."""
    figures: dict[str, int | float | str] = {
        "files": len(folder.waiting),
        "next_number": manifest.next_number,
        "generations": manifest.generation,
    }
    return CheckResult(FILE_CONTINUITY, tuple(dict.fromkeys(problems)), figures)


def metadata_unchanged(store: Store, table: TableName, keys: Sequence[str]) -> CheckResult:
    """`_metadata.json` declares the keys of mirror.yaml and of the manifest: declared keys can't change.

    Where none were declared, those of mirror.yaml are with the next slice that lands.
    """
    current = drive(read_manifest(table), store)
    if current is None:
        return CheckResult("metadata_unchanged")
    content = store.read(table.metadata, _CONTROL_FILE_LIMIT) if store.head(table.metadata) else None
    found = declared_keys(content.data) if content else None
    first, problems = current.manifest.keys, []
    allowed = {first} if first else {first, tuple(keys)}
    if content is None:
        problems.append(f"{table.metadata} is missing")
    elif found is None:
        problems.append(f"{table.metadata} has no readable keyColumns")
    elif found not in allowed:
        problems.append(f"{table.metadata} declares {list(found)}, and {list(first)} was declared first")
    if tuple(keys) not in allowed:
        problems.append(f"mirror.yaml has keys {list(keys)}, and {list(first)} was declared first")
    return CheckResult("metadata_unchanged", tuple(problems), {"keys": ", ".join(first)})
