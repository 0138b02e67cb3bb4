"""What the blob endpoint answers to the real SDKs, which read through it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import BlobClient, BlobServiceClient

from mirror_assets_tests.worlds.onelake import LoopbackItem, LoopbackOneLake
from mirror_assets_tests.worlds.onelake.sdk import refused


@pytest.fixture
def blobs(onelake: LoopbackOneLake) -> Iterator[BlobServiceClient]:
    with BlobServiceClient(
        onelake.url, credential=onelake.credential(), connection_verify=str(onelake.ca), retry_total=0
    ) as service:
        yield service


@pytest.fixture
def blob(blobs: BlobServiceClient, item: LoopbackItem) -> BlobClient:
    return blobs.get_blob_client(item.workspace, f"{item.guid}/Files/LandingZone/a/file")


def test_a_blob_is_written_whole_with_the_folders_above(blob: BlobClient, item: LoopbackItem) -> None:
    written = blob.upload_blob(b"data", overwrite=True, validate_content=True)
    assert item.read("a/file") == b"data"
    assert blob.get_blob_properties().etag == written["etag"]


def test_a_blob_is_not_overwritten_unless_overwrite_is_set(blob: BlobClient, item: LoopbackItem) -> None:
    item.write("a/file", b"theirs")
    with pytest.raises(ResourceExistsError) as error:
        blob.upload_blob(b"mine", overwrite=False)
    assert refused(error.value) == (409, "BlobAlreadyExists")
    assert item.read("a/file") == b"theirs"


def test_a_blob_is_swapped_if_it_has_the_etag(blob: BlobClient, item: LoopbackItem) -> None:
    etag = blob.upload_blob(b"first")["etag"]
    unchanged = MatchConditions.IfNotModified
    second = blob.upload_blob(b"second", overwrite=True, etag=etag, match_condition=unchanged)["etag"]
    with pytest.raises(ResourceModifiedError) as error:
        blob.upload_blob(b"third", overwrite=True, etag=etag, match_condition=unchanged)
    assert refused(error.value) == (412, "ConditionNotMet")
    assert item.read("a/file") == b"second"
    assert second != etag


def test_a_missing_blob_has_no_etag_to_match(blob: BlobClient, item: LoopbackItem) -> None:
    with pytest.raises(ResourceModifiedError):
        blob.upload_blob(b"x", overwrite=True, etag='"0x1"', match_condition=MatchConditions.IfNotModified)
    assert item.paths() == []


@pytest.mark.parametrize(("offset", "length"), [(0, 4), (3, 4), (9, 1), (8, 100)])
def test_ranges_are_cut_at_the_end(blob: BlobClient, item: LoopbackItem, offset: int, length: int) -> None:
    item.write("a/file", b"0123456789")
    found = blob.download_blob(offset=offset, length=length, validate_content=True).readall()
    assert found == b"0123456789"[offset : offset + length]


def test_a_range_behind_the_end_is_refused(blob: BlobClient, item: LoopbackItem) -> None:
    item.write("a/file", b"0123456789")
    with pytest.raises(HttpResponseError) as error:
        blob.download_blob(offset=10, length=1)
    assert refused(error.value) == (416, "InvalidRange")


def test_an_empty_file_reads_empty(blob: BlobClient, item: LoopbackItem) -> None:
    item.write("a/file", b"")
    assert blob.download_blob().readall() == b""


def test_a_read_can_depend_on_the_etag(blob: BlobClient, item: LoopbackItem) -> None:
    etag = blob.upload_blob(b"first")["etag"]
    item.write("a/file", b"second")
    with pytest.raises(ResourceModifiedError):
        blob.download_blob(etag=etag, match_condition=MatchConditions.IfNotModified)


def test_a_missing_blob_is_missing(blob: BlobClient) -> None:
    assert not blob.exists()
    with pytest.raises(ResourceNotFoundError) as error:
        blob.download_blob()
    assert refused(error.value) == (404, "BlobNotFound")


def test_a_folder_is_marked_as_one(blob: BlobClient, blobs: BlobServiceClient, item: LoopbackItem) -> None:
    blob.upload_blob(b"data")
    folder = blobs.get_blob_client(item.workspace, f"{item.guid}/Files/LandingZone/a").get_blob_properties()
    assert folder.metadata == {"hdi_isfolder": "true"}


def test_a_blob_can_be_deleted(blob: BlobClient, item: LoopbackItem) -> None:
    item.write("a/file", b"data")
    blob.delete_blob()
    assert item.paths() == []
