"""The grammar of all names in a landing zone; no other module splits or joins names.

Rules: reference `landing-zone` (20 digits from 1, `<schema>.schema` folders, underscore names are ignored by Fabric).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from mirror_assets.landing.errors import NAME_REFUSED, NameRefused

SCRATCH = "_scratchPad"
PROCESSED = "_ProcessedFiles"
READY_TO_DELETE = "_FilesReadyToDelete"
METADATA = "_metadata.json"
MANIFEST = "_mirror.json"
HISTORY = "_mirror"
REBUILDS = "_rebuild"
FAILURES = "_failures"
LEASES = "_leases"
PROBLEMS = "_alerts/state.json"
DISCOVERED = "_discovered/tables.json"
BATCH_LEASE = "_batch-"
_HEARTBEAT = "_run-"
_CLOCK = "_clock-"
PARTNER_EVENTS = "_partnerEvents.json"
SLICE_RECORD = "slice.json"
PARTS = "parts"

_SCHEMA_SUFFIX = ".schema"
_LANDING_FILE = re.compile(r"([0-9]{20})\.parquet")
_PART = re.compile(r"(?:([0-9]{5})/)?part-([0-9]{5})[A-Za-z0-9.-]*\.parquet")
_PART_FOLDER = re.compile(r"[0-9]{5}")
_ATTEMPT_FOLDER = re.compile(r"(0|[1-9][0-9]*)-([0-9a-f]{32})")
_HISTORY = re.compile(r"([0-9]{4})-([0-9]{20})\.json")
_ROLL_UP = re.compile(r"([0-9]{4})-([0-9]{20})-([0-9]{20})\.json")
_VERIFIED = "verified.json"
_RECONCILED = "reconciled.json"
_NUMBER = "0|[1-9][0-9]"
_SLICE_KEY = re.compile(rf"({_NUMBER}{{0,3}})\.({_NUMBER}{{0,19}})-({_NUMBER}{{0,19}})")
_RECORDED_SLICE = re.compile(r"([0-9]{4})-([0-9]{8,20})-([0-9]{8,20})")
# What paths can't have, and what the SQL endpoint and Direct Lake refuse (reference `landing-zone` §5).
_FORBIDDEN = re.compile(r'[\\*<>|/:?"\'`#%+\x00-\x1f\x7f-\x9f\ud800-\udfff]')
SQL_SCHEMAS = re.compile("sys|information_schema|guest|queryinsights|db_[a-z]+", re.IGNORECASE)
MAX_NAME = 128
_LATEST_MS = 2**48 - 1  # in the year 10889
_MAX_BYTES = 240  # `[schema.]table` is one name below `_scratchPad`, and file systems allow 255 bytes


@dataclass(frozen=True)
class TableName:
    """A table's name in the mirror, `[schema.]table`."""

    schema: str | None
    table: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse `[schema.]table`. Raises NameRefused for a name that a landing zone can't have."""
        schema, dot, table = text.rpartition(".")
        for part in (schema, table) if dot else (table,):
            _check_name(text, part)
        if SQL_SCHEMAS.fullmatch(schema):
            raise NAME_REFUSED(name=text, why=f"{schema!r} is a schema of the SQL endpoint's own")
        if len(text.encode()) > _MAX_BYTES:
            raise NAME_REFUSED(name=text, why=f"it is longer than {_MAX_BYTES} bytes")
        return cls(schema if dot else None, table)

    @property
    def folder(self) -> str:
        """Path of the table folder: `[<schema>.schema/]<table>`."""
        return f"{self.schema}{_SCHEMA_SUFFIX}/{self.table}" if self.schema else self.table

    @property
    def file_folders(self) -> tuple[str, str, str]:
        """Paths of the folders with landing files, in the order in which the replicator moves them."""
        return (self.folder, f"{self.folder}/{PROCESSED}", f"{self.folder}/{READY_TO_DELETE}")

    @property
    def manifest(self) -> str:
        """Path of the manifest."""
        return f"{self.folder}/{MANIFEST}"

    @property
    def metadata(self) -> str:
        """Path of `_metadata.json`."""
        return f"{self.folder}/{METADATA}"

    @property
    def scratch(self) -> str:
        """Path of the folder of all staged attempts."""
        return f"{SCRATCH}/{self}"

    @property
    def rebuild_record(self) -> str:
        """Path of the rebuild record, outside the folder that a rebuild drops."""
        return f"{REBUILDS}/{self}.json"

    @property
    def failure_record(self) -> str:
        """Path of the failure record, outside the folder that a rebuild drops."""
        return f"{FAILURES}/{self}.json"

    @property
    def lease(self) -> str:
        """Path of the table's lease."""
        return f"{LEASES}/{self}.json"

    @property
    def history_folder(self) -> str:
        """Path of the folder with the history of generations."""
        return f"{self.folder}/{HISTORY}"

    @property
    def verified(self) -> str:
        """Path of the newest passed result of `file_continuity`."""
        return f"{self.history_folder}/{_VERIFIED}"

    @property
    def reconciled(self) -> str:
        """Path of the newest comparison by which mirror and source are equal."""
        return f"{self.history_folder}/{_RECONCILED}"

    def history(self, epoch: int, generation: int) -> str:
        """Path of one generation's manifest in the history.

        The epoch is in the name because a late request may restore the file after its folder was dropped.
        """
        return f"{self.history_folder}/{epoch:04d}-{generation:020d}.json"

    def roll_up(self, epoch: int, first: int, last: int) -> str:
        """Path of the file that has the generations `first` to `last`."""
        return f"{self.history_folder}/{epoch:04d}-{first:020d}-{last:020d}.json"

    def landing_file(self, number: int) -> str:
        """Path of the landing file with this sequence number."""
        return f"{self.folder}/{landing_name(number)}"

    def __lt__(self, other: TableName) -> bool:
        return (self.schema or "", self.table) < (other.schema or "", other.table)

    def __str__(self) -> str:
        """`[schema.]table`."""
        return f"{self.schema}.{self.table}" if self.schema else self.table


