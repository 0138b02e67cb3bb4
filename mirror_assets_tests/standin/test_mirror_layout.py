"""Where a table lies in the mirror, and which other name would be the same table."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_assets.landing.names import TableName
from mirror_assets.standin.errors import MIRROR_BUSY
from mirror_assets.standin.mirror_layout import MirrorLayout
from mirror_assets_tests.errors import raises_row


def test_a_status_file_has_the_tables_name_unless_no_file_can(tmp_path: Path) -> None:
    layout = MirrorLayout(tmp_path)
    assert layout.record(TableName("s", "t")).name == "s.t.json"
    long, other = TableName("s" * 128, "t" * 128), TableName("s" * 128, "u" * 128)
    assert len(layout.record(long).name) < 255
    assert layout.record(long) != layout.record(other)


@pytest.mark.parametrize(("name", "rival"), [("t", "dbo.t"), ("dbo.t", "t"), ("s.t", None)])
def test_rival(tmp_path: Path, name: str, rival: str | None) -> None:
    layout = MirrorLayout(tmp_path)
    found = layout.rival(TableName.parse(name))
    assert found == (TableName.parse(rival) if rival else None)
    if found:
        assert layout.table(found) == layout.table(TableName.parse(name))


def test_lock_is_free_again_whatever_happened_inside(tmp_path: Path) -> None:
    layout = MirrorLayout(tmp_path)
    with pytest.raises(ZeroDivisionError), layout.locked():
        _ = 1 / 0
    with layout.locked(), raises_row(MIRROR_BUSY, match="another replicator"), layout.locked():
        pass
