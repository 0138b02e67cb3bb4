"""`_metadata.json`: what is understood, what stops the table, and that declared keys bind."""

from __future__ import annotations

import pytest

from mirror_assets.monitoring import TableState
from mirror_assets_tests.standin.publisher import Publisher, bag, pairs


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "metadata_invalid"),
        ("[]", "metadata_invalid"),
        ('{"keyColumns": "k"}', "metadata_invalid"),
        ('{"keyColumns": [1]}', "metadata_invalid"),
        ('{"keyColumns": ["k", "k"]}', "metadata_invalid"),
        ('{"keyColumns": ["k"], "fileDetectionStrategy": "LastUpdateTimeFileDetection"}', "metadata_unsupported"),
        ('{"keyColumns": ["k"], "FileFormat": "DelimitedText"}', "metadata_unsupported"),
        (f'{{"note": "{"x" * 2_000_000}"}}', "metadata_invalid"),
    ],
)
def test_bad_metadata_stops_the_table_until_it_is_replaced(publisher: Publisher, text: str, code: str) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    (publisher.folder() / "_metadata.json").write_text(text)
    status = publisher.poll()
    assert (status.state, status.error_code, status.applied_number) == (TableState.FAILED, code, 0)
    publisher.declare()
    assert publisher.poll().state is TableState.REPLICATING


@pytest.mark.parametrize("later", [["v"], ["k", "v"], [], None])
def test_declared_keys_are_never_changed(publisher: Publisher, later: list[str] | None) -> None:
    publisher.declare(["k"])
    publisher.poll()
    publisher.declare(later)
    publisher.land(1, pairs((1, "a")))
    status = publisher.poll()
    assert (status.state, status.error_code, status.applied_number) == (TableState.FAILED, "keys_changed", 0)
    publisher.declare(["k"])
    assert publisher.poll().applied_number == 1


def test_keys_may_change_with_a_new_folder(publisher: Publisher) -> None:
    publisher.declare(["k"])
    publisher.land(1, pairs((1, "a")))
    publisher.poll()
    publisher.recreate(keys=["v"])
    publisher.land(1, pairs((1, "a"), (2, "a")), [4, 4])
    publisher.poll()
    assert bag(publisher.rows()) == bag(pairs((2, "a")))


def test_table_without_metadata_is_not_ingested(publisher: Publisher) -> None:
    publisher.folder().mkdir()
    publisher.land(1, pairs((1, "a")))
    assert publisher.replicator().poll() == ()
    assert not (publisher.mirror / "dbo").exists()
    publisher.declare()
    assert publisher.poll().mirror_rows == 1


def test_metadata_that_goes_away_stops_the_table(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.poll()
    (publisher.folder() / "_metadata.json").unlink()
    publisher.land(2, pairs((2, "b")))
    status = publisher.poll()
    assert (status.state, status.applied_number, status.mirror_rows) == (TableState.STOPPED, 1, 1)
    assert "_metadata.json" in (status.message or "")
    publisher.declare()
    assert publisher.poll().mirror_rows == 2
