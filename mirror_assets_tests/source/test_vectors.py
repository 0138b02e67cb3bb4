"""Deletion vectors and paths as the log spells them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.source.actions import Metadata, Vector
from mirror_assets.source.log_paths import TablePaths, as_listed, is_absolute, is_hidden, spelled
from mirror_assets.source.parsing import RawAction, read_vector, z85_decoded
from mirror_assets_tests.source.random_lakes import z85_encoded

_HERE = TablePaths.of("/lake/a table")


def _raw(kind: str, stored: str) -> RawAction:
    return {"storageType": kind, "pathOrInlineDv": stored, "offset": 4, "sizeInBytes": 40, "cardinality": 6}


def test_the_vectors_of_deltas_own_documentation() -> None:
    """The three examples of the protocol, section "Deletion Vectors"."""
    relative = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert read_vector(_raw("u", "ab^-aqEH.-t@S}K{vb[*k^"), _HERE) == Vector(
        "uab^-aqEH.-t@S}K{vb[*k^@4", relative, 40, 6, offset=4
    )
    absolute = "s3://mytable/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert read_vector(_raw("p", absolute), _HERE) == Vector(f"p{absolute}@4", absolute, 40, 6, offset=4)
    inline = {"storageType": "i", "pathOrInlineDv": "wi5b=0000", "sizeInBytes": 40, "cardinality": 6}
    assert read_vector(inline, _HERE) == Vector("iwi5b=0000", None, 40, 6, stored="wi5b=0000")
    assert read_vector(None, _HERE) is None


@given(st.binary(max_size=40).filter(lambda data: len(data) % 4 == 0))
def test_z85_is_read_back(data: bytes) -> None:
    assert z85_decoded(z85_encoded(data)) == data


@pytest.mark.parametrize("text", ["abcd", "abcd~", "#####", 'abc"d'])
def test_what_is_no_z85_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not Z85"):
        z85_decoded(text)


def test_an_unknown_kind_of_vector_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown storage type 'x'"):
        read_vector(_raw("x", "a"), _HERE)


@pytest.mark.parametrize(
    ("written", "decoded"),
    [
        ("p=a%2520b/x%20y.parquet", "p=a%20b/x y.parquet"),
        ("file:/lake/a%20table/x.parquet", "x.parquet"),
        ("file:///lake/a%20table/p=1/x.parquet", "p=1/x.parquet"),
        ("/lake/a%20table/x.parquet", "x.parquet"),
        ("file:/lake/b/x.parquet", "file:///lake/b/x.parquet"),
        ("abfss://w@h/t/x%20y.parquet", "abfss://w@h/t/x y.parquet"),
    ],
)
def test_paths_are_decoded(written: str, decoded: str) -> None:
    assert _HERE.decoded(written) == decoded
    assert is_absolute(decoded) == ("://" in decoded)
    for same in ("file:///lake/a table/", "file:/lake/a%20table", "/lake/b/../a table"):
        assert TablePaths.of(same).decoded(written) == decoded


@pytest.mark.parametrize(
    ("written", "spelling"),
    [
        ("p=a%2520b/x%20y.parquet", "p=a%2520b/x%20y.parquet"),
        ("./x.parquet", "x.parquet"),
        ("p=1//./x.parquet", "p=1/x.parquet"),
        ("p=1/../x.parquet", "x.parquet"),
        ("p=../x.parquet", "p=../x.parquet"),
        ("file:/lake/a%20table/x.parquet", "file:///lake/a%20table/x.parquet"),
        ("/lake/a%20table/x.parquet", "file:///lake/a%20table/x.parquet"),
    ],
)
def test_what_names_the_same_file(written: str, spelling: str) -> None:
    assert spelled(written) == spelling
    assert spelled(spelling) == spelling


@pytest.mark.parametrize(
    ("written", "is_listed"),
    [
        ("p=é/x.parquet", True),
        ("p=a%20%5Bb%5D%2520/x.parquet", True),
        ("p=a%C2%A0b/x.parquet", True),
        ("gr%C3%B6%C3%9Fe=1/x.parquet", False),
        ("p%3D1/x.parquet", False),
        ("p=a%5bb/x.parquet", False),
        ("file:///lake/t%20%C3%A9/x.parquet", False),
        ("file:/lake/t%20a/x.parquet", True),
        ("/lake/t%20%C3%A9/x.parquet", True),
    ],
)
def test_what_vacuum_knows_a_file_by(written: str, is_listed: bool) -> None:
    """As `java.net.URI` spells what Hadoop lists: a live file by another path is deleted (Delta 4.4)."""
    assert as_listed(written) == is_listed


def test_paths_below_a_remote_table_are_relative() -> None:
    assert TablePaths.of("abfss://w@h/t").decoded("abfss://w@h/t/p=1/x.parquet") == "p=1/x.parquet"
    assert TablePaths.of("abfss://w@h/t").decoded("abfss://w@h/t2/x.parquet") == "abfss://w@h/t2/x.parquet"


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("a.parquet", False),
        ("_tmp/a.parquet", True),
        ("p=1/.a.parquet", True),
        ("_p=1/a.parquet", False),
        ("_q=1/a.parquet", True),
        ("_change_data/a.parquet", False),
        ("_delta_index/a", False),
        ("metadata/a.json", False),
    ],
)
def test_hidden_is_what_delta_hides(path: str, hidden: bool) -> None:
    plain = Metadata("id", "{}", partition_columns=("_p",))
    iceberg = Metadata("id", "{}", {"delta.universalFormat.enabledFormats": "iceberg"}, ("_p",))
    assert is_hidden(path, plain) == hidden
    assert is_hidden(path, iceberg) == (hidden or path.startswith("metadata/"))
