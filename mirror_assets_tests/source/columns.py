"""The files of a version as columns, compared with those of its snapshot."""

from __future__ import annotations

from mirror_assets.source.log import DeltaLog
from mirror_assets.source.replay import Snapshot


def assert_same_files(log: DeltaLog, snapshot: Snapshot) -> None:
    """Require the same files in the same order, with their sizes and rows."""
    files = log.reopened().live_file_columns(snapshot.version)
    names = files.named["path"].to_pylist(), files.named["vector"].to_pylist()
    assert list(zip(*names, strict=True)) == [file.identity for file in snapshot.files]
    assert files.bytes.tolist() == [file.bytes for file in snapshot.files]
    assert files.named["rows"].to_pylist() == [file.rows for file in snapshot.files]
    assert files.likely_rows.tolist() == [file.likely_rows for file in snapshot.files]
    assert files.identities(1, 3) == {file.identity for file in snapshot.files[1:3]}
