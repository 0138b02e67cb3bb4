"""The log of a table in other forms: what Delta may write, and no writer at hand writes when asked to."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mirror_assets_tests.source.handmade import Action, commit_file

_UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def classic(table: Path, version: int) -> Path:
    """Where a checkpoint in one file is."""
    return table / "_delta_log" / f"{version:020d}.checkpoint.parquet"


def in_parts(table: Path, version: int) -> list[Path]:
    """The checkpoint in three files."""
    rows = pq.read_table(classic(table, version))
    classic(table, version).unlink()
    third = -(-len(rows) // 3)
    parts = [table / "_delta_log" / f"{version:020d}.checkpoint.{part:010d}.0000000003.parquet" for part in (1, 2, 3)]
    for index, part in enumerate(parts):
        pq.write_table(rows.slice(index * third, third), part)
    return parts


def with_sidecars(table: Path, version: int, top: str) -> list[Path]:
    """A v2 checkpoint, whose top is JSON or Parquet; the sidecars."""
    rows = pq.read_table(classic(table, version))
    classic(table, version).unlink()
    is_file = pc.or_(pc.is_valid(rows["add"]), pc.is_valid(rows["remove"]))
    files, rest = rows.filter(is_file).select(["add", "remove"]), rows.filter(pc.invert(is_file))
    sidecars = [table / "_delta_log" / "_sidecars" / f"{part}.parquet" for part in (1, 2)]
    sidecars[0].parent.mkdir()
    for index, sidecar in enumerate(sidecars):
        pq.write_table(files.take(pa.array(range(index, len(files), 2), pa.int64())), sidecar)
    path = table / "_delta_log" / f"{version:020d}.checkpoint.{_UUID}.{top}"
    named = [{"path": sidecar.name, "sizeInBytes": 1, "modificationTime": 1} for sidecar in sidecars]
    actions = [*_as_json(rest), *({"sidecar": name} for name in named)]
    if top == "json":
        path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    else:
        pq.write_table(_as_columns(rest.select(["metaData", "protocol"]), named), path)
    return sidecars


def with_parsed_statistics(table: Path, version: int) -> None:
    """The checkpoint with statistics as columns instead of JSON, as `delta.checkpoint.writeStatsAsStruct` has it."""
    rows = pq.read_table(classic(table, version))
    adds = rows["add"].combine_chunks()
    counts = [json.loads(text)["numRecords"] if text else None for text in adds.field("stats").to_pylist()]
    parsed = pa.array([None if count is None else {"numRecords": count} for count in counts])
    names = [field.name for field in adds.type if field.name != "stats"]
    columns = [*(adds.field(name) for name in names), parsed]
    column = pa.StructArray.from_arrays(columns, [*names, "stats_parsed"], mask=adds.is_null())
    pq.write_table(rows.set_column(rows.schema.get_field_index("add"), "add", column), classic(table, version))


def compacted(table: Path, first: int, last: int) -> None:
    """The commits [first, last] in one file, which has the last word on every file; they themselves go."""
    latest: dict[tuple[str, str], Action] = {}
    for version in range(first, last + 1):
        for line in commit_file(table, version).read_text().splitlines():
            action = json.loads(line)
            kind = next(iter(action))
            if kind not in ("commitInfo", "cdc"):
                latest[_subject(kind, action[kind])] = action
        commit_file(table, version).unlink()
    path = table / "_delta_log" / f"{first:020d}.{last:020d}.compacted.json"
    path.write_text("".join(f"{json.dumps(action)}\n" for action in latest.values()))


def _subject(kind: str, action: Action) -> tuple[str, str]:
    if kind not in ("add", "remove"):
        return kind, ""
    return str(action["path"]), json.dumps(action.get("deletionVector"), sort_keys=True)


def _as_columns(rest: pa.Table, sidecars: list[dict[str, object]]) -> pa.Table:
    """The actions and those of the sidecars below each other."""
    above = pa.Table.from_pylist(rest.to_pylist(), pa.schema(map(_nullable, rest.schema)))
    return pa.concat_tables([above, pa.table({"sidecar": sidecars})], promote_options="default")


def _nullable(field: pa.Field) -> pa.Field:
    """With all that is in it."""
    kind = pa.struct(map(_nullable, field.type)) if pa.types.is_struct(field.type) else field.type
    return pa.field(field.name, kind)


def _as_json(rows: pa.Table) -> list[Action]:
    found = []
    for row in rows.to_pylist():
        action = {name: value for name, value in row.items() if value is not None}
        if "metaData" in action:
            action["metaData"]["configuration"] = dict(action["metaData"]["configuration"])
            action["metaData"]["format"]["options"] = dict(action["metaData"]["format"]["options"])
        found.append(action)
    return found
