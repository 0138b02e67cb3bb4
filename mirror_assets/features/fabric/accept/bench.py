"""What an exercise works with: its scratch tables, and waits for what Fabric makes of them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from mirror_assets.errors import MirrorError
from mirror_assets.features.fabric.accept.scratch import ScratchTable
from mirror_assets.features.fabric.client import FabricClient
from mirror_assets.features.fabric.database import ReportedTable
from mirror_assets.lakes.access import Access
from mirror_assets.landing.names import TableName
from mirror_assets.monitoring import TableState
from mirror_assets.source.errors import SourceNotDelta
from mirror_assets.source.log import DeltaLog
from mirror_assets.source.scan_builder import scan_version
from mirror_assets.source.schema import parse_schema
from mirror_assets.zones import Store

Row = Mapping[str, object]
_SHOWN_ROWS, _SHOWN_CHARACTERS = 3, 40


class Differs(Exception):
    """Fabric did something else than expected; the message is what was seen."""


class NotRun(Exception):
    """The exercise was not run, or was interrupted; the message is the reason."""


@dataclass(frozen=True)
class FabricService:
    """A mirrored database: its landing zone, its API, and its tables below `tables`, each with its access."""

    store: Store
    client: FabricClient
    database: UUID
    tables: str
    default_schema: str
    access: Callable[[str], Access]

    def full_name(self, name: TableName) -> TableName:
        """Return the name of the mirrored table, which always has a schema."""
        return TableName(name.schema or self.default_schema, name.table)

    def mirrored(self, name: TableName) -> MirroredTable:
        """Read the mirrored table from its Delta files; it is empty, without columns, if there is none."""
        full = self.full_name(name)
        uri = f"{self.tables}/{full.schema}/{full.table}"
        log = DeltaLog(uri, self.access(uri))
        try:
            scan = scan_version(log, log.state().version)
        except SourceNotDelta:
            return MirroredTable({}, ())
        fields = parse_schema(scan.metadata.schema_string).fields
        stored, rows = {one.physical_name or one.name: one.name for one in fields}, list[Row]()
        for file in scan.files:
            with log.files.open(file.path) as source:
                found = pq.ParquetFile(source, coerce_int96_timestamp_unit="us").read()
            hidden = file.chosen.rows if file.chosen else ()
            shown = (row for index, row in enumerate(found.to_pylist()) if index not in hidden)
            rows += [{stored[name]: value for name, value in row.items() if name in stored} for row in shown]
        return MirroredTable({one.name: one.type for one in fields}, tuple(rows))


@dataclass(frozen=True)
class MirroredTable:
    """The rows of a mirrored table, and its columns with their types in the Delta log, in Spark's spelling."""

    types: Mapping[str, str]
    rows: tuple[Row, ...]

    def differences(self, expected: pa.Table) -> str:
        """Return how the rows differ from the expected ones; empty if they are equal. Missing columns are NULL."""
        names = expected.column_names
        wanted, found = (
            Counter(tuple((name, _text(row.get(name))) for name in names) for row in rows)
            for rows in (expected.to_pylist(), self.rows)
        )
        if wanted == found:
            return ""
        parts = [f"{found.total()} rows instead of {wanted.total()}"]
        for what, rows in (("missing", wanted - found), ("unexpected", found - wanted)):
            shown = (", ".join(f"{name}={_short(value)}" for name, value in row) for row in rows)
            parts += [f"{what}: {'; '.join([*shown][:_SHOWN_ROWS])}"] if rows else []
        return ", ".join(parts)


