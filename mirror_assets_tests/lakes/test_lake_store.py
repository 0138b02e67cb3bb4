"""Addresses in lakes: many spellings, one canonical."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.lakes.lake_store import LakeAddress, Scheme

_NAMES = st.text("abcXYZ09-_=. ü", min_size=1, max_size=8).filter(
    lambda name: name.strip() == name and set(name) != {"."}
)
_BUCKETS = st.text("abc09-", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("written", "uri"),
    [
        ("s3a://lake/orders", "s3://lake/orders"),
        ("s3n://lake//a%20b/", "s3://lake/a b"),
        ("s3://lake", "s3://lake"),
        ("https://lake.s3.eu-central-1.amazonaws.com/a/b", "s3://lake/a/b"),
        ("https://s3.eu-central-1.amazonaws.com/lake/a", "s3://lake/a"),
        ("https://s3.amazonaws.com/lake/a", "s3://lake/a"),
        ("abfss://c@acc.dfs.core.windows.net/a", "abfss://c@acc.dfs.core.windows.net/a"),
        ("abfs://c@acc.blob.core.windows.net/a", "abfss://c@acc.dfs.core.windows.net/a"),
        ("wasbs://c@acc.blob.core.windows.net/a", "abfss://c@acc.dfs.core.windows.net/a"),
        ("https://acc.blob.core.windows.net/c/a%20b", "abfss://c@acc.dfs.core.windows.net/a b"),
        (
            "https://onelake.dfs.fabric.microsoft.com/w/i/Tables/t",
            "abfss://w@onelake.dfs.fabric.microsoft.com/i/Tables/t",
        ),
        ("https://storage.googleapis.com/lake/a", "gs://lake/a"),
        ("gs://lake/a/", "gs://lake/a"),
        ("hdfs://name:9000/a", "hdfs://name:9000/a"),
    ],
)
def test_every_spelling_becomes_the_one_that_both_readers_take(written: str, uri: str) -> None:
    assert LakeAddress.parse(written).uri == uri


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("az://c/a", "'az://c/a' has a scheme that is not known here; write s3://<bucket>/<path>"),
        ("https://app.fabric.microsoft.com/groups/1/lakehouses/2", "is not the address of a table; write s3://"),
        ("abfss://c/a", "names no container and account; write abfss://<container>@<account>"),
        ("s3:///a", "names no store"),
        ("s3://lake/../a", "leaves its folder"),
        ("gs://user@lake/a", "names no store"),
    ],
)
def test_another_address_is_refused_with_the_spelling_to_write(written: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"write|leave|names") as caught:
        LakeAddress.parse(written)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "written", ["s3://key:hidden@lake/a", "https://acc.blob.core.windows.net/c/a?sig=hidden", "s3://lake/a#hidden"]
)
def test_what_may_be_secret_is_refused_and_not_shown(written: str) -> None:
    with pytest.raises(ValueError, match="without credentials") as caught:
        LakeAddress.parse(written)
    assert "hidden" not in str(caught.value)


@given(bucket=_BUCKETS, names=st.lists(_NAMES, max_size=4))
def test_a_canonical_address_stays_as_it_is(bucket: str, names: list[str]) -> None:
    address = LakeAddress(Scheme.S3, bucket, "/".join(names))
    assert LakeAddress.parse(address.uri) == address


@given(bucket=_BUCKETS, above=st.lists(_NAMES, max_size=3), below=st.lists(_NAMES, max_size=3))
def test_a_folder_holds_what_lies_below_it_and_no_neighbour(bucket: str, above: list[str], below: list[str]) -> None:
    root = LakeAddress(Scheme.S3, bucket, "/".join(above))
    assert root.holds(root.below("/".join(below)))
    if above:
        assert not root.holds(LakeAddress(Scheme.S3, bucket, f"{root.path}2"))
    assert not root.holds(LakeAddress(Scheme.GOOGLE, bucket, root.path))


@pytest.mark.parametrize("path", ["../a", "a/../b", "."])
def test_a_path_below_leads_nowhere_else(path: str) -> None:
    with pytest.raises(ValueError, match="leaves its folder"):
        LakeAddress.parse("s3://lake/root").below(path)
