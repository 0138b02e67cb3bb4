"""What Spark says goes to a file, what we say to the terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_COMMAND = """
import subprocess, sys
from mirror_assets.cli.spark_log import spark_log

with spark_log() as log:
    subprocess.run([sys.executable, "-c", "import sys; sys.stderr.write({child!r})"], check=True)
    print("ours", file=sys.stderr)
    print(log.path)
    {end}
print("after", file=sys.stderr)
"""


def _run(end: str, child: str = "from a child") -> tuple[Path, str]:
    """The log's path, and what reached the terminal."""
    command = [sys.executable, "-c", _COMMAND.format(end=end, child=child)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return Path(ran.stdout.strip()), ran.stderr


@pytest.mark.parametrize("end", ["log.keep = True", "raise KeyboardInterrupt"])
def test_a_childs_errors_are_kept_in_a_file_that_is_named(end: str) -> None:
    log, terminal = _run(end)
    assert log.read_text() == "from a child"
    assert terminal.startswith(f"ours\nmessages of Spark and other libraries are in {log}\n")
    log.unlink()


@pytest.mark.parametrize(("end", "child"), [("log.keep = False", "from a child"), ("log.keep = True", "")])
def test_a_log_file_that_is_not_needed_is_deleted(end: str, child: str) -> None:
    log, terminal = _run(end, child)
    assert not log.exists()
    assert terminal == "ours\nafter\n"
