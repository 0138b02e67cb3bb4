"""Keeps findings in files, so that definitions load without the network."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mirror_assets.discovery.finding import PlaceFinding
from mirror_assets.user_cache import user_cache

_FORMAT = 1
_HOME = "DAGSTER_HOME"
_LOG = logging.getLogger(__name__)


class _CacheFile(BaseModel):
    """What a file holds: whose finding it is, and the finding. Nothing in it is secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int
    config: str
    finding: PlaceFinding


@dataclass(frozen=True)
class FindingCache:
    """The findings for one mirror.yaml, each in a file of its own. `folder` is None where there is no place for them.

    It can be made again: a file that can't be read, or is another's, counts as absent, and one that can't be written
    costs a listing the next time.
    """

    config: Path
    folder: Path | None

    @classmethod
    def of(cls, config: Path, environment: Mapping[str, str] = os.environ) -> FindingCache:
        """Return the cache beside Dagster's instance, or else in the user's cache folder."""
        return cls(Path(os.path.realpath(config)), _folder(environment))

    def path(self, place: str) -> Path | None:
        """Return the file of a place."""
        name = hashlib.sha256(f"{self.config}\n{place}".encode()).hexdigest()[:32]
        return self.folder / f"{name}.json" if self.folder else None

    def read(self, place: str) -> PlaceFinding | None:
        """Return what was found at the place; None, with a warning, for a file that is damaged or another's."""
        path = self.path(place)
        if path is None:
            return None
        try:
            kept = _CacheFile.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            _LOG.warning("%s is ignored: it can't be read (%s)", path, _first_line(error))
            return None
        if (kept.format, kept.config, kept.finding.place) != (_FORMAT, str(self.config), place):
            _LOG.warning("%s is ignored: it is of another configuration, place or version", path)
            return None
        return kept.finding

    def write(self, finding: PlaceFinding) -> None:
        """Replace the file in one step; a reader sees the one before, or this one."""
        path = self.path(finding.place)
        if path is None:
            return
        kept = _CacheFile(format=_FORMAT, config=str(self.config), finding=finding)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, kept.model_dump_json(exclude_defaults=True).encode())
        except OSError as error:
            _LOG.warning(
                "%s can't be written (%s): tables are looked for again the next time", path, _first_line(error)
            )


def _folder(environment: Mapping[str, str]) -> Path | None:
    home = environment.get(_HOME)
    if home:
        return Path(home, "storage", "mirror_assets")
    try:
        return user_cache(environment) / "discovered"
    except RuntimeError:
        return None


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
