"""`mirror-assets demo`, the first command that anybody runs: all of it, on a small lake."""

from __future__ import annotations

import json

from mirror_assets.cli.exit import Exit
from mirror_assets_tests.demo.conftest import TABLES, Demo


def test_every_table_is_mirrored_and_equal_to_its_source(demo: Demo) -> None:
    assert demo.exit is Exit.FINE, demo.told
    results = {line["table"]: line["result"] for line in json.loads(demo.shown)}
    assert results == {f"nycflights.{table}": "equal to source" for table in TABLES}


def test_all_that_checks_warn_of_is_the_one_column_that_direct_lake_cannot_load(demo: Demo) -> None:
    (found,) = [line for line in demo.told if line.startswith(("warning", "error"))]
    assert found.startswith("warning: source/nycflights/airports: types: location is complex")
