"""A rebuild drops a table: no exception may start one while the source is healthy, and every real loss does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mirror_assets.errors import MirrorError, RebuildError
from mirror_assets.landing.rebuild import RebuildStep, read_rebuild
from mirror_assets.landing.steps import drive
from mirror_assets_tests import figures
from mirror_assets_tests.errors_page import error_rows
from mirror_assets_tests.lab import TABLE, Lab
from mirror_assets_tests.pipeline.innocents import INNOCENTS, Innocent
from mirror_assets_tests.smoke import smoke_first


def test_every_error_that_ends_in_a_rebuild_has_an_innocent_twin() -> None:
    ending = {row.message for row in error_rows() if issubclass(row.raises, RebuildError)}
    assert ending == {case.taken_for.message for case in INNOCENTS}


@pytest.mark.parametrize("case", smoke_first(INNOCENTS, 8), ids=lambda case: case.name)
def test_a_healthy_source_is_never_rebuilt(mirrored: Lab, monkeypatch: pytest.MonkeyPatch, case: Innocent) -> None:
    mirrored.replicator.poll()
    with monkeypatch.context() as patch:
        case.strike(mirrored, patch)
        said = _said_by_a_run(mirrored)
    _lift(Path(mirrored.uri))
    for figure, value in (("cases", 1), ("rebuilds", _rebuilds(mirrored, case.epoch))):
        figures.report("innocent twins", figure, value, f"{case.taken_for.cause}: {case.name}")
    assert _rebuilds(mirrored, case.epoch) == 0
    assert (said is None) == (case.says is None), said
    assert case.says is None or case.says in str(said)
    assert case.says is None or str(TABLE) in str(said) or mirrored.uri in str(said), "which table it is"
    mirrored.mirror()
    assert mirrored.is_equal
    assert _rebuilds(mirrored, case.epoch) == 0


def _data_file(lab: Lab) -> Path:
    lab.sql("INSERT INTO {t} VALUES (905, 'x', 1)")
    (*_, newest) = sorted(Path(lab.uri).glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    lab.sql("OPTIMIZE {t}")  # the newest version does without it
    return newest


def _vector_file(lab: Lab) -> Path:
    lab.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableDeletionVectors = true)", "DELETE FROM {t} WHERE id = 7")
    (vector,) = Path(lab.uri).glob("deletion_vector_*.bin")
    lab.sql("OPTIMIZE {t}")  # the newest version does without it
    return vector


@pytest.mark.parametrize("make", [_data_file, _vector_file])
def test_a_proved_loss_is_rebuilt_and_names_the_file(mirrored: Lab, make: Callable[[Lab], Path]) -> None:
    mirrored.replicator.poll()
    lost = make(mirrored)
    lost.unlink()
    told = list[str]()
    mirrored.mirror(told.append)
    (why,) = [line for line in told if line.startswith("rebuild")]
    assert lost.name in why
    assert str(TABLE) in why
    assert _rebuilds(mirrored, 1) == 2, "another epoch, by a rebuild"
    assert mirrored.is_equal


def test_the_run_says_what_it_begins_again_for(mirrored: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = [case for case in INNOCENTS if "taken from a running job" in case.name]
    case.strike(mirrored, monkeypatch)
    told = list[str]()
    mirrored.mirror(told.append)
    (again,) = [line for line in told if line.startswith("again")]
    assert "blockmgr" in again
    assert str(TABLE) in again


def _said_by_a_run(lab: Lab) -> MirrorError | None:
    try:
        lab.mirror()
    except MirrorError as error:
        return error
    return None


def _lift(source: Path) -> None:
    """Bring back what the strike has taken away."""
    if (away := source.with_name("unmounted")).exists():
        source.rmdir()
        away.rename(source)
    for link in [path for path in source.rglob("*") if path.is_symlink()]:
        kept = next(path for path in (source.parent / link.name, link.with_name("kept")) if path.exists())
        kept.replace(link)


def _rebuilds(lab: Lab, epoch: int) -> int:
    """Lives that have begun since, and a rebuild under way."""
    record = drive(read_rebuild(TABLE), lab.store)
    return lab.manifest().epoch - epoch + (record is not None and record.step is not RebuildStep.DROPPED)
