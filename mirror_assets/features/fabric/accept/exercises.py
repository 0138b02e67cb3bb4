"""The exercises. The name of each is that of its function, and the docstring is what is expected."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa

from mirror_assets.errors import RetryError, SettingError, StopError
from mirror_assets.features.fabric.accept.bench import Differs, ExerciseBench, NotRun
from mirror_assets.features.fabric.accept.scratch import ScratchTable, is_scratch, parquet
from mirror_assets.features.fabric.database import start_mirroring
from mirror_assets.landing.folders import table_names
from mirror_assets.markers import ROW_MARKER, Marker
from mirror_assets.monitoring import DatabaseState, TableState

_START_TRIES = 100
_NO_SETTING = "No setting: the defaults fit."
_REPORT = "Attach this report to a bug report, and mirror no table with such changes until it is resolved."
_TRY_SQL = "Try the statements at the SQL endpoint, which has limits of its own."


@dataclass(frozen=True)
class Exercise:
    """A question about Fabric: `fits` follows if it does what is `expected`, `otherwise` if not.

    `run` returns what was seen, and raises Differs and NotRun. One that `is_alone` runs after all others, because it
    affects all tables of the database.
    """

    name: str
    expected: str
    otherwise: str
    fits: str
    is_alone: bool
    run: Callable[[ExerciseBench], str]


EXERCISES = list[Exercise]()
_Run = Callable[[ExerciseBench], str]


def _exercise(otherwise: str, fits: str = _NO_SETTING, *, is_alone: bool = False) -> Callable[[_Run], _Run]:
    """Add the function to the exercises."""

    def add(run: _Run) -> _Run:
        expected = " ".join(inspect.cleandoc(run.__doc__ or "").split())
        EXERCISES.append(Exercise(run.__name__, expected, otherwise, fits, is_alone, run))
        return run

    return add


def _table(schema: pa.Schema, *rows: Sequence[object]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema)


def _rows(*rows: tuple[int, str | None]) -> pa.Table:
    return _table(pa.schema([("id", pa.int64()), ("value", pa.string())]), *rows)


def _marked(rows: pa.Table, *markers: Marker) -> pa.Table:
    return rows.append_column(ROW_MARKER, pa.array(markers, pa.int32()))


_ONE, _SECOND, _THIRD = _rows((1, "a")), _rows((2, "b")), _rows((3, "c"))
_TWO = _rows((1, "a"), (2, "b"))
_THREE = _rows((1, "a"), (2, "b"), (3, "c"))
_UPDATED = _marked(_rows((1, "new")), Marker.UPDATE)


def _changed(
    bench: ExerciseBench,
    files: Sequence[pa.Table],
    expected: pa.Table,
    first: pa.Table = _TWO,
    table: ScratchTable | None = None,
) -> str:
    """Load the first rows, land files with changes, and wait for the expected rows."""
    table = table or bench.table()
    bench.apply(table, "first load", [first], first)
    bench.apply(table, "changes", files, expected)
    return f"rows as expected: {expected.num_rows}"


@_exercise("Check that the capacity is active and that mirroring runs: nothing else can be judged before this is.")
def first_load(bench: ExerciseBench) -> str:
    """A file without row markers loads its rows."""
    bench.apply(bench.table(), "first load", [_THREE], _THREE)
    return "rows as expected: 3"


@_exercise(_REPORT)
def update(bench: ExerciseBench) -> str:
    """Marker 1 replaces the row with its key."""
    return _changed(bench, [_UPDATED], _rows((1, "new"), (2, "b")))


@_exercise(f"{_REPORT} Tables with `changes: append_only` aren't affected.")
def delete(bench: ExerciseBench) -> str:
    """Marker 2 deletes the row with its key."""
    return _changed(bench, [_marked(_rows((1, None)), Marker.DELETE)], _SECOND)


@_exercise("Don't use `compact: true` and `repair`, which land upserts: rebuild such tables instead.")
def upsert(bench: ExerciseBench) -> str:
    """Marker 4 replaces an existing row, and inserts a new one."""
    upserts = _marked(_rows((1, "new"), (3, "c")), Marker.UPSERT, Marker.UPSERT)
    return _changed(bench, [upserts], _rows((1, "new"), (2, "b"), (3, "c")))


@_exercise(f"{_REPORT} Changes of key columns are affected.")
def key_change(bench: ExerciseBench) -> str:
    """A delete of the old key, followed by an insert of the new one in the same file, changes the key."""
    moved = _marked(_rows((1, None), (9, "a")), Marker.DELETE, Marker.INSERT)
    return _changed(bench, [moved], _rows((2, "b"), (9, "a")))


@_exercise("Add a column to the source that alone identifies a row, and set `keys` to it.")
def composite_keys(bench: ExerciseBench) -> str:
    """A row is found by all columns of its key: one with an equal first column stays."""
    schema = pa.schema([("region", pa.string()), ("id", pa.int64()), ("value", pa.string())])
    others = (("eu", 2, "b"), ("us", 1, "c"))
    first, after = (_table(schema, ("eu", 1, value), *others) for value in ("a", "new"))
    changed = _marked(_table(schema, ("eu", 1, "new")), Marker.UPDATE)
    return _changed(bench, [changed], after, first, bench.table(keys=("region", "id")))


@_exercise("Don't mirror a table before it has rows: an empty table lands a file without rows.")
def zero_rows(bench: ExerciseBench) -> str:
    """A file without rows changes nothing, and the next file is applied."""
    return _changed(bench, [_rows(), _THIRD], _THREE)


@_exercise("Run `mirror-assets rebuild` for a table after a column is added to its source.")
def added_column(bench: ExerciseBench) -> str:
    """A new column of a later file is added, and is NULL in earlier rows."""
    schema = pa.schema([("id", pa.int64()), ("value", pa.string()), ("added", pa.int32())])
    added = _table(schema, (3, "c", 7))
    return _changed(bench, [added], _table(schema, (1, "a", None), (2, "b", None), (3, "c", 7)))


@_exercise("Set `on_drop_column: rebuild`.", "`on_drop_column: keep`, the default, fits.")
def dropped_column(bench: ExerciseBench) -> str:
    """A column that a later file lacks remains, and is NULL in later rows."""
    return _changed(bench, [_THIRD.select(["id"])], _rows((1, "a"), (2, "b"), (3, None)))


@_exercise("If the file was applied, attach this report to a bug report.", "Choose what follows by `on_break`.")
def type_change(bench: ExerciseBench) -> str:
    """A column that changes from int to bigint fails the table: Fabric reports it, and the rows stay."""
    before, after = (
        _table(pa.schema([("id", pa.int64()), ("value", kind)]), (1, value))
        for kind, value in ((pa.int32(), 1), (pa.int64(), 2**40))
    )
    table = bench.table()
    bench.apply(table, "first load", [before], before)
    table.land(_marked(after, Marker.UPDATE))
    left = bench.wait("the table fails", lambda: bench.state(table, TableState.FAILED))
    if left:
        kind = bench.service.mirrored(table.name).types.get("value")
        raise Differs(f"{left}, and the type of the column in the Delta files is {kind}")
    bench.stays(table, "after the change", before)
    return bench.state(table)


_MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123456, timezone.utc)
_TYPED: Sequence[tuple[str, pa.DataType, object]] = (
    ("tinyint", pa.int8(), -128),
    ("smallint", pa.int16(), 32767),
    ("int", pa.int32(), -(2**31)),
    ("bigint", pa.int64(), 2**63 - 1),
    ("float", pa.float32(), 0.5),
    ("double", pa.float64(), 1e300),
    ("boolean", pa.bool_(), True),
    ("decimal(9,2)", pa.decimal128(9, 2), Decimal("1234567.89")),
    ("decimal(38,18)", pa.decimal128(38, 18), Decimal("12345678901234567890.123456789012345678")),
    ("string", pa.string(), "ü€😀"),
    ("binary", pa.binary(), b"\x00\xff"),
    ("date", pa.date32(), date(1582, 10, 4)),
    ("timestamp", pa.timestamp("us", tz="UTC"), _MOMENT),
    ("timestamp_ntz", pa.timestamp("us"), _MOMENT.replace(tzinfo=None)),
)


@_exercise(
    "Convert columns that differ by expressions in `columns`. If timestamp_ntz differs, keep `timestamp_ntz: utc`.",
    f"`timestamp_ntz: as_is` keeps the type in OneLake. {_TRY_SQL}",
)
def column_types(bench: ExerciseBench) -> str:
    """Each column has the type and the value with which it landed, in the Delta files in OneLake."""
    landed = {f"c{number}": name for number, (name, _, _) in enumerate(_TYPED)}
    fields = [(column, kind) for column, (_, kind, _) in zip(landed, _TYPED, strict=True)]
    values = [value for _, _, value in _TYPED]
    loaded = _table(pa.schema([("id", pa.int64()), *fields]), (1, *values), (2, *(None for _ in values)))
    table = bench.table()
    for column, name in landed.items():
        bench.propose(f"[id], [{column}] AS [{name}]", table)
    named = f"WHERE TABLE_NAME = '{table.name.table}'"
    bench.statements.append(f"SELECT COLUMN_NAME, DATA_TYPE FROM INFORMATION_SCHEMA.COLUMNS {named};")  # noqa: S608
    table.land(loaded)
    bench.shows(table, "first load", loaded.select(["id"]))
    found = bench.service.mirrored(table.name)
    differing = [
        f"{name} is {now}" for column, name in landed.items() if (now := found.types.get(column, "left out")) != name
    ]
    same = [column for column, name in landed.items() if found.types.get(column) == name]
    differing += filter(None, [found.differences(loaded.select(same))])
    if differing:
        raise Differs("; ".join(differing))
    return f"unchanged: {', '.join(landed.values())}"


_TEXTS = {
    "8,000 characters": "x" * 8000,
    "8,001 characters": "x" * 8001,
    "4,001 letters of 2 bytes": "ü" * 4001,
    "3,000,000 characters": "x" * 3_000_000,
}


@_exercise("Shorten such a column by an expression in `columns`, or leave it out there.", _TRY_SQL)
def large_texts(bench: ExerciseBench) -> str:
    """Texts of more than 8,000 bytes, and of 3 MB, have their full length in the Delta files."""
    loaded, table = _rows(*enumerate(_TEXTS.values())), bench.table()
    bench.propose("[id], LEN([value]), DATALENGTH([value])", table)
    table.land(loaded)
    bench.shows(table, "first load", loaded.select(["id"]))
    found = {row["id"]: str(row.get("value")) for row in bench.service.mirrored(table.name).rows}
    cut = [f"{what} became {len(found[at])}" for at, (what, text) in enumerate(_TEXTS.items()) if found[at] != text]
    if cut:
        raise Differs("; ".join(cut))
    return f"unchanged: {', '.join(_TEXTS)}"


@_exercise(f"Let slices have one file each, by `files.target_rows`. {_REPORT}")
def many_files(bench: ExerciseBench) -> str:
    """20 files that land at once are all applied."""
    files = [_rows((number, "x")) for number in range(1, 21)]
    bench.apply(bench.table(), "20 files", files, pa.concat_tables(files))
    return "the rows of all 20 files"


@_exercise("Rebuild each table whose check `file_continuity` fails.")
def gap(bench: ExerciseBench) -> str:
    """A file after a missing number waits. Once the missing file lands, both are applied."""
    table = bench.table()
    bench.apply(table, "first load", [_ONE], _ONE)
    table.land_raw(3, parquet(_THIRD))
    bench.stays(table, "file 2 is missing", _ONE)
    table.land_raw(2, parquet(_SECOND))
    bench.shows(table, "file 2 has landed", _THREE)
    return "file 3 waited for file 2, and then both were applied"


@_exercise("Rebuild a table after a damaged file; `replication.error_seconds` reports the files that wait.")
def damaged_file(bench: ExerciseBench) -> str:
    """A damaged file fails the table, and later files wait. A valid file in its place heals it."""
    table, valid = bench.table(), parquet(_SECOND)
    bench.apply(table, "first load", [_ONE], _ONE)
    table.land_raw(2, valid[: len(valid) // 2])
    table.land_raw(3, parquet(_THIRD))
    bench.stays(table, "file 2 is damaged", _ONE)
    unreported = bench.wait("the damage is reported", lambda: bench.state(table, TableState.FAILED))
    table.land_raw(2, valid)
    bench.shows(table, "file 2 is replaced", _THREE)
    if unreported:
        raise Differs(f"all files were applied after the replacement, but before it, {unreported}")
    return "the table failed, and all files were applied after the replacement"


@_exercise("Prefer `repair` to `rebuild`, and compare with `mirror-assets reconcile` after each rebuild.")
def recreate(bench: ExerciseBench) -> str:
    """A table disappears with its folder. Created again, it has only the new rows, and counts them from 0."""
    table = bench.table()
    bench.apply(table, "first load", [_TWO], _TWO)
    table.drop()
    bench.require("the table is dropped", lambda: "it is listed" if bench.reported(table) else "")
    bench.require("its files are deleted", lambda: "they exist" if bench.service.mirrored(table.name).types else "")
    bench.apply(table, "the table is back", [_THIRD], _THIRD)
    bench.require("its rows are counted", lambda: _miscounted(bench, table, 1))
    return "dropped, and created again with the new row alone"


def _miscounted(bench: ExerciseBench, table: ScratchTable, expected: int) -> str:
    found = bench.reported(table)
    count = found.processed_rows if found else None
    return "" if count == expected else f"processedRows is {count}, not {expected}"


@_exercise("Give the tables in `tables` names without a schema.")
def schema_folder(bench: ExerciseBench) -> str:
    """A table in a folder `x.schema` is mirrored in the schema x."""
    return _changed(bench, [_UPDATED], _rows((1, "new")), _ONE, bench.table(in_schema=True))


@_exercise("Rename such tables in `tables`, and such columns in `columns`.", _TRY_SQL)
def odd_names(bench: ExerciseBench) -> str:
    """Names of tables and columns with blanks, umlauts and punctuation stay, and an update finds its row."""
    # This project refuses columns with the last name, because documents say so of tables at the SQL endpoint.
    names = ("größe in m", "a,;{}()=b", "\"'#%+:?`")
    schema = pa.schema([("id", pa.int64()), *((name, pa.string()) for name in names)])
    first, changed = _table(schema, (1, "a", "b", "c")), _table(schema, (1, "new", None, "c"))
    table = bench.table(" ü-ß (1)")
    bench.propose(", ".join(f"[{name}]" for name in schema.names), table)
    return _changed(bench, [_marked(changed, Marker.UPDATE)], changed, first, table)


@_exercise("If rows are miscounted, `reconcile` may wait for them. Without a latency, rely on `lag.warn_seconds`.")
def states_and_latency(bench: ExerciseBench) -> str:
    """Fabric reports Replicating, counts each landed row, also a delete without a row, and shows the latency."""
    table, absent = bench.table(), _marked(_rows((1, "new"), (8, None)), Marker.UPDATE, Marker.DELETE)
    _changed(bench, [absent], _rows((1, "new"), (2, "b")), table=table)
    bench.require("its rows are counted", lambda: _miscounted(bench, table, 4))
    bench.require("its state", lambda: bench.state(table, TableState.REPLICATING))
    found = bench.reported(table)
    if found is None or found.last_sync is None or found.sync_latency_seconds is None:
        raise Differs("lastSyncDateTime or lastSyncLatencyInSeconds is missing")
    return f"Replicating, 4 rows counted, lastSyncLatencyInSeconds {found.sync_latency_seconds}"


@_exercise("Leave `mirror.fabric.refresh_sql_endpoint` off.", "`mirror.fabric.refresh_sql_endpoint: true` works.")
def endpoint_refresh(bench: ExerciseBench) -> str:
    """The SQL endpoint reloads the metadata of a table, and reports that it did."""
    table, service = bench.table(), bench.service
    bench.apply(table, "first load", [_ONE], _ONE)
    endpoint, name = service.client.sql_endpoint(service.database), service.full_name(table.name)

    def refused() -> str:
        try:
            (found,) = service.client.refresh_metadata(endpoint, [name])
        except (StopError, SettingError, ValueError) as error:
            raise Differs(str(error)) from error
        return f"{found.status} {found.message}" if found.has_failed else ""

    bench.require("the endpoint refreshes the table", refused)
    return "the endpoint reports that it did"


@_exercise("After mirroring was stopped, rebuild every table.", is_alone=True)
def stop_and_start(bench: ExerciseBench) -> str:
    """Nothing is applied while mirroring is stopped. After the start, the table has the rows of all files, once."""
    client, database, table = bench.service.client, bench.service.database, bench.table()
    others = {*(one.name for one in client.tables(database)), *table_names(bench.service.store)}
    if not all(map(is_scratch, others)):
        raise NotRun("the database has other tables, which Fabric would replay: use a database without them")
    bench.apply(table, "first load", [_ONE], _ONE)

    def other_than(state: DatabaseState) -> str:
        found = client.status(database).state
        return "" if found is state else f"the state is {found.value}, not {state.value}"

    client.stop(database)
    try:
        bench.require("mirroring is stopped", lambda: other_than(DatabaseState.STOPPED))
        table.land(_SECOND)
        for _ in range(3):
            bench.patience.pause()
        applied = bench.service.mirrored(table.name).differences(_ONE)
    finally:
        _start_again(bench)
    bench.require("mirroring is started", lambda: other_than(DatabaseState.RUNNING))
    left = bench.wait("after the start", lambda: bench.service.mirrored(table.name).differences(_TWO))
    if applied or left:
        raise Differs(f"while it was stopped: {applied or 'nothing'}; after the start: {left or 'all rows'}")
    return "nothing was applied while it was stopped; after the start, the rows of both files, once"


def _start_again(bench: ExerciseBench) -> None:
    """Start mirroring, also after an interruption: a database must not be left stopped."""
    for _ in range(_START_TRIES):
        with suppress(RetryError):  # it can't be started before it has stopped
            start_mirroring(bench.service.client, bench.service.database, replay=True)
            return
        time.sleep(bench.patience.pause_seconds)
