"""What docs/production.md says to back up is enough, and its commands restore it, or refuse to."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from mirror_assets.cli import main
from mirror_assets.landing.errors import MANIFEST_LOST
from mirror_assets.landing.names import HISTORY
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.pages import DOCS

_BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _commands(heading: str) -> list[str]:
    """Return the blocks of commands below a heading of the page, in order."""
    page = (DOCS / "production.md").read_text(encoding="utf-8")
    return _BLOCK.findall(page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0])


def _shell(lab: Lab, commands: str) -> None:
    subprocess.run(["/bin/bash", "-e", "-c", commands], cwd=lab.root, check=True)


def _back_up(lab: Lab) -> None:
    (commands,) = _commands("Back up")
    _shell(lab, commands)


def _restore(lab: Lab) -> None:
    _shell(lab, _commands("Restore")[0])


def _lose_control_files(lab: Lab) -> None:
    """Delete everything in the landing zone but the landing files."""
    for path in sorted((lab.root / "landing").rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif path.is_file() and (path.suffix != ".parquet" or "_scratchPad" in path.parts):
            path.unlink()


def _run(lab: Lab, monkeypatch: pytest.MonkeyPatch, commands: str) -> None:
    """Run the page's `mirror-assets` commands in this process, on its Spark session."""
    monkeypatch.chdir(lab.root)
    for line in commands.splitlines():
        program, *arguments = line.partition("#")[0].split()
        assert program == "mirror-assets"
        assert main(arguments) == 0, line


def test_the_copy_has_no_data_and_no_staged_file(mirrored: Lab) -> None:
    _back_up(mirrored)
    with tarfile.open(mirrored.root / "control-files.tar") as copy:
        names = [Path(one.name) for one in copy if one.isfile()]
    assert {name.suffix for name in names} == {".json"}
    assert not any("_scratchPad" in name.parts for name in names)
    assert any(HISTORY in name.parts for name in names)


def test_mirroring_continues_after_the_control_files_were_restored(
    mirrored: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, files = mirrored.manifest(), mirrored.files
    _back_up(mirrored)
    _lose_control_files(mirrored)
    assert mirrored.files == files
    _restore(mirrored)
    mirrored.sql("UPDATE {t} SET amount = 300 WHERE id = 2")
    _run(mirrored, monkeypatch, _commands("Restore")[1])
    after = mirrored.manifest()
    assert (after.incarnation, after.generation) == (before.incarnation, before.generation + 1)
    assert after.first_number == before.next_number
    assert mirrored.is_equal


@pytest.mark.parametrize("has_copy", [True, False])
def test_a_copy_that_is_too_old_is_refused_and_a_rebuild_restores_the_table(
    mirrored: Lab, monkeypatch: pytest.MonkeyPatch, *, has_copy: bool
) -> None:
    _back_up(mirrored)
    mirrored.sql("UPDATE {t} SET amount = 300 WHERE id = 2")
    mirrored.mirror()
    _lose_control_files(mirrored)
    if has_copy:
        _restore(mirrored)
    with raises_row(MANIFEST_LOST):
        mirrored.mirror()
    _run(mirrored, monkeypatch, _commands("Restore")[2])
    mirrored.sql("DELETE FROM {t} WHERE id = 3")
    _run(mirrored, monkeypatch, _commands("Restore")[1])
    assert mirrored.is_equal


def test_nothing_of_dagster_is_needed(mirrored: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    for amount in (300, 400):
        (tmp_path / "home").mkdir()
        mirrored.sql(f"UPDATE {{t}} SET amount = {amount} WHERE id = 2")
        _run(mirrored, monkeypatch, _commands("Restore")[1])
        shutil.rmtree(tmp_path / "home")
    assert mirrored.is_equal
