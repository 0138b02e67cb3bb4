"""Names that differ in case only: refused with both names, before anything lands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mirror_assets.cli import main
from mirror_assets.config.errors import MISTAKES
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets_tests.errors import raises, raises_row
from mirror_assets_tests.lab import Lab


def _add_column(lab: Lab, name: str) -> None:
    """Add a column as other writers do: Spark refuses names that differ in case only."""
    log = Path(lab.uri, "_delta_log")
    actions = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    metadata = next(action["metaData"] for action in actions if "metaData" in action)
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": name, "type": "string", "nullable": True, "metadata": {}})
    metadata["schemaString"] = json.dumps(schema)
    info = {"commitInfo": {"timestamp": 1, "operation": "ADD COLUMNS"}}
    lines = (json.dumps(action) for action in (info, {"metaData": metadata}))
    (log / f"{2:020d}.json").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("has_landed", [True, False])
def test_two_columns_of_the_source_are_refused(lab: Lab, capsys: pytest.CaptureFixture[str], has_landed: bool) -> None:
    if has_landed:
        lab.mirror()
    _add_column(lab, "NAME")
    with raises(SettingError, ErrorCode.SOURCE_UNFIT, "'NAME' and another column or field whose name differs from it"):
        lab.mirror()
    for command in ("preview", "feed"):
        capsys.readouterr()
        assert main([command, "shop.orders", "--config", str(lab.config_file)]) == 2
        assert "'NAME'" in capsys.readouterr().err


def test_a_new_column_of_the_source_is_not_mixed_up_with_a_computed_one(lab: Lab) -> None:
    lab.configure('columns: {label: {sql: "upper(name)", type: string}}')
    lab.mirror()
    lab.sql("ALTER TABLE {t} ADD COLUMNS (Label STRING)", "UPDATE {t} SET Label = 'x', name = 'y' WHERE id = 1")
    with raises_row(MISTAKES, match="'label' differs from the source's column 'Label' in case only"):
        lab.mirror()


def test_a_key_has_the_spelling_of_the_column(lab: Lab) -> None:
    lab.configure(keys="[ID]")
    with raises_row(MISTAKES, match=r"the source has no column .ID.; did you mean .id.\?"):
        lab.mirror()
