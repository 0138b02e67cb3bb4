"""What a person does about a failed check, in one sentence each; docs/checks.md says more."""

from __future__ import annotations

from typing import Final

_SLICE = (
    "nothing of the slice was published: correct the source or the settings; then let a first load run again, and "
    "rebuild the table for a later slice, whose commits stay as they are."
)
_KEEP_FILES = "let a run mirror what waits soon, or execute the statement in the message, which keeps files for longer."
_NEXT_STEPS: Final = {
    "key_presence": _SLICE,
    "key_uniqueness": _SLICE,
    "marker_values": _SLICE,
    "parts_unchanged": "run again: the slice is staged anew; find out who else writes into the folder _scratchPad.",
    "row_counts": _SLICE,
    "row_order": _SLICE,
    "schema_compatibility": _SLICE,
    "file_continuity": "restore the file that the message names, or rebuild the table.",
    "metadata_unchanged": "restore _metadata.json; to change keys, rebuild the table.",
    "lag": "see the checks not_held and not_failing, and whether the sensor `mirror` is on and its run goes on.",
    "not_held": "run `mirror-assets rebuild`, or correct what the message names.",
    "not_failing": "do what the message says; the next run tries again by itself.",
    "replicating": "do what the message says; `mirror-assets fabric status` shows what Fabric tells.",
    "retention": _KEEP_FILES,
    "history_retention": _KEEP_FILES,
}


def next_step(check: str) -> str:
    """Return what to do when the check has failed; empty for a check whose message says it."""
    return _NEXT_STEPS.get(check, "")
