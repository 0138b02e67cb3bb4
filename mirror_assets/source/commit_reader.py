"""Reads the commit files of one log, and finds out why one can't be read."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.errors import MirrorError
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE, SOURCE_UNREADABLE, SourceUnreadable
from mirror_assets.source.actions import Actions, CommitInfo
from mirror_assets.source.commits import commit_digest
from mirror_assets.source.errors import LOG_GAP, source_not_delta
from mirror_assets.source.parsing import InvalidAction, is_whole, parse_actions, parse_info
from mirror_assets.source.source_files import SourceFiles, commit_path


@dataclass(frozen=True)
class CommitReader:
    """Reads the commit files of the table at `uri`, each read at each call.

    Its methods raise LogGap only for a commit that a readable store doesn't have, SourceNotDelta without a log,
    SourceUnreadable, and SOURCE_UNAVAILABLE.
    """

    uri: str
    files: SourceFiles

    def data(self, version: int) -> bytes:
        """Return the content of a commit file."""
        data = self.files.commit(version)
        if data is None:
            raise self.absence(version)
        return data

    def actions(self, version: int) -> Actions:
        """Return the actions of a commit."""
        return self.parsed(version, self.data(version))

    def parsed(self, version: int, data: bytes) -> Actions:
        """Return the actions in the content of a commit file."""
        try:
            return parse_actions(data, self.files.paths)
        except InvalidAction as error:
            raise not_of_delta(self.uri, commit_path(version), error) from error

    def info(self, version: int, *, is_newest: bool) -> tuple[CommitInfo, str]:
        """Return a commit's commitInfo and its digest. Raises SOURCE_UNAVAILABLE for the newest one if it is cut off.

        Some stores create a file before they write it. A later commit proves that an empty one is complete.
        """
        data = self.data(version)
        if is_newest and not is_whole(data):
            why = f"the newest commit, {commit_path(version)}, is empty or cut off"
            step = (
                "run again when it has been written. If the error persists, its writer failed: restore the file, or "
                "delete it, with the writer's tools."
            )
            raise SOURCE_UNAVAILABLE(uri=self.uri, why=why, next_step=step)
        return parse_info(data), commit_digest(data)

    def time_ms(self, version: int, info: CommitInfo) -> int:
        """Return the commit's own time, or when its file was written if it has none."""
        return self.files.modified_ms(version) if info.timestamp_ms is None else info.timestamp_ms

    def absence(self, version: int) -> MirrorError:
        """Return the error for a commit that was not found; only an existing log can lack one."""
        if not self.files.log().files:
            return source_not_delta(self.uri)
        found = self.files.presence_of(commit_path(version))
        if found.is_gone:
            return LOG_GAP(uri=self.uri, version=version)
        if found.hindrance is not None:
            return SOURCE_UNREADABLE(uri=self.uri, why=found.hindrance)
        return SOURCE_UNAVAILABLE(
            uri=self.uri, why=f"commit {version} is in its log, but could not be read a moment before"
        )


def not_of_delta(uri: str, name: str, error: Exception) -> SourceUnreadable:
    """Return the error for a file of the log that can't be parsed."""
    return SOURCE_UNREADABLE(uri=uri, why=f"{name} does not follow Delta's protocol: {error}")
