"""Steps of histories that rewrite the newest commit by hand, or add one, as other writers would have written it.

The table's rows stay what Delta's reader finds. Each rewriting gets the actions of a commit, and returns others; None
where it doesn't fit.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

from mirror_assets_tests.worlds.histories.steps import Step
from mirror_assets_tests.worlds.histories.table import Action, Table, actions_in

Actions = list[Action]
Rewrite = Callable[[Table, Actions], "Actions | bytes | None"]


def _info(actions: Actions) -> Action | None:
    return next((action["commitInfo"] for action in actions if action.get("commitInfo")), None)


def _is_timed(actions: Actions) -> bool:
    return "inCommitTimestamp" in (_info(actions) or {})


def _with_info(change: Callable[[Action], Action]) -> Rewrite:
    """Change commitInfo, except the parts that are protocol."""

    def rewrite(_: Table, actions: Actions) -> Actions | None:
        info = _info(actions)
        if info is None:
            return None
        kept = {name: info[name] for name in ("inCommitTimestamp",) if name in info}
        return [
            {"commitInfo": {**kept, **change(info), **kept}},
            *(action for action in actions if "commitInfo" not in action),
        ]

    return rewrite


def _zeros(info: Action) -> Action:
    metrics = info.get("operationMetrics") or {}
    return info | {
        "operationMetrics": dict.fromkeys(metrics, "0")
        | {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"}
    }


def _merge_of_nothing(info: Action) -> Action:
    return _zeros(info) | {"operation": "MERGE"}


def _without_info(_: Table, actions: Actions) -> Actions | None:
    return None if _is_timed(actions) else [action for action in actions if "commitInfo" not in action]


def _info_of_null(_: Table, actions: Actions) -> Actions | None:
    return (
        None
        if _is_timed(actions)
        else [{"commitInfo": None}, *(action for action in actions if "commitInfo" not in action)]
    )


def _spelled_out(_: Table, actions: Actions) -> Actions:
    nulls = dict.fromkeys(("add", "remove", "cdc", "metaData", "protocol", "commitInfo", "txn", "domainMetadata"))
    return [{**nulls, **action} for action in actions]


def _other_lines(_: Table, actions: Actions) -> bytes:
    return (
        "\r\n".join(json.dumps(action, indent=None, separators=(" , ", " : ")) for action in actions) + "\r\n\r\n"
    ).encode()


def _unknown(_: Table, actions: Actions) -> Actions:
    return [
        actions[0],
        {"actionOfTomorrow": {"path": "x"}},
        *(_each(actions[1:], "add", lambda add: add | {"fieldOfTomorrow": [1]})),
    ]


def _each(actions: Actions, kind: str, change: Callable[[Action], Action]) -> Actions:
    return [{kind: change(action[kind])} if action.get(kind) else action for action in actions]


def _on_adds(change: Callable[[Action], Action]) -> Rewrite:
    def rewrite(_: Table, actions: Actions) -> Actions | None:
        return _each(actions, "add", change) if any(action.get("add") for action in actions) else None

    return rewrite


def _on_removes(change: Callable[[Action], Action]) -> Rewrite:
    def rewrite(_: Table, actions: Actions) -> Actions | None:
        return _each(actions, "remove", change) if any(action.get("remove") for action in actions) else None

    return rewrite


def _without(*names: str) -> Callable[[Action], Action]:
    return lambda action: {name: value for name, value in action.items() if name not in names}


def _no_statistics(add: Action) -> Action:
    """A vector's file has to have them."""
    return add if add.get("deletionVector") else _without("stats")(add)


def _statistics(change: Callable[[Action], Action]) -> Callable[[Action], Action]:
    def changed(add: Action) -> Action:
        stats = json.loads(add.get("stats") or "null")
        return add | {"stats": json.dumps(change(stats))} if isinstance(stats, dict) else add

    return changed


