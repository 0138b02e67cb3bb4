"""A copy of a table's log, for Delta's public reader: it refuses a catalog-managed table by its path.

The copy has the original actions, which Delta replays, with absolute paths, and without the features that name the
catalog. Nothing is shared with the project's own log reader, which `reconcile` proves.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import weakref
from base64 import b85decode
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast
from urllib.parse import quote, unquote
from uuid import UUID

import pyarrow.parquet as pq

from mirror_assets.lakes.access import CatalogCommits, Located
from mirror_assets.source.source_files import SourceFiles

_LOG = "_delta_log"
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10})|\.[0-9a-fA-F-]{36})?\.(?:parquet|json)")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")
# Of a checkpoint, Delta's reader needs these columns, without statistics.
_KINDS = ("add", "metaData", "protocol", "sidecar")
_MAPS = ("partitionValues", "tags", "configuration", "options")
_FILES = ("add", "remove", "cdc")
# Without its catalog, a version has no in-commit timestamp that Delta would ask for.
_CATALOG_FEATURES = re.compile(
    r"catalogManaged|catalogOwned(-preview)?|coordinatedCommits(-preview)?|inCommitTimestamp"
)
_CATALOG_PROPERTIES = re.compile(r"delta\.(enableInCommitTimestamps|inCommitTimestamp|coordinatedCommits).*")
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_BASE85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

Value = object
Action = dict[str, Value]


class _Vector(TypedDict):
    storageType: str
    pathOrInlineDv: str


@dataclass(frozen=True)
class LogCopy:
    """The folder of a copy, in which version 0 is the table's version `first`; it is deleted with this object."""

    folder: Path
    first: int

    def __post_init__(self) -> None:
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


def copy_log(place: Located, version: int) -> LogCopy:
    """Copy the log from the newest checkpoint up to `version`, or from the first commit, to the catalog's newest one.

    Raises FileNotFoundError if the version can't be reconstructed, and what SourceFiles raises.
    """
    assert place.commits is not None  # noqa: S101 Delta's reader opens other tables
    files, commits = SourceFiles(place.uri, place.access), place.commits
    checkpoint, parts = _checkpoint([file.base_name for file in files.log().files], version)
    folder = Path(tempfile.mkdtemp(prefix="mirror-assets-log-"))
    copied, rewritten = LogCopy(folder, max(checkpoint, 0)), _Rewriting(_root(place.uri))
    (folder / _LOG).mkdir()
    if parts:
        actions = (action for part in parts for action in _checkpoint_actions(files, f"{_LOG}/{part}"))
        _write(folder, 0, map(rewritten.action, actions))
    for at in range(checkpoint + 1, commits.latest + 1):
        lines = _commit(files, commits, at).splitlines()
        _write(folder, at - copied.first, (rewritten.action(json.loads(line)) for line in lines if line.strip()))
    return copied


def _checkpoint(names: Sequence[str], version: int) -> tuple[int, Sequence[str]]:
    """Return the newest complete checkpoint up to a version, and its files; -1 without one."""
    groups: defaultdict[tuple[int, int, str], list[str]] = defaultdict(list)
    for name in sorted(names):
        found = _CHECKPOINT.fullmatch(name)
        if found and int(found[1]) <= version:
            groups[int(found[1]), int(found[2] or 1), "" if found[2] else name].append(name)
    complete = [(at, parts) for (at, count, _), parts in groups.items() if len(parts) == count]
    return max(complete, default=(-1, ()))


def _commit(files: SourceFiles, commits: CatalogCommits, version: int) -> bytes:
    """Read a commit: the file that the catalog names, or the published one."""
    staged = commits.staged.get(version)
    if staged is not None:
        with suppress(FileNotFoundError), files.open(f"{_LOG}/_staged_commits/{staged.name}") as file:
            return bytes(file.read())
    with files.open(f"{_LOG}/{version:020d}.json") as file:
        return bytes(file.read())


