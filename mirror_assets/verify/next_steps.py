"""What a person does about a failed check, in one sentence each; docs/checks.md says more."""

from __future__ import annotations

from typing import Final

_KEEP_FILES = "let a run mirror what waits soon, or execute the statement in the message, which keeps files for longer."
_NEXT_STEPS: Final = {
    "file_continuity": "restore the file that the message names, or rebuild the table.",
    "metadata_unchanged": "restore _metadata.json; to change keys, rebuild the table.",
    "lag": "see the checks not_held and not_failing, and whether the sensor `mirror` is on and its run goes on.",
    "not_failing": "the next run tries again by itself.",
    "replicating": "do what the message says; `mirror-assets fabric status` shows what Fabric tells.",
    "retention": _KEEP_FILES,
    "history_retention": _KEEP_FILES,
}


def slice_next_step(check: str, *, is_first_load: bool) -> str:
    """Return what to do when the check has refused a slice: nothing of the slice was published."""
    if check == "parts_unchanged":
        return "run again: the slice is staged anew; find out who else writes into the folder _scratchPad."
    if is_first_load:
        return "fix the source; the next run then loads the table by itself. Other tables continue."
    # Its commits stay as they are: only a load of the newest version can leave them out.
    return "fix the source, then launch the job `rebuild` for this table. Other tables continue."


def next_step(check: str) -> str:
    """Return what to do when the check has failed; empty for a check whose message says it."""
    return _NEXT_STEPS.get(check, "")
