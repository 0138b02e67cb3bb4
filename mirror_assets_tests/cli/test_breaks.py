"""What `mirror-assets run` says when the source can't be followed, held and rebuilt, and how the mirror ends."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.cli import main
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.source.handmade import commit_file
from mirror_assets_tests.worlds.operations.features import FEED
from mirror_assets_tests.worlds.operations.source import arrow

_HOLD, _REBUILD = "on_break: hold", "on_break: rebuild"
_FEED = "delta.enableChangeDataFeed"


@pytest.fixture(scope="module")
def _begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Version 0 has no feed, version 1 switches it on, version 2 has landed."""
    lab = Lab(spark, tmp_path_factory.mktemp("breaks") / "lab")
    write_deltalake(lab.uri, arrow(range(3)))
    DeltaTable(lab.uri).alter.set_table_properties(FEED)
    _append(lab, 3)
    lab.configure()
    lab.mirror()
    lab.replicator.poll()
    return lab


@pytest.fixture
def begun(_begun: Lab, tmp_path: Path) -> Lab:
    shutil.copytree(_begun.root, tmp_path / "lab")
    return Lab(_begun.spark, tmp_path / "lab")


def _append(lab: Lab, *ids: int) -> None:
    for id_ in ids:
        write_deltalake(lab.uri, arrow([id_]), mode="append")


def _lost_commit(lab: Lab) -> None:
    _append(lab, 4, 5, 6)
    DeltaTable(lab.uri).create_checkpoint()
    commit_file(Path(lab.uri), 3).unlink()


def _replaced(lab: Lab) -> None:
    shutil.rmtree(lab.uri)
    write_deltalake(lab.uri, arrow([0]), configuration=FEED)
    _append(lab, 1, 2, 3, 4)


def _rolled_back(lab: Lab) -> None:
    """Version 2 is another one than the one that has landed."""
    commit_file(Path(lab.uri), 2).unlink()
    _append(lab, 7)


def _rolled_back_and_grown(lab: Lab) -> None:
    _rolled_back(lab)
    _append(lab, 8, 9)


def _off_and_on(lab: Lab) -> None:
    DeltaTable(lab.uri).alter.set_table_properties({_FEED: "false"})
    _append(lab, 4)
    DeltaTable(lab.uri).alter.set_table_properties({_FEED: "true"})


def _restored_to_before_the_feed(lab: Lab) -> None:
    lab.sql("RESTORE TABLE {t} TO VERSION AS OF 0")


_HAPPENED = {
    "lost commit": (_lost_commit, "commit 3 is not in the Delta log (cleaned up, or lost). Next: restore the file"),
    "replaced": (_replaced, "version 3 of the source can't follow the landed commits: the source is another table now"),
    "rolled back": (_rolled_back, "the source's log was rolled back: its commit 2 is another one than the landed one"),
    "rolled back and grown": (_rolled_back_and_grown, "the source's log was rolled back: its commit 2"),
}


def _run(lab: Lab, on_break: str) -> int:
    lab.configure(on_break)
    return main(["run", "--config", str(lab.config_file)])


@pytest.mark.parametrize(("happen", "message"), _HAPPENED.values(), ids=_HAPPENED.keys())
def test_a_break_is_held_and_reported_and_then_rebuilt(
    begun: Lab, capsys: pytest.CaptureFixture[str], happen: Callable[[Lab], None], message: str
) -> None:
    happen(begun)
    capsys.readouterr()
    assert _run(begun, _HOLD) == 1
    told = capsys.readouterr().err
    assert "error: shop.orders: " in told
    assert message in told
    assert begun.manifest().epoch == 1
    assert _run(begun, _REBUILD) == 0
    cells = [cell.strip() for cell in capsys.readouterr().out.splitlines()[-2].split("│")]
    *_, inserts, _, _, seconds, rate, result, _ = cells
    assert result == "rebuilt"
    assert int(inserts) > 0
    assert float(seconds) > 0
    assert int(rate) > 0, "a rebuild has a duration and a rate as well"
    assert begun.manifest().epoch == 2
    assert begun.is_equal


def test_a_log_that_is_unreadable_without_its_lost_commit_drops_nothing(
    begun: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    _append(begun, 4, 5)
    commit_file(Path(begun.uri), 3).unlink()
    assert _run(begun, _REBUILD) == 1
    assert "restore the file if the table is unreadable without it" in capsys.readouterr().err
    assert begun.manifest().epoch == 1


@pytest.mark.parametrize("happen", [_off_and_on, _restored_to_before_the_feed])
def test_commits_without_a_feed_are_read_by_files(
    begun: Lab, capsys: pytest.CaptureFixture[str], happen: Callable[[Lab], None]
) -> None:
    happen(begun)
    assert _run(begun, _HOLD) == 0
    told = capsys.readouterr()
    assert "mirrored, partly by files" in told.out
    assert "was read by files, because the change data feed was off at version 3" in told.err
    assert begun.manifest().epoch == 1
    assert begun.is_equal
