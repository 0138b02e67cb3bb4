"""Variables that are not set: other values stand for them, where a command or a definition can do without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mirror_assets.config.document import Document
from mirror_assets.config.errors import VARIABLE_UNSET, Problem
from mirror_assets.config.rules import written_tables
from mirror_assets.errors import SettingError

# Values of each kind that settings have; the number distinguishes them.
_GUID = "00000000-0000-4000-8000-{number:012}"
_STAND_INS = (
    _GUID,  # first: two may be parts of one URL
    f"https://onelake.dfs.fabric.microsoft.com/{_GUID}/{_GUID}/Files/LandingZone",
    "s3://unset-{number}/",
    "abfss://unset-{number}@unset.dfs.core.windows.net/",
    "https://unset-{number}.invalid",
    "unset-{number}",
    "UNSET_{number}_",
    "client_secret",
    "1",
)
_OF_ZONE = ("landing_zone", "mirror")
# Without these, no table can be read as the file says.
_OF_SOURCES = ("tables", "defaults", "discover", "features")
_PLACES = {"stores": "store", "catalogs": "catalog"}


@dataclass(frozen=True)
class UnsetVariables:
    """The mistakes that they make, those that a source needs, and the error of the landing zone.

    Those in conditions and expressions are separate, `in_rows`: each is the error of one table, when its rows are read.
    """

    problems: tuple[Problem, ...] = ()
    in_rows: tuple[Problem, ...] = ()
    of_sources: tuple[Problem, ...] = ()
    zone_error: SettingError | None = None

    @classmethod
    def of(cls, document: Document) -> UnsetVariables:
        """Return those of a document."""
        zone = next((one for one in document.unresolved if one.path.partition(".")[0] in _OF_ZONE), None)
        return cls(
            tuple(document.unresolved),
            tuple(document.unresolved_in_rows),
            tuple(one for one in document.unresolved if _is_of_source(document, one.path)),
            VARIABLE_UNSET(setting=zone.path, problem=zone.message) if zone else None,
        )


NOTHING_UNSET = UnsetVariables()


def _is_of_source(document: Document, path: str) -> bool:
    """Return whether a table can't be read without the setting: stores and catalogs that no table uses don't count."""
    place, _, name = path.partition(".")
    if place not in _PLACES:
        return place in _OF_SOURCES
    name = next((known for known in document.names(place) if f"{name}.".startswith(f"{known}.")), name)
    root = document.get(place, name, "root")
    for *_, source in written_tables(document):
        written = document.get(*source)
        if document.get(*source, _PLACES[place]) == name:
            return True
        if isinstance(root, str) and isinstance(written, str) and written.startswith(root):
            return True
    return False


def stand_ins(names: Sequence[str], mistakes: Callable[[Mapping[str, str]], int]) -> dict[str, str]:
    """Return values for variables: for each, of the kind with which the file has the fewest `mistakes`."""
    chosen = {name: _STAND_INS[0].format(number=number) for number, name in enumerate(names)}
    for number, name in enumerate(names):
        chosen = min(({**chosen, name: value.format(number=number)} for value in _STAND_INS), key=mistakes)
    return chosen
