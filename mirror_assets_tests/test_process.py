"""How often Python searches for garbage: rarely while it loads, and then as before; nothing stays that could go."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SETUP = """\
import gc, weakref
from mirror_assets.process import search_as_usual, search_rarely

class Cycle:
    def __init__(self):
        self.itself = self

def frozen():
    made = Cycle()
    return weakref.ref(made)
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("search_rarely(); made = frozen(); search_as_usual(); print(made())", "None"),
        ("gc.set_threshold(9, 8, 7); search_rarely(); search_as_usual(); print(gc.get_threshold())", "(9, 8, 7)"),
        ("gc.set_threshold(100_000, 8, 7); search_as_usual(); print(gc.get_threshold())", "(100000, 8, 7)"),
        ("search_rarely(); gc.set_threshold(5, 4, 3); search_as_usual(); print(gc.get_threshold())", "(5, 4, 3)"),
        ("search_as_usual(); print(gc.get_freeze_count())", "0"),
        ("search_rarely(); print(gc.get_threshold()[0])", "100000"),
    ],
    ids=["garbage is freed", "the thresholds before", "others are left", "later ones are left", "no freeze", "rarely"],
)
def test_searches_are_rare_while_a_process_loads_only(code: str, printed: str) -> None:
    """In a process of its own: thresholds are those of the whole process."""
    run = subprocess.run([sys.executable, "-c", _SETUP + code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == printed
