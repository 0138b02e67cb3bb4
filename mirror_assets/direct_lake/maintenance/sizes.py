"""Which files OPTIMIZE rewrites, and how large it makes them: Delta's settings, as of Delta 4.4."""

from __future__ import annotations

from dataclasses import dataclass

_GIB, _TIB = 2**30, 2**40
_SMALLEST, _LARGEST = 128 * 2**20, _GIB
_FROM, _TO = 10 * _GIB, 10 * _TIB


@dataclass(frozen=True)
class FileSizes:
    """The settings of a session that runs OPTIMIZE, in bytes; the defaults are Delta's (reference `direct-lake` §5).

    Files below `min_bytes`, and those of whose rows more than `max_deleted` (a share) are hidden by a deletion vector,
    are put together into files of up to `max_bytes`.
    """

    min_bytes: int = _GIB
    max_bytes: int = _GIB
    max_deleted: float = 0.05

    def statements(self) -> tuple[str, ...]:
        """What a session must be told before OPTIMIZE; nothing where it is Delta's default."""
        default = FileSizes()
        settings = (
            ("minFileSize", self.min_bytes, default.min_bytes),
            ("maxFileSize", self.max_bytes, default.max_bytes),
            ("maxDeletedRowsRatio", self.max_deleted, default.max_deleted),
        )
        return tuple(
            f"SET spark.databricks.delta.optimize.{name} = {value}" for name, value, usual in settings if value != usual
        )


def sizes_for(table_bytes: int) -> FileSizes:
    """Sizes that fit a table: files of 128 MiB up to 10 GiB, from there on larger, of 1 GiB from 10 TiB on.

    That is Fabric's "adaptive target file size" (its page "Tune the size of Delta table data files", 2026-03-01), where
    files below half of the target are rewritten.
    """
    share = min(1.0, max(0.0, (table_bytes - _FROM) / (_TO - _FROM)))
    target = round(_SMALLEST + share * (_LARGEST - _SMALLEST))
    return FileSizes(target // 2, target)
