"""Turns rows of Arrow into values of Python that messages show, whatever the rows hold."""

from __future__ import annotations

import pyarrow as pa


def readable_rows(rows: pa.Table) -> list[dict[str, object]]:
    r"""Return the rows; different values stay different.

    Dates and timestamps are texts, because Python has none before year 1 and after 9999. Bytes of a text that aren't
    UTF-8 are shown as `\xff`.
    """
    columns = [_values(column) for column in rows.columns]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[object]:
    kind = column.type
    if pa.types.is_timestamp(kind):  # Arrow counts wrong with the extremes of one with a zone
        return list(column.cast(pa.timestamp(kind.unit)).cast(pa.string()).to_pylist())
    if pa.types.is_date(kind):
        return list(column.cast(pa.string()).to_pylist())
    if pa.types.is_string(kind):
        texts = column.cast(pa.binary()).to_pylist()
        return [None if text is None else text.decode(errors="backslashreplace") for text in texts]
    return list(column.to_pylist())
