"""A mirror that begins without a snapshot, and ranges of a run: one table for all."""

from __future__ import annotations

import pytest

from mirror_assets.cli import main
from mirror_assets.mirroring.compare import reconcile_table
from mirror_assets.replicator.reconciliation import ReconcileState
from mirror_assets_tests.lab import Lab


def _main(lab: Lab, *arguments: str) -> int:
    return main([*arguments, "--config", str(lab.config_file)])


def _mirror_ids(lab: Lab) -> list[int]:
    rows = lab.spark.read.format("delta").load(str(lab.root / "mirror" / "shop" / "orders")).collect()
    return sorted(row["id"] for row in rows)


def test_only_what_comes_after_the_start_lands_and_is_compared(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.configure("start: latest")
    assert _main(lab, "run") == 0
    assert lab.files == []
    assert reconcile_table(lab.work, lab.replicator).state is ReconcileState.EQUAL
    lab.change()  # versions 2 to 5
    assert _main(lab, "run", "--from", "4") == 2, "a gap is a wrong command line"
    assert _main(lab, "run", "--to", "9") == 2
    assert "lies behind its newest commit, version 5" in capsys.readouterr().err
    assert _main(lab, "run", "--from", "1", "--to", "3") == 0
    manifest = lab.work.manifest()
    assert manifest is not None
    assert manifest.covered == 3
    assert _main(lab, "run", "--to", "9", "--clip") == 0
    lab.replicator.poll()
    assert _mirror_ids(lab) == [1, 2, 77, 500]
    result = reconcile_table(lab.work, lab.replicator)
    assert (result.state, result.since, result.source_rows, result.mirror_rows) == (ReconcileState.EQUAL, 2, 4, 4)
    lab.spark.sql(f"UPDATE delta.`{lab.root / 'mirror' / 'shop' / 'orders'}` SET amount = -1 WHERE id = 2")
    different = reconcile_table(lab.work, lab.replicator)
    assert (different.state, different.columns) == (ReconcileState.DIFFERENT, ("amount",))
