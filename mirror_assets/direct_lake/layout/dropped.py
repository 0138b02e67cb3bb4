"""What of each file is columns that the table has no more."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from mirror_assets.direct_lake.footers.footers import Footers
from mirror_assets.direct_lake.footers.mapping import ColumnNames


def dropped_bytes(footers: Footers, names: ColumnNames) -> dict[str, int]:
    """Compressed bytes of dropped columns, by file; files without any are left out."""
    chunks = footers.chunks
    gone = [path for path in pc.unique(chunks["column"]).to_pylist() if names.is_dropped(path)]
    found = chunks.filter(pc.is_in(chunks["column"], pa.array(gone, pa.string())))
    sums = found.group_by("file").aggregate([("compressed", "sum")])
    return {
        footers.files[file].path: size
        for file, size in zip(sums["file"].to_pylist(), sums["compressed_sum"].to_pylist(), strict=True)
    }
