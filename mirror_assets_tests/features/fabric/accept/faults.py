"""The planted faults, each with the exercises that find it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from mirror_assets.features.fabric.accept.exercises import EXERCISES
from mirror_assets_tests.worlds.fabric.databases import Json
from mirror_assets_tests.worlds.fabric.planted import (
    PlantedFault,
    as_before,
    cut_texts,
    plain_names,
)

ALL = frozenset(one.name for one in EXERCISES)


def _never_failed(reported: Json) -> Json:
    return {**reported, "status": "Replicating"}


def _metrics(reported: Json) -> dict[str, object]:
    metrics = reported["metrics"]
    assert isinstance(metrics, dict)
    return metrics


def _without_latency(reported: Json) -> Json:
    return {**reported, "metrics": {**_metrics(reported), "lastSyncLatencyInSeconds": None}}


def _counts_one_more(reported: Json) -> Json:
    metrics = _metrics(reported)
    counted = metrics["processedRows"]
    assert isinstance(counted, int)
    return {**reported, "metrics": {**metrics, "processedRows": counted + 1}}


def _float_for_decimal(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_decimal(kind) else kind


FAULTS: Mapping[str, tuple[PlantedFault, frozenset[str]]] = {
    name: (fault, frozenset(found.split()))
    for name, fault, found in (
        ("nothing is applied", PlantedFault(applies_nothing=True), " ".join(ALL)),
        (
            "deletes are ignored",
            PlantedFault(read=lambda landed: landed.without_deletes()),
            "delete key_change states_and_latency",
        ),
        (
            "an upsert is applied as an insert",
            PlantedFault(read=lambda landed: landed.with_markers(lambda marker: 0 if marker == 4 else marker)),
            "upsert",
        ),
        (
            "an update is applied as an insert",
            PlantedFault(read=lambda landed: landed.with_markers(lambda marker: 0 if marker == 1 else marker)),
            "update composite_keys schema_folder odd_names states_and_latency",
        ),
        (
            "a changed key leaves the old row",
            PlantedFault(read=lambda landed: landed.without_deletes(only_beside_inserts=True)),
            "key_change",
        ),
        ("only the first column of a key is compared", PlantedFault(first_key_only=True), "composite_keys"),
        (
            "a file without rows stops the table",
            PlantedFault(read=lambda landed: landed.rows if landed.rows.num_rows else None),
            "zero_rows",
        ),
        (
            "an added column is ignored",
            PlantedFault(
                read=lambda landed: landed.of_columns(
                    lambda one: one.name in landed.first.column_names or one.name.startswith("__")
                )
            ),
            "added_column",
        ),
        (
            "a dropped column stops the table",
            PlantedFault(
                read=lambda landed: (
                    landed.rows if set(landed.first.column_names) <= set(landed.rows.column_names) else None
                )
            ),
            "dropped_column",
        ),
        ("a changed type is cast to the old one", PlantedFault(read=as_before), "type_change"),
        (
            "timestamp_ntz is left out",
            PlantedFault(
                read=lambda landed: landed.of_columns(lambda one: one.type != pa.timestamp("us")),
            ),
            "column_types",
        ),
        ("decimals become doubles", PlantedFault(read=lambda landed: landed.cast(_float_for_decimal)), "column_types"),
        ("texts are cut at 8,000", PlantedFault(read=cut_texts), "large_texts"),
        (
            "file 10 of 20 is skipped",
            PlantedFault(read=lambda landed: landed.rows[:0] if landed.number == 10 else landed.rows),
            "many_files",
        ),
        ("a gap is jumped over", PlantedFault(jumps_gaps=True), "gap"),
        ("a damaged file is skipped", PlantedFault(skips_damaged=True), "damaged_file"),
        ("a failure is never reported", PlantedFault(report=_never_failed), "damaged_file type_change"),
        ("a created table has its old rows", PlantedFault(keeps_old_rows=True), "recreate"),
        ("rows are miscounted", PlantedFault(report=_counts_one_more), "recreate states_and_latency"),
        ("folders of schemas are ignored", PlantedFault(no_schemas=True), "schema_folder"),
        ("names of columns are rewritten", PlantedFault(read=plain_names), "odd_names"),
        ("no latency is reported", PlantedFault(report=_without_latency), "states_and_latency"),
        ("the endpoint refuses the refresh", PlantedFault(refresh_code="Busy"), "endpoint_refresh"),
        ("the database can't be stopped", PlantedFault(never_stops=True), "stop_and_start"),
        ("a stopped database applies files", PlantedFault(applies_when_stopped=True), "stop_and_start"),
    )
}
