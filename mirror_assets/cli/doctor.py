"""`mirror-assets doctor`: whether the landing zone keeps what publishing exactly once rests on."""

from __future__ import annotations

from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show_json, show_records
from mirror_assets.composition import open_watched_zone
from mirror_assets.config import load_config
from mirror_assets.landing.names import SCRATCH
from mirror_assets.storage.doctor import Diagnosis, examine


def doctor(path: Path | None, *, as_json: bool) -> Exit:
    """Ask each question of the real landing zone, in a scratch folder; it fails when one is answered with no."""
    store, witness = open_watched_zone(load_config(path).landing_zone)
    note(f"Asking {store.root}")
    found = list(examine(store, SCRATCH, witness.heard))
    if witness.versions:
        found.append(Diagnosis("which x-ms-version does it answer with?", passed=True, saw=", ".join(witness.versions)))
    if as_json:
        show_json(found)
    else:
        rows = [("pass" if one.passed else "FAIL", one.question, one.saw) for one in found]
        show_records("Landing zone", ("", "question", "answers"), rows)
    return Exit.FINE if all(one.passed for one in found) else Exit.FAILED