def _counted(factor: float) -> Rewrite:
    """Wrong numbers of rows. From now on, no commit may hide behind a right sum."""

    def change(add: Action) -> Action:
        wrong = _statistics(
            lambda stats: stats | {"numRecords": int(stats.get("numRecords", 0) * factor) + int(factor)}
        )
        return add if add.get("deletionVector") else wrong(add)

    def rewrite(table: Table, actions: Actions) -> Actions | bytes | None:
        table.counts_are_right = False
        return _on_adds(change)(table, actions)

    return rewrite


def _limits(stats: Action) -> Action:
    """Wrong minima and maxima of columns that are no key; by their physical names, whatever these are."""

    def wrong(values: Action) -> Action:
        return {
            name: 0 if isinstance(value, (int, float)) and not isinstance(value, bool) and name != "id" else value
            for name, value in values.items()
        }

    return stats | {
        name: wrong(stats[name]) for name in ("minValues", "maxValues") if isinstance(stats.get(name), dict)
    }


def _wrong_limits(table: Table, actions: Actions) -> Actions | bytes | None:
    """Only where columns have their own names in files: a wrong minimum of a key would let MERGE insert it twice."""
    if table.log.configuration.get("delta.columnMapping.mode", "none") != "none":
        return None
    return _on_adds(_statistics(_limits))(table, actions)


def _no_data_change(table: Table, actions: Actions) -> Actions | None:
    """A claim that is seen to be wrong, because the commit adds or removes rows in sum."""
    if not table.counts_are_right:
        return None
    added, removed = (_records(actions, kind) for kind in ("add", "remove"))
    if added is None or removed is None or added == removed:
        return None
    return [
        {kind: value | {"dataChange": False}} if kind in ("add", "remove") else {kind: value}
        for action in actions
        for kind, value in action.items()
    ]


def _records(actions: Actions, kind: str) -> int | None:
    total = 0
    for action in actions:
        if found := action.get(kind):
            stats = json.loads(found.get("stats") or "null")
            if not isinstance(stats, dict) or not isinstance(stats.get("numRecords"), int):
                return None
            total += stats["numRecords"] - (found.get("deletionVector") or {}).get("cardinality", 0)
    return total


def _data_change(_: Table, actions: Actions) -> Actions | None:
    """Other writers say so of an OPTIMIZE."""
    if not any((action.get(kind) or {}).get("dataChange") is False for action in actions for kind in ("add", "remove")):
        return None
    return [
        {kind: value | {"dataChange": True}} if kind in ("add", "remove") else {kind: value}
        for action in actions
        for kind, value in action.items()
    ]


def _removed_twice(_: Table, actions: Actions) -> Actions | None:
    removes = [action for action in actions if action.get("remove")]
    return [*actions, *copy.deepcopy(removes)] if removes else None


def _added_twice(_: Table, actions: Actions) -> Actions | None:
    adds = [action for action in actions if action.get("add")]
    return [*actions, *copy.deepcopy(adds)] if adds else None


def _absolute(table: Table, actions: Actions) -> Actions | bytes | None:
    if any(action.get("cdc") for action in actions):
        return None
    return _on_adds(
        lambda add: add | {"path": f"file://{table.path}/{add['path']}"} if "/" not in add["path"] else add
    )(table, actions)


def _rewritten(rewrite: Rewrite, name: str) -> Callable[[Table], None]:
    def do(table: Table) -> None:
        newest = table.newest()
        if newest is None:
            return
        actions = actions_in(newest)
        result = rewrite(table, copy.deepcopy(actions))
        if result is not None and result != actions:
            table.note(f"version {int(newest.stem)} rewritten: {name}")
            table.rewrite(result)

    return do


def _checksum(text: str) -> Callable[[Table], None]:
    def do(table: Table) -> None:
        if newest := table.newest():
            table.note(f"version {int(newest.stem)} has a checksum file {text!r}")
            file = newest.with_suffix(".crc")
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
            file.unlink(missing_ok=True)
            file.write_text(text)
            table.changed_by_others()

    return do


def _live(table: Table) -> Action | None:
    files = [add for add in table.log.files.values() if add.get("dataChange") is not None]
    return table.rng.choice(files) if files else None