def _text(value: object) -> str:
    """Return the value as text: unlike values, 1 and 1.0 differ as text, and NaN is equal to itself."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return f"{value.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f} UTC"
    return repr(value)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"


@dataclass(frozen=True)
class Patience:
    """Waits `pause_seconds` between two requests for a result, for `limit_seconds` at most."""

    limit_seconds: float
    pause_seconds: float
    clock: Callable[[], float] = time.monotonic
    interrupted: threading.Event = field(default_factory=threading.Event)

    def pause(self) -> None:
        """Wait before the next request. Raises NotRun once the run is interrupted."""
        if self.interrupted.wait(self.pause_seconds):
            raise NotRun("interrupted")


class ExerciseBench:
    """The scratch tables and observations of one exercise; the names of its tables begin with `prefix`.

    `steps` are the seconds until an effect was visible, `statements` SQL to try at the SQL endpoint.
    """

    def __init__(self, service: FabricService, patience: Patience, prefix: str) -> None:
        """Begin an exercise; nothing is written yet."""
        self.service, self.patience, self._prefix = service, patience, prefix
        self.tables = list[ScratchTable]()
        self.steps = dict[str, float]()
        self.statements = list[str]()

    def table(self, suffix: str = "", keys: Sequence[str] = ("id",), *, in_schema: bool = False) -> ScratchTable:
        """Return a new scratch table, in the default schema or in one of its own."""
        name = TableName(self._prefix if in_schema else None, f"{self._prefix}{suffix}")
        self.tables.append(ScratchTable(self.service.store, name, keys))
        return self.tables[-1]

    def wait(self, what: str, left: Callable[[], str]) -> str:
        """Wait until nothing is left; return what is left after the limit, or raise the error that is left then."""
        began = self.patience.clock()
        while True:
            error: Exception | None = None
            try:
                now = left()
            except (MirrorError, FileNotFoundError) as raised:  # Fabric may write or delete what is read
                error, now = raised, str(raised)
            self.steps[what] = self.patience.clock() - began
            if not now:
                return ""
            if self.steps[what] >= self.patience.limit_seconds:
                if error is not None:
                    raise error
                return now
            self.patience.pause()

    def require(self, what: str, left: Callable[[], str]) -> None:
        """Wait until nothing is left. Raises Differs after the limit."""
        found = self.wait(what, left)
        if found:
            raise Differs(f"{what}: {found}")

    def apply(self, table: ScratchTable, what: str, files: Sequence[pa.Table], expected: pa.Table) -> None:
        """Publish the files, and wait until the mirror has the expected rows. Raises Differs."""
        table.land(*files)
        self.shows(table, what, expected)

    def shows(self, table: ScratchTable, what: str, expected: pa.Table) -> None:
        """Wait until the mirror has the expected rows. Raises Differs, with Fabric's state of the table."""
        left = self.wait(what, lambda: self.service.mirrored(table.name).differences(expected))
        if left:
            raise Differs(f"{what}: {left}; {self.state(table)}")

    def stays(self, table: ScratchTable, what: str, expected: pa.Table) -> None:
        """Require the same rows after two files of another table were applied one after another. Raises Differs."""
        control, rows = self.table("_control"), pa.table({"id": pa.array([1, 2], pa.int64())})
        for count in (1, 2):
            self.apply(control, f"{what}, control file {count}", [rows[count - 1 : count]], rows[:count])
        left = self.service.mirrored(table.name).differences(expected)
        if left:
            raise Differs(f"{what}: {left}; {self.state(table)}")

    def reported(self, table: ScratchTable) -> ReportedTable | None:
        """Return what Fabric reports about the table; None if it doesn't list it."""
        full = self.service.full_name
        listed = self.service.client.tables(self.service.database)
        return next((one for one in listed if full(one.name) == full(table.name)), None)

    def state(self, table: ScratchTable, wanted: TableState | None = None) -> str:
        """Return Fabric's state of the table, and its error, as part of a sentence; empty if it is the wanted one."""
        found = self.reported(table)
        if found is None:
            return "Fabric does not list the table"
        error = f" ({found.error_code}: {found.message})" if found.error_code or found.message else ""
        return "" if found.state == wanted else f"the state of the table is {found.state}{error}"

    def propose(self, selected: str, table: ScratchTable) -> None:
        """Propose a statement for the SQL endpoint; it is for people, and never executed here."""
        full = self.service.full_name(table.name)
        self.statements.append(f"SELECT {selected} FROM [{full.schema}].[{full.table}];")  # noqa: S608
