"""The command line, from run to reconcile, with its exit codes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from mirror_assets.cli import main
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.landing.run_records import read_failure
from mirror_assets.orchestration import jobs
from mirror_assets_tests.lab import TABLE, Lab


def _main(lab: Lab, *arguments: str) -> int:
    return main([*arguments, "--config", str(lab.config_file)])


def test_a_dry_run_shows_the_plan_and_lands_nothing(waiting: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    before = waiting.manifest()
    assert _main(waiting, "run", "shop.*", "--dry-run", "--json") == 0
    assert [line["slice"] for line in json.loads(capsys.readouterr().out)] == ["1.2-3", "1.4-5"]
    assert waiting.manifest() == before
    with pytest.raises(SystemExit) as ended:
        _main(waiting, "run", "--follow", "--dry-run")
    assert ended.value.code == 2


def test_run_replicate_reconcile_check(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert _main(lab, "run", "--json") == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["table"], report["slices"], report["rows"]["inserts"], report["error"]) == (
        "shop.orders",
        1,
        10,
        None,
    )
    assert report["rows_per_second"] == pytest.approx(10 / report["seconds"], rel=0.1)
    assert report["result"] == "mirrored"
    assert _main(lab, "reconcile", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["state"] == "pending"
    assert _main(lab, "replicate") == 0
    assert _main(lab, "reconcile") == 0
    assert "equal to source" in capsys.readouterr().out
    assert _main(lab, "check") == 0
    lab.change()
    capsys.readouterr()
    assert _main(lab, "plan", "--json") == 0
    assert [line["slice"] for line in json.loads(capsys.readouterr().out)] == ["1.2-3", "1.4-5"]
    assert _main(lab, "status") == 0


def test_reconcile_of_a_table_that_was_never_mirrored_says_what_to_do(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _main(lab, "reconcile") == 1
    output = capsys.readouterr()
    assert "-1" not in output.out
    assert "shop.orders: nothing of it has landed: run `mirror-assets run --table shop.orders` first" in output.err


def test_a_landing_zone_that_is_a_file_is_reported_as_a_file(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    (lab.root / "landing").touch()
    for command in ("plan", "status", "run"):
        assert _main(lab, command) == 2
        assert f"{lab.root / 'landing'} can't be used: it is a file, not a folder" in capsys.readouterr().err


def test_reconcile_fails_on_a_difference(mirrored: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    mirrored.replicator.poll()
    mirror = mirrored.root / "mirror" / "shop" / "orders"
    mirrored.spark.sql(f"UPDATE delta.`{mirror}` SET amount = -1 WHERE id = 2")
    assert _main(mirrored, "reconcile") == 1
    output = capsys.readouterr()
    assert "amount" in output.out
    assert "key «2» differs in amount" in output.err


def test_repair_shows_the_difference_and_lands_it(mirrored: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    mirrored.replicator.poll()
    mirror = mirrored.root / "mirror" / "shop" / "orders"
    mirrored.spark.sql(f"DELETE FROM delta.`{mirror}` WHERE id IN (2, 4)")
    before = mirrored.manifest()
    assert _main(mirrored, "repair", "shop.orders", "--dry-run") == 0
    assert "2 UPSERT: «id=2», «id=4»\n  0 UPDATE\n" in capsys.readouterr().err
    assert _main(mirrored, "repair", "shop.orders", "--dry-run", "--json") == 0
    lines = json.loads(capsys.readouterr().out)
    assert lines[0] == {
        "table": "shop.orders",
        "version": 5,
        "marker": "UPSERT",
        "rows": 2,
        "keys": ["«id=2»", "«id=4»"],
    }
    assert _main(mirrored, "repair", "shop.orders") == 2
    assert "add --yes" in capsys.readouterr().err
    assert mirrored.manifest() == before
    assert _main(mirrored, "repair", "shop.orders", "--yes", "--json") == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["version"], report["upserts"], report["updates"], report["deletes"]) == (5, 2, 0, 0)
    assert mirrored.is_equal
    assert _main(mirrored, "repair", "shop.orders", "--yes") == 0
    assert "nothing differs" in capsys.readouterr().err


def test_rebuild_without_a_terminal_needs_yes_and_states_its_cost(
    mirrored: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: one command that nothing had asked for dropped a healthy table in Fabric."""
    assert _main(mirrored, "rebuild", "shop.orders") == 2
    error = capsys.readouterr().err
    assert "deletes its table folder and loads 10 rows (" in error
    assert "add --yes" in error
    assert _main(mirrored, "rebuild", "shop.orders", "--dry-run", "--json") == 0
    (planned,) = json.loads(capsys.readouterr().out)
    assert (planned["table"], planned["version"], planned["rows"], planned["continues"]) == (
        "shop.orders",
        5,
        10,
        False,
    )
    assert mirrored.manifest().epoch == 1
    assert _main(mirrored, "rebuild", "shop.orders", "--yes") == 0
    assert mirrored.manifest().epoch == 2


