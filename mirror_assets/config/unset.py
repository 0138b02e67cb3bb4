"""Leaves out the settings whose environment variables are not set, for commands that show what can be read without."""

from __future__ import annotations

from mirror_assets.config.document import Document
from mirror_assets.config.errors import VARIABLE_UNSET
from mirror_assets.config.rules import written_tables
from mirror_assets.errors import SettingError

# Without these, no table can be read as the file says.
_NEEDED = ("tables", "defaults", "discover", "features")
_PLACES = {"stores": "store", "catalogs": "catalog"}
_ZONE = ("landing_zone", "mirror")


def leave_out_unset(document: Document) -> SettingError | None:
    """Leave out what no source needs; return the error of the landing zone if it was, or its mirror.

    A folder that doesn't exist takes the place of such a landing zone.
    """
    of_zone: SettingError | None = None
    for steps, problem in document.unset.items():
        if steps[0] in _ZONE:
            of_zone = of_zone or VARIABLE_UNSET(setting=".".join(steps), problem=problem)
        elif steps[0] in _PLACES:
            if not _is_used(document, steps[0], steps[1]):
                document.leave_out(*steps[:2])
        elif steps[0] not in _NEEDED:
            document.leave_out(*steps)
    if of_zone is not None and isinstance(document.value, dict):
        for name in _ZONE:
            document.leave_out(name)
        document.value["landing_zone"] = {"path": "./landing-zone-of-an-unset-variable"}
    return of_zone


def _is_used(document: Document, places: str, name: str) -> bool:
    """Return whether a table or a rule names the store or the catalog, or has an address below the store's root."""
    root = document.get(places, name, "root")
    for *_, source in written_tables(document):
        written = document.get(*source)
        if document.get(*source, _PLACES[places]) == name:
            return True
        if isinstance(root, str) and isinstance(written, str) and written.startswith(root):
            return True
    return False
