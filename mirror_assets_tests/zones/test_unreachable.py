"""The landing zone that can't be opened."""

from __future__ import annotations

from typing import cast

import pytest

from mirror_assets.config.errors import VARIABLE_UNSET
from mirror_assets.zones import Store
from mirror_assets.zones.unreachable import UnreachableStore


def test_it_has_an_address_and_each_request_raises_the_same_error() -> None:
    error = VARIABLE_UNSET(setting="landing_zone.path", problem="X")
    store = cast("Store", UnreachableStore("https://zone", error))
    assert store.root == "https://zone"
    for request in (lambda: store.list(""), lambda: store.create("a", b""), lambda: store.local_path("a")):
        with pytest.raises(VARIABLE_UNSET.error) as raised:
            request()
        assert raised.value is error
