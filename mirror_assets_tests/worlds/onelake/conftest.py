"""The SDK's clients for the loopback OneLake, as these tests use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.storage.filedatalake import FileSystemClient

from mirror_assets_tests.worlds.onelake import LoopbackItem, LoopbackOneLake


@pytest.fixture
def item(onelake: LoopbackOneLake) -> LoopbackItem:
    """A new mirrored database."""
    return onelake.new_item()


@pytest.fixture
def workspace(onelake: LoopbackOneLake, item: LoopbackItem) -> Iterator[FileSystemClient]:
    """The SDK's client for the item's workspace; it retries nothing, so that each answer is seen."""
    with onelake.service() as service:
        yield service.get_file_system_client(item.workspace)