def _as_remove(add: Action) -> Action:
    kept = {
        name: add[name]
        for name in (
            "path",
            "partitionValues",
            "size",
            "deletionVector",
            "baseRowId",
            "defaultRowCommitVersion",
            "stats",
        )
        if name in add
    }
    return {
        "remove": {**kept, "deletionTimestamp": 1_900_000_000_000, "dataChange": True, "extendedFileMetadata": True}
    }


def _add_live_file(table: Table) -> None:
    if add := _live(table):
        table.add_commit({"add": add | {"dataChange": True}})


def _remove_and_add_later(table: Table) -> None:
    if add := _live(table):
        table.add_commit(_as_remove(add), operation="DELETE")
        table.add_commit({"add": add | {"dataChange": True}}, operation="RESTORE")


def _remove_file(table: Table) -> None:
    if add := _live(table):
        table.add_commit(_as_remove(add), operation="DELETE")


def _remove_and_add_at_once(table: Table) -> None:
    if add := _live(table):
        table.add_commit(_as_remove(add), {"add": add | {"dataChange": True}})


def _add_and_remove_at_once(table: Table) -> None:
    """The last action counts: the file is removed."""
    if add := _live(table):
        table.add_commit({"add": add | {"dataChange": True}}, _as_remove(add), operation="DELETE")


def _remove_in_another_spelling(table: Table) -> None:
    """It names no file for Delta's readers."""
    add = _live(table)
    if add and not add["path"].startswith("file:"):
        respelled = {"path": f"file://{table.path}/{add['path']}"}
        table.add_commit({"remove": _as_remove(add)["remove"] | respelled}, operation="DELETE")


def _add_without_its_vector(table: Table) -> None:
    """All rows of the file are shown again; taken back if another file has one of their keys."""
    found = [add for add in table.log.files.values() if add.get("deletionVector")]
    if found:
        add = table.rng.choice(found)
        bare = {name: value for name, value in add.items() if name != "deletionVector"}
        table.add_commit(_as_remove(add), {"add": bare | {"dataChange": True}}, operation="RESTORE")
        if table.has_a_key_twice():
            table.take_back()


def _step(name: str, rewrite: Rewrite, weight: int = 2) -> Step:
    return Step(name, _rewritten(rewrite, name), weight, appends=True)


REWRITINGS = (
    _step("commitInfo missing", _without_info),
    _step("commitInfo null", _info_of_null),
    _step("commitInfo without fields", _with_info(lambda _: {"operation": None})),
    _step("commitInfo with nulls", _with_info(dict.fromkeys)),
    _step("metrics that say 0", _with_info(_zeros), 4),
    _step("a merge of nothing", _with_info(_merge_of_nothing), 4),
    _step("actions of null", _spelled_out),
    _step("other blanks and line ends", _other_lines, 1),
    _step("unknown actions and fields", _unknown),
    _step("no statistics", _on_adds(_no_statistics), 3),
    _step("too few rows in statistics", _counted(0.5)),
    _step("too many rows in statistics", _counted(3)),
    _step("wrong limits in statistics", _wrong_limits, 3),
    _step("a change that says it is none", _no_data_change, 3),
    _step("no change that says it is one", _data_change, 3),
    _step("removes without partition values", _on_removes(_without("partitionValues")), 3),
    _step(
        "removes without optional fields",
        _on_removes(_without("partitionValues", "size", "extendedFileMetadata", "stats", "tags")),
        3,
    ),
    _step("files removed twice", _removed_twice),
    _step("files added twice", _added_twice),
    _step("absolute paths", _absolute),
    Step("checksum file cut off", _checksum('{"tableSizeBytes":123,"numFi'), 2, appends=True),
    Step("checksum file with an array", _checksum("[]"), 1, appends=True),
    Step("live file added", _add_live_file, 2, appends=True),
    Step("file removed and added later", _remove_and_add_later, 2),
    Step("file removed", _remove_file, 1),
    Step("file removed and added at once", _remove_and_add_at_once, 2),
    Step("file added and removed at once", _add_and_remove_at_once, 2),
    Step("file removed in another spelling", _remove_in_another_spelling, 2),
    Step("file added without its vector", _add_without_its_vector, 2),
)
