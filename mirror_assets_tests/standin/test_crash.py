"""A crash at any moment: whatever was cut off, the next poll leaves each file applied exactly once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import BaseModel

from mirror_assets.monitoring import TableState
from mirror_assets.standin import mirror_layout as layout_module
from mirror_assets.standin import replicator as local_module
from mirror_assets.standin import table_record as record
from mirror_assets.standin.mirror_table import MirrorTable
from mirror_assets.standin.replicator import LocalReplicator
from mirror_assets.zones import LocalStore
from mirror_assets_tests.standin.publisher import Publisher, bag, pairs


class Crash(BaseException):
    """The process dies: nothing in the project catches it."""


def _dies(*_: object, **__: object) -> None:
    raise Crash


def _then_dies(call: Callable[..., object]) -> Callable[..., None]:
    def run(*args: object, **named: object) -> None:
        call(*args, **named)
        raise Crash

    return run


def _crash(replicator: LocalReplicator) -> None:
    with pytest.raises(Crash):
        replicator.poll()


def _history(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a"), (2, "a")))
    publisher.poll()
    publisher.land(2, pairs((1, "b"), (3, "b"), (3, "b")), [1, 0, 0])
    publisher.land(3, pairs((2, None), (4, "c")), [2, 4])


_RESULT = pairs((1, "b"), (3, "b"), (3, "b"), (4, "c"))


def _assert_applied_once(publisher: Publisher) -> None:
    status = publisher.poll()
    assert (status.state, status.applied_number, status.message) == (TableState.REPLICATING, 3, None)
    assert (status.processed_rows, status.mirror_rows) == (7, 4)
    assert bag(publisher.rows()) == bag(_RESULT)
    assert publisher.landed() == ["00000000000000000003.parquet"]
    assert publisher.poll() == status


@pytest.mark.parametrize(
    ("apply", "rows"),
    [(_dies, pairs((1, "a"), (2, "a"))), (_then_dies(MirrorTable.apply), _RESULT)],
    ids=["before the data commit", "between data commit and status"],
)
def test_around_the_data_commit(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch, apply: Callable[..., None], rows: pa.Table
) -> None:
    _history(publisher)
    with monkeypatch.context() as patch:
        patch.setattr(MirrorTable, "apply", apply)
        _crash(publisher.replicator())
    assert publisher.replicator().status()[0].applied_number == 1, "the status is never newer than the data"
    assert bag(publisher.rows()) == bag(rows)
    _assert_applied_once(publisher)


@pytest.mark.parametrize("moves", [0, 1])
def test_between_status_and_the_last_move(publisher: Publisher, moves: int) -> None:
    class Dying(LocalStore):
        def rename(self, source: str, target: str, etag: str) -> None:
            if moves:
                super().rename(source, target, etag)
            raise Crash

    _history(publisher)
    _crash(LocalReplicator(Dying(publisher.zone), publisher.mirror))
    assert len(publisher.landed()) == 3 - moves
    _assert_applied_once(publisher)


def test_between_new_columns_and_data_commit(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    _history(publisher)
    publisher.land(4, pairs((5, "d")).append_column("more", [["m"]]))
    with monkeypatch.context() as patch:
        patch.setattr(MirrorTable, "_add_columns", _then_dies(MirrorTable._add_columns))
        _crash(publisher.replicator())
    assert "more" in publisher.rows().column_names
    assert publisher.poll().mirror_rows == 5
    assert sorted(publisher.rows()["more"].to_pylist(), key=str) == [None, None, None, None, "m"]


@pytest.mark.parametrize("nth", range(1, 5))
def test_at_every_write_of_the_record(publisher: Publisher, monkeypatch: pytest.MonkeyPatch, nth: int) -> None:
    _history(publisher)
    writes = 0

    def write(path: Path, document: BaseModel) -> None:
        nonlocal writes
        writes += 1
        if writes == nth:
            raise Crash
        record.write_json(path, document)

    with monkeypatch.context() as patch:
        patch.setattr(local_module, "write_json", write)
        try:
            publisher.replicator().poll()
        except Crash:
            assert writes == nth
    _assert_applied_once(publisher)


@pytest.mark.parametrize("after", [True, False])
def test_while_a_recreated_folder_is_reseeded(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    _history(publisher)
    publisher.poll()
    publisher.recreate()
    publisher.land(1, pairs((9, "new")))
    drop = layout_module.MirrorLayout.drop
    with monkeypatch.context() as patch:
        patch.setattr(layout_module.MirrorLayout, "drop", _then_dies(drop) if after else _dies)
        _crash(publisher.replicator())
    assert publisher.replicator().status()[0].state is TableState.RESEEDING
    assert publisher.poll().state is TableState.REPLICATING
    assert bag(publisher.rows()) == bag(pairs((9, "new")))


def test_while_a_dropped_table_is_deleted(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    _history(publisher)
    publisher.poll()
    publisher.delete()
    with monkeypatch.context() as patch:
        patch.setattr(layout_module.MirrorLayout, "drop", _then_dies(layout_module.MirrorLayout.drop))
        _crash(publisher.replicator())
    assert publisher.replicator().status() != (), "the record goes last"
    assert publisher.replicator().poll() == ()
    assert not (publisher.mirror / "_dropped").exists()


def test_leftovers_of_a_drop_are_swept(publisher: Publisher) -> None:
    (publisher.mirror / "_dropped" / "x").mkdir(parents=True)
    publisher.replicator().poll()
    assert not (publisher.mirror / "_dropped").exists()


def test_table_of_an_earlier_epoch_without_a_record_is_dropped(publisher: Publisher) -> None:
    _history(publisher)
    publisher.poll()
    (publisher.mirror / "_status" / "t.json").unlink()
    publisher.recreate()
    publisher.land(1, pairs((9, "new")))
    assert publisher.poll().processed_rows == 1
    assert bag(publisher.rows()) == bag(pairs((9, "new")))
