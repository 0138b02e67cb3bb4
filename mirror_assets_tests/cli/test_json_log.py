"""`mirror-assets --log json`: what goes wrong is a line of JSON, too."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror_assets.cli.json_log import use_json
from mirror_assets.cli.main import main
from mirror_assets.cli.output import note
from mirror_assets.cli.run_job import JsonLines
from mirror_assets.redaction import hide
from mirror_assets.telemetry.scope import slice_scope, table_scope


@pytest.fixture(autouse=True)
def _text_again() -> Iterator[None]:
    yield
    use_json(is_on=False)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_an_error_has_its_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--log", "json", "status", "--config", str(tmp_path / "none.yaml")]) == 2
    (line,) = lines(capsys)
    assert (line["level"], line["code"], line["table"]) == ("error", "config_invalid", None)


def test_a_wrong_command_line_is_a_line_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--log", "json", "status", "--unknown"])
    assert ended.value.code == 2
    (line,) = lines(capsys)
    assert "--unknown" in str(line["message"])


def test_a_defect_is_one_line_with_where_it_was_raised(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hide("PLANTED", "hunter2-hunter2")

    def broken(*_: object, **__: object) -> None:
        raise ValueError("two\nlines, one byte that is not text: \udc80, and hunter2-hunter2")

    monkeypatch.setattr("mirror_assets.cli.show.status", broken)
    assert main(["--log", "json", "status"]) == 1
    (line,) = lines(capsys)
    assert (line["level"], line["code"]) == ("error", "unexpected")
    assert "ValueError: two\nlines" in str(line["message"])
    assert "in broken" in str(line["exception"])
    assert "hunter2" not in str(line)


def test_what_libraries_say_is_a_line_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    use_json(is_on=True)
    logging.getLogger("azure.core").warning("a line,\nand another")
    logging.getLogger("azure.core").info("nobody reads this")
    with pytest.warns(UserWarning, match="old"):
        warnings.warn("old", stacklevel=1)
    (line,) = lines(capsys)
    assert (line["level"], line["logger"], line["message"]) == ("warning", "azure.core", "a line,\nand another")


def test_the_slice_stays_for_the_line_about_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    use_json(is_on=True)
    handler = JsonLines()
    with table_scope("shop.orders"):
        with slice_scope("shop.orders", "1.1-1", "abc") as scope:
            scope.attempt = "a1"
        handler.emit(logging.LogRecord("x", logging.ERROR, "x", 1, "it failed", None, None))
    handler.emit(logging.LogRecord("x", logging.INFO, "x", 1, "later", None, None))
    handler.emit(logging.LogRecord("x", logging.DEBUG, "x", 1, "nobody reads this", None, None))
    failed, later = lines(capsys)
    told = (failed["table"], failed["slice"], failed["attempt"], failed["trace_id"])
    assert told == ("shop.orders", "1.1-1", "a1", "abc")
    assert (later["table"], later["slice"]) == (None, None)


def test_no_line_has_a_secret_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    hide("PLANTED", "hunter2-hunter2")
    use_json(is_on=True)
    note("error: hunter2-hunter2 was refused")
    (line,) = lines(capsys)
    assert (line["level"], line["message"]) == ("error", "${PLANTED} was refused")
