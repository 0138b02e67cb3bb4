"""The live files of a version, as hashes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.actions import Metadata, Protocol
from mirror_assets.source.replay import LivePaths

_PATHS = st.sets(st.sampled_from([f"{number}.parquet" for number in range(12)]))


@given(_PATHS, st.lists(st.tuples(_PATHS, _PATHS), max_size=4))
def test_they_are_those_of_a_set_whatever_comes_and_goes(
    begun: set[str], moves: list[tuple[set[str], set[str]]]
) -> None:
    metadata, protocol = Metadata("table-1", "{}"), Protocol(1, 2)
    live, known = LivePaths.of(0, metadata, protocol, begun), set(begun)
    for version, (come, gone) in enumerate(moves, start=1):
        live = live.after(version, metadata, protocol, come, gone - come)
        known = (known - (gone - come)) | come
        assert live.version == version
    assert {path for path in map("{}.parquet".format, range(12)) if path in live} == known
