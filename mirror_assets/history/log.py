"""The log of a history's table, read without a JVM: what is covered, and by which commit."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from deltalake import DeltaTable

from mirror_assets.history.errors import HistoryUnknown, NoHistory
from mirror_assets.history.record import APPLICATION, Kept, read_record
from mirror_assets.source.source_files import SourceFiles
from mirror_assets.source.storage_errors import translated


class HistoryLog:
    """The log of one history; every call reads anew."""

    def __init__(self, table: str, path: Path) -> None:
        """Name the source's table and the history's folder; nothing is read yet."""
        self.table, self.path = table, path

    @property
    def uri(self) -> str:
        """The history's address, for Spark."""
        return str(self.path)

    def newest(self) -> Kept | None:
        """The newest slice, or None while there is no history.

        Raises NoHistory for another Delta table, and HistoryUnknown when commits of others have outlived it.
        """
        versions = self._versions()
        found = self._search(versions)
        if found is None and versions:
            generation = self._generation()
            if generation is None:
                raise NoHistory(self.table, self.uri)
            raise HistoryUnknown(self.table, self.uri, generation)
        return found

    def kept(self, generation: int) -> Kept | None:
        """The slice of this generation, if it is in the log."""
        found = self._search(self._versions(), generation)
        return found if found is not None and found.generation == generation else None

    def is_newest(self, kept: Kept) -> bool:
        """Whether the slice's commit is the newest of the history's table: nobody has committed since."""
        newest = max(self._versions())
        data = self._files.commit(newest)
        return data is not None and read_record(data) == kept

    @cached_property
    def _files(self) -> SourceFiles:
        return SourceFiles(self.uri, {})

    def _versions(self) -> list[int]:
        return list(self._files.log().written) if self.path.exists() else []

    def _search(self, versions: list[int], at_most: int | None = None) -> Kept | None:
        """The newest slice, or the newest of at most this generation, looked for from the newest commit down."""
        for version in reversed(versions):
            data = self._files.commit(version)
            found = read_record(data) if data is not None else None
            if found is not None and (at_most is None or found.generation <= at_most):
                return found
        return None

    def _generation(self) -> int | None:
        """The newest generation, which the table's state knows for as long as it lives."""
        with translated(self.uri):
            return DeltaTable(self.uri).transaction_version(APPLICATION)