def batch_lease(mirror: str, batch: int) -> str:
    """Return the path of the lease of a mirror's batch of tables; no table's lease has a name like it."""
    return f"{LEASES}/{BATCH_LEASE}{hashlib.sha256(mirror.encode()).hexdigest()[:8]}-{batch}.json"


def heartbeat_path(run: str) -> str:
    """Return the path of a run's heartbeat file."""
    return f"{LEASES}/{_HEARTBEAT}{run}.json"


def clock_path(random: str) -> str:
    """Return the path of a file that is written to read the store's clock."""
    return f"{LEASES}/{_CLOCK}{random}.json"


def is_run_file(name: str) -> bool:
    """Whether a file in the folder of leases is a heartbeat, its lock on a local disk, or a file of `clock_path`."""
    return name.startswith((_HEARTBEAT, f"_{_HEARTBEAT}", _CLOCK))


def _check_name(whole: str, part: str) -> None:
    if not part:
        raise NAME_REFUSED(name=whole, why="it has an empty part")
    if "." in part:
        raise NAME_REFUSED(name=whole, why="it has more than one dot; write [schema.]table")
    if part.startswith("_"):
        raise NAME_REFUSED(name=whole, why="Fabric ignores names that start with an underscore")
    if _FORBIDDEN.search(part) or part != part.strip():
        raise NAME_REFUSED(
            name=whole,
            why="it has a space at an end, or one of \\ / : * ? \" ' ` # % + < > | or a control character; the source "
            "can keep its name, the key under `tables` is the mirror's",
        )
    if len(part) > MAX_NAME:
        raise NAME_REFUSED(name=whole, why=f"a part of it is longer than {MAX_NAME} characters")


def folder_to_table(folder: str) -> TableName | None:
    """Return the table with this folder, or None for any other folder."""
    schema, slash, table = folder.partition("/")
    text = f"{schema.removesuffix(_SCHEMA_SUFFIX)}.{table}" if slash else folder
    try:
        name = TableName.parse(text)
    except NameRefused:
        return None
    return name if name.folder == folder else None


def record_to_table(name: str) -> TableName | None:
    """Return the table whose record has this file name, or None for any other file."""
    try:
        return TableName.parse(name.removesuffix(".json")) if name.endswith(".json") else None
    except NameRefused:
        return None


def is_schema_folder(name: str) -> bool:
    """Whether a folder at the root has a schema's tables."""
    return name.endswith(_SCHEMA_SUFFIX)


def landing_name(number: int) -> str:
    """Return the file name of a number, from 1."""
    return f"{number:020d}.parquet"


def landing_number(name: str) -> int | None:
    """Return the number in a landing file's name, or None for any other name."""
    match = _LANDING_FILE.fullmatch(name)
    return int(match[1]) if match else None