def _checkpoint_actions(files: SourceFiles, path: str) -> Iterator[Action]:
    """Yield the actions of a file of a checkpoint, and of its sidecars."""
    with files.open(path) as file:
        actions = map(json.loads, file.read().splitlines()) if path.endswith(".json") else _rows(pq.ParquetFile(file))
        for action in actions:
            sidecar = action.get("sidecar")
            if isinstance(sidecar, dict):
                yield from _checkpoint_actions(files, f"{_LOG}/_sidecars/{sidecar['path'].rpartition('/')[2]}")
            elif not action.keys().isdisjoint(_KINDS):
                yield action


def _rows(parquet: pq.ParquetFile) -> Iterator[Action]:
    columns = [parquet.schema.column(index).path for index in range(len(parquet.schema))]
    wanted = [
        path for path in columns if path.split(".")[0] in _KINDS and "_parsed" not in path and ".stats" not in path
    ]
    for batch in parquet.iter_batches(batch_size=1 << 14, columns=wanted):
        for row in batch.to_pylist():
            yield {kind: _plain(fields) for kind, fields in row.items() if fields is not None}


def _plain(fields: Mapping[str, Value]) -> Action:
    """Return fields of Parquet as JSON has them: maps are lists of pairs there."""
    return {
        name: dict(cast("list[tuple[str, str]]", value))
        if name in _MAPS
        else _plain(value)
        if isinstance(value, dict)
        else value
        for name, value in fields.items()
        if value is not None
    }


def _root(uri: str) -> str:
    """Return the table's folder as the encoded URI of a Java program."""
    return quote(unquote(uri) if uri.startswith("file:") else uri, safe=":/@") if ":" in uri else Path(uri).as_uri()


def _write(folder: Path, version: int, actions: Iterator[Action]) -> None:
    with (folder / _LOG / f"{version:020d}.json").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(action)}\n" for action in actions)


@dataclass(frozen=True)
class _Rewriting:
    """Rewrites actions of the table at an encoded URI, so that they mean the same in another folder."""

    root: str

    def action(self, action: Action) -> Action:
        return {kind: self._fields(kind, fields) for kind, fields in action.items() if isinstance(fields, dict)}

    def _fields(self, kind: str, fields: Action) -> Action:
        if kind in _FILES:
            vector = fields.get("deletionVector")
            moved = {"deletionVector": self._vector(cast("_Vector", vector))} if isinstance(vector, dict) else {}
            return {**fields, "path": self._absolute(str(fields["path"])), **moved}
        if kind == "metaData":
            properties = cast("Action", fields.get("configuration") or {})
            own = {name: value for name, value in properties.items() if not _CATALOG_PROPERTIES.fullmatch(name)}
            return {**fields, "configuration": own}
        if kind == "protocol":
            lists = ((name, fields.get(name)) for name in ("readerFeatures", "writerFeatures"))
            return {**fields, **{name: _without_catalog(names) for name, names in lists if isinstance(names, list)}}
        return fields

    def _absolute(self, path: str) -> str:
        return path if _ABSOLUTE.match(path) else f"{self.root}/{path}"

    def _vector(self, vector: _Vector) -> _Vector:
        """Return a vector in a file by its absolute path, in place of its UUID in Z85, after which it may be named."""
        if vector["storageType"] != "u":
            return vector
        name = vector["pathOrInlineDv"]
        folder, encoded = name[:-20], name[-20:]
        uuid = UUID(bytes=b85decode(encoded.translate(str.maketrans(_Z85, _BASE85))))
        path = "/".join(filter(None, (self.root, quote(folder), f"deletion_vector_{uuid}.bin")))
        return {**vector, "storageType": "p", "pathOrInlineDv": path}


def _without_catalog(features: Sequence[str]) -> list[str]:
    return [name for name in features if not _CATALOG_FEATURES.fullmatch(name)]
