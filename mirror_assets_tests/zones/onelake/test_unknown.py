"""Writes whose reply was lost, and writes that arrive late: read back, never guessed, and without a second effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.errors import UnknownOutcome
from mirror_assets.zones import PathMissing
from mirror_assets.zones.errors import STORE_UNAVAILABLE
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.worlds.onelake import (
    Action,
    Call,
    Drop,
    Fault,
    Hold,
    LoopbackItem,
    LoopbackOneLake,
    Moment,
    Operation,
    Reply,
)
from mirror_assets_tests.worlds.onelake.stores import loopback_store
from mirror_assets_tests.zones.onelake.wire import Clock

LOST = Drop(Moment.AFTER)
NEVER = Drop(Moment.BEFORE)
DATA = b"0123456789"


@pytest.fixture
def item(onelake: LoopbackOneLake) -> LoopbackItem:
    return onelake.new_item()


@pytest.fixture
def store(onelake: LoopbackOneLake, item: LoopbackItem, monkeypatch: pytest.MonkeyPatch) -> OneLakeStore:
    """A store that asks three times, and uploads what has more than four bytes by fours."""
    monkeypatch.setattr("mirror_assets.zones.onelake.onelake_store._WHOLE", 4)
    monkeypatch.setattr("mirror_assets.zones.onelake.onelake_store._CHUNK", 4)
    return loopback_store(onelake, item, Clock().policy(limit_seconds=2.0))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(DATA)
    return path


@pytest.mark.parametrize("lost", [LOST, Reply(500, "InternalError", moment=Moment.AFTER)], ids=str)
def test_a_file_whose_reply_was_lost_is_recognised(
    onelake: LoopbackOneLake, store: OneLakeStore, item: LoopbackItem, lost: Action
) -> None:
    onelake.faults.add(Fault(lost, on=Operation.PUT_BLOB))
    etag = store.create("file", b"one")
    onelake.faults.add(Fault(lost, on=Operation.PUT_BLOB))
    etag = store.replace("file", b"two", etag)
    assert item.read("file") == b"two"
    found = store.head("file")
    assert found is not None
    assert found.etag == etag


def test_the_file_of_another_is_not_taken_for_ours(
    onelake: LoopbackOneLake, store: OneLakeStore, item: LoopbackItem
) -> None:
    onelake.faults.add(Fault(NEVER, on=Operation.PUT_BLOB))
    onelake.faults.add(Fault(Call(lambda _: item.write("file", b"theirs"), Moment.BEFORE), on=Operation.PUT_BLOB))
    with pytest.raises(UnknownOutcome, match="has other content"):
        store.create("file", b"ours")
    assert item.read("file") == b"theirs"


def test_a_write_that_never_gets_an_answer_may_still_arrive(
    onelake: LoopbackOneLake, store: OneLakeStore, item: LoopbackItem
) -> None:
    onelake.faults.add(Fault(Hold(), on=Operation.PUT_BLOB, times=9))
    with pytest.raises(UnknownOutcome, match="has other content"):
        store.create("file", b"late")
    assert [held.release().status for held in onelake.faults.held] == [201, 409, 409]
    assert item.read("file") == b"late"


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.APPEND, Operation.FLUSH])
@pytest.mark.parametrize("fault", [LOST, NEVER, Hold(), Reply(503, "ServerBusy")], ids=str)
def test_an_upload_survives_a_fault_at_any_of_its_requests(
    onelake: LoopbackOneLake, store: OneLakeStore, source: Path, operation: Operation, fault: Action
) -> None:
    onelake.faults.add(Fault(fault, on=operation))
    info = store.upload(source, "file")
    assert info == store.head("file")
    for held in onelake.faults.held:
        held.release()
    assert info == store.head("file")
    assert store.read("file", 100).data == DATA


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.FLUSH])
def test_an_upload_that_gets_no_answer_ends_unknown(
    onelake: LoopbackOneLake, store: OneLakeStore, source: Path, operation: Operation
) -> None:
    onelake.faults.add(Fault(NEVER, on=operation, times=9))
    with pytest.raises(UnknownOutcome, match="has no effect yet"):
        store.upload(source, "file")


def test_a_rename_whose_reply_was_lost_is_unknown(
    onelake: LoopbackOneLake, store: OneLakeStore, item: LoopbackItem
) -> None:
    etag = store.create("a/file", b"one")
    onelake.faults.add(Fault(LOST, on=Operation.RENAME))
    with pytest.raises(UnknownOutcome):
        store.rename("a/file", "a/target", etag)
    assert item.names("a") == ["target"]


def test_a_rename_that_was_refused_for_what_is_gone_by_now_is_to_be_asked_again(
    onelake: LoopbackOneLake, store: OneLakeStore, item: LoopbackItem
) -> None:
    etag = store.create("a/file", b"one")
    item.write("a/target", b"theirs")
    onelake.faults.add(Fault(Call(lambda _: item.remove("a/target"), Moment.BEFORE), on=Operation.HEAD, nth=2))
    with pytest.raises(UnknownOutcome, match="could take effect now"):
        store.rename("a/file", "a/target", etag)
    store.rename("a/file", "a/target", etag)
    assert item.names("a") == ["target"]


def test_a_rename_out_of_a_missing_folder_or_into_one_is_no_unknown_outcome(store: OneLakeStore) -> None:
    etag = store.create("a/file", b"one")
    with pytest.raises(PathMissing):
        store.rename("a/file", "none/target", etag)
    with pytest.raises(PathMissing):
        store.rename("none/file", "a/target", etag)


def test_a_folder_that_is_being_deleted_is_asked_again(
    onelake: LoopbackOneLake, store: OneLakeStore, item: LoopbackItem
) -> None:
    store.create("a/file", b"one")
    onelake.faults.add(Fault(Reply(409, "DestinationPathIsBeingDeleted"), on=Operation.DELETE))
    store.delete_tree("a")
    assert item.names() == []


def test_a_deletion_that_comes_late_leaves_the_folder_that_was_made_again(
    onelake: LoopbackOneLake, store: OneLakeStore, item: LoopbackItem
) -> None:
    store.create("a/file", b"one")
    onelake.faults.add(Fault(Hold(), on=Operation.DELETE))
    store.delete_tree("a", store.folder_identity("a"))
    store.create("a/file", b"two")
    (held,) = onelake.faults.held
    assert held.release().status == 412
    assert item.read("a/file") == b"two"


def test_a_folder_whose_making_got_no_answer_is_not_taken_for_made(
    onelake: LoopbackOneLake, store: OneLakeStore, item: LoopbackItem
) -> None:
    onelake.faults.add(Fault(LOST, on=Operation.CREATE_FOLDER))
    store.make_folder("a")
    assert item.names() == ["a/"]
    onelake.faults.add(Fault(NEVER, on=Operation.CREATE_FOLDER, times=9))
    with raises_row(STORE_UNAVAILABLE):
        store.make_folder("b")