@dataclass(frozen=True, order=True)
class HistoryRange:
    """The generations `first` to `last` of an epoch, which one file of the history has."""

    epoch: int
    first: int
    last: int
    is_roll_up: bool

    @classmethod
    def parse(cls, name: str) -> HistoryRange | None:
        """Parse a file name: one generation, or several rolled up; None for any other name."""
        if match := _HISTORY.fullmatch(name):
            return cls(int(match[1]), int(match[2]), int(match[2]), is_roll_up=False)
        if match := _ROLL_UP.fullmatch(name):
            return cls(int(match[1]), int(match[2]), int(match[3]), is_roll_up=True)
        return None


@dataclass(frozen=True)
class PartPlace:
    """Where Spark wrote a part: the number of the write within the slice, and the partition."""

    write: int
    partition: int


def part_place(name: str) -> PartPlace | None:
    """Return the place in a part's name, or None for any other name. Parts sort by name.

    A name is `part-00000-….parquet`, which starts with the partition's index. If a slice takes several writes, the part
    is in a folder `00000/` of its write.
    """
    match = _PART.fullmatch(name)
    return PartPlace(int(match[1] or 0), int(match[2])) if match else None


def is_part_folder(name: str) -> bool:
    """Whether a folder in a slice's folder of parts has the parts of one write."""
    return _PART_FOLDER.fullmatch(name) is not None


@dataclass(frozen=True)
class AttemptFolder:
    """The staging folder of one attempt at one generation; only that attempt writes into it."""

    table: TableName
    generation: int
    attempt: str

    @classmethod
    def parse(cls, table: TableName, name: str) -> AttemptFolder | None:
        """Parse the name of a folder in the table's scratch folder; None for any other name."""
        match = _ATTEMPT_FOLDER.fullmatch(name)
        return cls(table, int(match[1]), match[2]) if match else None

    @property
    def path(self) -> str:
        """The folder's path."""
        return f"{self.table.scratch}/{self.generation}-{self.attempt}"

    @property
    def record(self) -> str:
        """Path of the slice record in it."""
        return f"{self.path}/{SLICE_RECORD}"

    @property
    def parts(self) -> str:
        """The folder of the staged parts."""
        return f"{self.path}/{PARTS}"

    def part(self, name: str) -> str:
        """Path of a staged part."""
        return f"{self.parts}/{name}"


def attempt_id(milliseconds: int, random: bytes, after: str = "") -> str:
    """Return a new attempt's id, made of the time and 10 random bytes: unique by chance, and newer attempts sort last.

    `after` is the newest attempt so far, by its id. The new one sorts after it, also if the clock of the host that made
    it is ahead by years.
    """
    time = max(milliseconds, attempt_ms(after) + 1 if after else 0)
    return f"{min(time, _LATEST_MS):012x}{random[:10].hex():0>20}"


def attempt_ms(attempt: str) -> int:
    """Return the start of an attempt in ms since 1970, by the clock of its process."""
    return int(attempt[:12], 16)


@dataclass(frozen=True, order=True)
class SliceKey:
    """A slice of an epoch: the versions `first` to `last`. Keys sort in the order in which slices land.

    Its text is Dagster's partition key, `epoch.first-last`. A single version is written twice, as in `1.7-7`: YAML and
    spreadsheets read `1.70` as the number 1.7. Files in the landing zone have the text of `recorded`.
    """

    epoch: int
    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> SliceKey:
        """Return the slice that a partition key names. Raises NameRefused."""
        return cls._match(_SLICE_KEY, text, "a slice's key is `epoch.first-last`, such as 1.5-7")

    @classmethod
    def from_record(cls, text: str) -> SliceKey:
        """Return the slice that a file in the landing zone names. Raises NameRefused."""
        key = cls._match(_RECORDED_SLICE, text, "a recorded slice is epoch-first-last with 4, 8 and 8 digits")
        if key.recorded != text:
            raise NAME_REFUSED(name=text, why="its versions have extra leading zeros")
        return key

    @classmethod
    def _match(cls, pattern: re.Pattern[str], text: str, expected: str) -> SliceKey:
        match = pattern.fullmatch(text)
        if match is None:
            raise NAME_REFUSED(name=text, why=expected)
        key = cls(int(match[1]), int(match[2]), int(match[3]))
        if key.first > key.last:
            raise NAME_REFUSED(name=text, why="its first version is after its last")
        return key

    @property
    def recorded(self) -> str:
        """The slice as files in the landing zone name it: `epoch-first-last`, zero-padded."""
        return f"{self.epoch:04d}-{self.first:08d}-{self.last:08d}"

    def __str__(self) -> str:
        """`epoch.first-last`."""
        return f"{self.epoch}.{self.first}-{self.last}"
