"""Stores findings in files, so that definitions load without the network."""

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
    """The content of a file: a finding, and the mirror.yaml that it belongs to. Nothing in it is secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int
    config: str
    finding: PlaceFinding


@dataclass(frozen=True)
class FindingCache:
    """The findings of one mirror.yaml, each in its own file; without a `folder`, nothing is stored.

    A file that is damaged, or belongs to another configuration, is ignored. If one can't be written, the next process
    lists the place again.
    """

    config: Path
    folder: Path | None

    @classmethod
    def of(cls, config: Path, environment: Mapping[str, str] = os.environ) -> FindingCache:
        """Return the cache in `$DAGSTER_HOME`, or else in the user's cache folder."""
        config = Path(os.path.realpath(config))
        if environment.get(_HOME):
            return cls(config, Path(environment[_HOME], "storage", "mirror_assets"))
        try:
            return cls(config, user_cache(environment) / "discovered")
        except RuntimeError:
            return cls(config, None)

    def path(self, place: str) -> Path | None:
        """Return the file of a place."""
        name = hashlib.sha256(f"{self.config}\n{place}".encode()).hexdigest()[:32]
        return self.folder / f"{name}.json" if self.folder else None

    def read(self, place: str) -> PlaceFinding | None:
        """Return the stored finding of the place; None, with a warning, for a damaged or foreign file."""
        path = self.path(place)
        if path is None:
            return None
        try:
            stored = _CacheFile.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            _LOG.warning("%s is ignored: it can't be read (%s)", path, " ".join(str(error).split())[:200])
            return None
        if (stored.format, stored.config, stored.finding.place) != (_FORMAT, str(self.config), place):
            _LOG.warning("%s is ignored: it belongs to another configuration, place or version", path)
            return None
        return stored.finding

    def write(self, finding: PlaceFinding) -> None:
        """Replace the file in one step: a reader gets the old finding or this one."""
        path = self.path(finding.place)
        if path is None:
            return
        content = _CacheFile(format=_FORMAT, config=str(self.config), finding=finding)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(prefix=".new-", dir=path.parent, delete=False) as file:
                try:
                    file.write(content.model_dump_json(exclude_defaults=True).encode())
                    file.flush()
                    Path(file.name).replace(path)
                except OSError:
                    Path(file.name).unlink(missing_ok=True)
                    raise
        except OSError as error:
            _LOG.warning("%s can't be written (%s): the next process lists the place again", path, error)
