"""A repair that is killed at random moments: the next one makes the mirror equal, in the same epoch."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import drive
from mirror_assets.verify.landed import file_continuity
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.worlds.kills.place import LAUNCHER, OnDisk, Place
from mirror_assets_tests.worlds.kills.process import End, Run

_KILLS = 20
_COLUMNS = ["id", "name", "amount"]


def _run(place: Place, *command: str, kill_after: float | None = None) -> End:
    """Run the command to its end, or kill it after this many seconds."""
    arguments = [*command, "--config", str(place.config_file)]
    launcher = [sys.executable, "-m", LAUNCHER, str(place.root / "trace"), "--"]
    run = Run(command[0], [*launcher, *arguments], place.environment())
    if kill_after is not None:
        while run.is_running and run.seconds < kill_after:
            time.sleep(0.01)
        run.kill()
    return run.end()


def _mirror(place: Place) -> str:
    status = place.replicator.table(TABLE)
    assert status is not None
    return status.location


def _rows(place: Place) -> pa.Table:
    return DeltaTable(_mirror(place)).to_pyarrow_table(columns=_COLUMNS).sort_by("id")


def _damage(place: Place, random: Random) -> None:
    """Remove a third of the mirror's rows, change a third, and add one."""
    rows = DeltaTable(_mirror(place)).to_pyarrow_table()
    kept = [row for row in rows.to_pylist() if random.random() > 1 / 3]
    damaged = [row | {"name": "damaged"} if random.random() < 0.5 else row for row in kept]
    extra = rows.to_pylist()[0] | {"id": 10_000_000 + random.randrange(1000)}
    write_deltalake(_mirror(place), pa.Table.from_pylist([*damaged, extra], schema=rows.schema), mode="overwrite")


@pytest.mark.soak
def test_killed_repairs(tmp_path: Path) -> None:
    random = Random(32)
    with OnDisk.opened(tmp_path / "repairs") as place:
        assert _run(place, "run").code == 0
        place.replicator.poll()
        whole, kills = 0.0, 0
        while kills < _KILLS:
            _damage(place, random)
            place.source.go_on(random)
            if whole:
                kills += _run(place, "repair", str(TABLE), "--yes", kill_after=random.uniform(0, whole)).was_killed
            ended = _run(place, "repair", str(TABLE), "--yes")
            assert ended.code == 0, ended.output
            whole = whole or ended.seconds
            place.replicator.poll()
            assert _rows(place).to_pylist() == place.source.rows().to_pylist(), f"after kill {kills}"
        manifest = drive(read_manifest(TABLE), place.store)
        assert manifest is not None
        assert manifest.manifest.epoch == 1
        assert file_continuity(place.store, TABLE, applied=None).passed