def test_a_source_without_a_feed_exits_with_2_and_other_tables_go_on(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    text = lab.config_file.read_text()
    lab.config_file.write_text(text + "  shop.none:\n    source: ./lake/none\n    keys: [id]\n")
    assert _main(lab, "run", "--json") == 2
    orders, none = json.loads(capsys.readouterr().out)
    assert orders["slices"] == 1
    assert "none" in none["error"]["message"]
    assert none["error"]["next_step"]


def test_a_machine_without_keys_says_nothing_about_the_table(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person's run that can't read the source tells that person; the mirror in production need not wait for it."""

    def refuse(*_: object) -> None:
        raise SettingError("the source denies access", "ask for the right to read it", code=ErrorCode.STORE_DENIED)

    monkeypatch.setattr("mirror_assets.pipeline.run.plan_table", refuse)
    assert _main(lab, "run") == 2
    assert "the source denies access" in capsys.readouterr().err
    assert read_failure(lab.store, TABLE) is None


def test_status_shows_a_table_whose_source_is_gone_and_exits_as_plan_does(
    mirrored: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seen: the row was left out; then `status` had the exit code 1, and `plan` 2."""
    text = mirrored.config_file.read_text()
    mirrored.config_file.write_text(text + "  shop.none:\n    source: ./lake/none\n    keys: [id]\n")
    assert _main(mirrored, "plan", "--table", "shop.none") == 2
    capsys.readouterr()
    assert _main(mirrored, "status", "--json") == 2
    shown = capsys.readouterr()
    orders, none = json.loads(shown.out)
    assert (orders["table"], orders["landed_version"], orders["error"]) == ("shop.orders", 5, None)
    assert (none["table"], none["source_version"], none["landed_version"], none["lag_seconds"]) == (
        "shop.none",
        None,
        -1,
        None,
    )
    assert "lake/none" in none["error"]["message"]
    assert "lake/none" in shown.err
    shutil.rmtree(mirrored.uri)
    assert _main(mirrored, "status", "--json", "--table", "shop.orders") == 2
    (orders,) = json.loads(capsys.readouterr().out)
    assert (orders["landed_version"], orders["landed_files"], orders["source_version"]) == (5, 3, None)
    assert _main(mirrored, "status") == 2
    assert "shop.none" in capsys.readouterr().out


def test_status_shows_a_table_whose_manifest_cannot_be_read(mirrored: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    (mirrored.folder / "_mirror.json").write_text("{")
    assert _main(mirrored, "status", "--json") == 1
    (line,) = json.loads(capsys.readouterr().out)
    assert (line["table"], line["state"], line["landed_version"]) == ("shop.orders", "unknown", None)
    assert "_mirror.json" in line["error"]["message"]


def test_a_run_that_a_person_stops_is_canceled_and_says_that_nothing_is_lost(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Seen: Ctrl-C ended in a failed run and 68 lines of a traceback."""

    def interrupted(*_: object) -> None:
        raise dg.DagsterExecutionInterruptedError  # as Dagster turns SIGINT into

    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    monkeypatch.setattr(jobs, "mirror_tables", interrupted)
    with pytest.raises(SystemExit) as ended:
        _main(lab, "run")
    assert ended.value.code == 130
    error = capsys.readouterr().err
    assert "Stopped by a person. Nothing is lost" in error
    assert "Traceback" not in error
    with dg.DagsterInstance.get() as instance:
        (run,) = instance.get_runs()
        assert run.status is dg.DagsterRunStatus.CANCELED
        (failed,) = instance.all_logs(run.run_id, dg.DagsterEventType.STEP_FAILURE)
    assert failed.dagster_event is not None
    data = failed.dagster_event.step_failure_data.user_failure_data
    assert data is not None
    assert (data.description or "").startswith("Stopped by a person.")


_COMMAND = """
import subprocess, sys
from mirror_assets.cli.main import spark_log

with spark_log() as log:
    subprocess.run([sys.executable, "-c", "import sys; sys.stderr.write({child!r})"], check=True)
    print("ours", file=sys.stderr)
    print(log.path)
    {end}
print("after", file=sys.stderr)
"""


def _run(end: str, child: str = "from a child") -> tuple[Path, str]:
    """The log's path, and what reached the terminal."""
    command = [sys.executable, "-c", _COMMAND.format(end=end, child=child)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return Path(ran.stdout.strip()), ran.stderr


@pytest.mark.parametrize("end", ["log.keep = True", "raise KeyboardInterrupt"])
def test_a_childs_errors_are_kept_in_a_file_that_is_named(end: str) -> None:
    log, terminal = _run(end)
    assert log.read_text() == "from a child"
    assert terminal.startswith(f"ours\nmessages of Spark and other libraries are in {log}\n")
    log.unlink()


@pytest.mark.parametrize(("end", "child"), [("log.keep = False", "from a child"), ("log.keep = True", "")])
def test_a_log_file_that_is_not_needed_is_deleted(end: str, child: str) -> None:
    log, terminal = _run(end, child)
    assert not log.exists()
    assert terminal == "ours\nafter\n"
