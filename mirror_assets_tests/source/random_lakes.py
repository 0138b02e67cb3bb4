"""Random tables as logs and empty files: every way in which a log can name a file, and files that it doesn't name."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from hypothesis import strategies as st

from mirror_assets.source.parsing import _Z85
from mirror_assets_tests.source.handmade import Action, column, commit_file, info, schema_string, write_commit

# Moments of a history, in ms: files are written and removed at one of them, and VACUUMs retain from one on.
START_MS, STEP_MS, STEPS = 1_700_000_000_000, 60_000, 6

_PROTOCOL: Action = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "changeDataFeed"],
    }
}
_NAMES = ("a.parquet", "b c.parquet", "d%20e.parquet", "p=1/f.parquet", "p=é%3A/g.parquet", "_p=2/h.parquet")
_UNNAMED = (
    "orphan.parquet",
    "_tmp/x.parquet",
    "sub/.hidden/y.parquet",
    "metadata/z.json",
    "_delta_index/i.parquet",
    "_p=3/_SUCCESS",
    "p=1/orphan.parquet",
)
_CHANGES = ("_change_data/c0.parquet", "_change_data/p=1/c1.parquet")

moments = st.integers(0, STEPS - 1).map(lambda step: START_MS + step * STEP_MS)


@dataclass(frozen=True)
class RandomVector:
    """A deletion vector: in the log, in a file of the table, or in one named by its absolute path."""

    number: int
    kind: str
    folder: str = ""

    @property
    def file(self) -> str | None:
        """Its file's path in the table's folder."""
        name = f"deletion_vector_{UUID(int=self.number)}.bin"
        return None if self.kind == "i" else f"{self.folder}/{name}" if self.folder else name

    def described(self, root: Path) -> Action:
        """As the log describes it; no two are alike, for no commit removes and adds the same vector of a file."""
        stored = {"i": 2 * self._encoded, "u": f"{self.folder}{self._encoded}"}
        name = stored.get(self.kind) or f"{root.as_uri()}/{self.file}"
        place = {} if self.kind == "i" else {"offset": 1}
        return {"storageType": self.kind, "pathOrInlineDv": name, "sizeInBytes": 40, "cardinality": 1} | place

    @property
    def _encoded(self) -> str:
        return z85_encoded(UUID(int=self.number).bytes)


@dataclass
class RandomLake:
    """A table as it comes into being: when each file was written, in ms, and what was live in each version."""

    root: Path
    live: dict[tuple[str, RandomVector | None], None] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    states: list[set[tuple[str, str | None]]] = field(default_factory=list)
    vectors: int = 0
    more_kinds: tuple[str, ...] = ()

    def commit(self, at_ms: int, *actions: Action) -> None:
        """The next commit, written then."""
        version = len(self.states)
        write_commit(self.root, version, [info(timestamp=at_ms), *actions])
        os.utime(commit_file(self.root, version), (at_ms / 1000, at_ms / 1000))
        self.states.append({(path, self.named(vector) if vector else None) for path, vector in self.live})

    def write(self, path: str, at_ms: int) -> None:
        """An empty file, written then."""
        self.written[path] = at_ms
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).touch()
        os.utime(self.root / path, (at_ms / 1000, at_ms / 1000))

    def add(self, path: str, vector: RandomVector | None, at_ms: int) -> Action:
        """The action; its files are written if they aren't there."""
        self.live[path, vector] = None
        for name in (path, vector.file if vector else None):
            if name is not None and name not in self.written:
                self.write(name, at_ms)
        return {"add": self._named(path, vector) | {"size": 0, "modificationTime": at_ms, "partitionValues": {}}}

    def remove(self, path: str, vector: RandomVector | None, at_ms: int | None) -> Action:
        """The action; some writers leave out the time."""
        del self.live[path, vector]
        time = {} if at_ms is None else {"deletionTimestamp": at_ms}
        return {"remove": self._named(path, vector) | time}

    def named(self, vector: RandomVector) -> str:
        """The vector's unique id in Delta."""
        described = vector.described(self.root)
        offset = f"@{described['offset']}" if "offset" in described else ""
        return f"{described['storageType']}{described['pathOrInlineDv']}{offset}"

    def _named(self, path: str, vector: RandomVector | None) -> Action:
        described = {"deletionVector": vector.described(self.root)} if vector else {}
        return {"path": encoded(path), "dataChange": True} | described


@st.composite
def _vectors(draw: st.DrawFn, lake: RandomLake) -> RandomVector | None:
    kind = draw(st.sampled_from(["none", "u", "u", "p", *lake.more_kinds]))
    lake.vectors += 1
    return None if kind == "none" else RandomVector(lake.vectors, kind, draw(st.sampled_from(["", "ab"])))


@st.composite
def histories(draw: st.DrawFn, root: Path, *, inline: bool = False) -> RandomLake:
    """A table in this empty folder, with up to five commits; `inline`: some of its vectors are in the log."""
    lake = RandomLake(root, more_kinds=("i",) if inline else ())
    metadata: Action = {
        "id": "random",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_string(column("id"), column("_p", "string")),
        "partitionColumns": ["_p"],
        "configuration": {},
    }
    lake.commit(START_MS, _PROTOCOL, {"metaData": metadata})
    for path in draw(st.sets(st.sampled_from(_UNNAMED))):
        lake.write(path, draw(moments))
    for number in range(draw(st.integers(1, 5))):
        lake.commit(START_MS + (number + 1) * STEP_MS, *draw(_commits(lake)))
    return lake


@st.composite
def _commits(draw: st.DrawFn, lake: RandomLake) -> list[Action]:
    """Files go, or change their vector; files come, or come back; changes are kept."""
    actions: list[Action] = []
    absent = [name for name in _NAMES if name not in {path for path, _ in lake.live}]
    for path, vector in [live for live in lake.live if draw(st.booleans())]:
        actions.append(lake.remove(path, vector, draw(st.none() | moments)))
        if draw(st.booleans()):
            changed = draw(_vectors(lake))
            actions += [] if changed == vector else [lake.add(path, changed, draw(moments))]
    actions += [lake.add(name, draw(_vectors(lake)), draw(moments)) for name in absent if draw(st.booleans())]
    for path in draw(st.sets(st.sampled_from(_CHANGES), max_size=1)):
        lake.write(path, draw(moments))
        actions.append({"cdc": {"path": encoded(path), "size": 0, "dataChange": False, "partitionValues": {}}})
    return actions


def encoded(path: str) -> str:
    """A path as Hadoop writes it into logs. VACUUM compares paths as they are written: `p%3D1` would not save `p=1`."""
    return path.replace("%", "%25").replace(" ", "%20")


def z85_encoded(data: bytes) -> str:
    """The Z85 text of bytes, four in five characters."""
    numbers = (int.from_bytes(data[start : start + 4], "big") for start in range(0, len(data), 4))
    return "".join(_Z85[number // 85**place % 85] for number in numbers for place in range(4, -1, -1))
