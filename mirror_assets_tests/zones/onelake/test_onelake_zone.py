"""The address of a landing zone: the portal's URL as it is, and nothing that could lead elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress
from mirror_assets.zones.onelake.pasted_url import ENDPOINT

WORKSPACE, ITEM = "1f0c6a5e-0a4b-4c53-9a4b-9f1f4a7f1d11", "2d5a7f2c-6d57-4f0e-8a37-3c1de43e6c22"
URL = f"{ENDPOINT}/{WORKSPACE}/{ITEM}/Files/LandingZone"


@pytest.mark.parametrize(
    "url", [URL, f"{URL}/", f"  {URL}\n", f"{ENDPOINT}/{WORKSPACE.upper()}/{ITEM.upper()}/Files/LandingZone"]
)
def test_the_portals_url_is_accepted_as_it_is(url: str) -> None:
    address = OneLakeAddress.parse(url)
    assert (address.workspace, address.item, address.endpoint) == (WORKSPACE, ITEM, ENDPOINT)
    assert address.url == URL


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://westeurope-onelake.dfs.fabric.microsoft.com",
        "https://1f0c6a5e0a4b4c539a4b9f1f4a7f1d11.z1f.dfs.fabric.microsoft.com",
        "https://127.0.0.1:8443",
    ],
)
def test_other_endpoints_are_kept(endpoint: str) -> None:
    address = OneLakeAddress.parse(URL.replace(ENDPOINT, endpoint))
    assert address.endpoint == endpoint
    assert address == OneLakeAddress(WORKSPACE, ITEM, endpoint)
    assert address.blob_endpoint == endpoint.replace(".dfs.", ".blob.")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "Files/LandingZone",
        URL.replace("https", "http"),
        URL.replace("https", "abfss"),
        URL.replace("https://", f"abfss://{WORKSPACE}:planted@"),
        URL.replace("https://", "https://user@"),
        URL.replace("https://", "https://user:password@"),
        URL.replace("https://", "https://[::1"),
        URL.replace("onelake.dfs", "one lake.dfs"),
        URL.replace(WORKSPACE, "sales"),
        URL.replace(ITEM, "sales.MirroredDatabase"),
        URL.replace(f"{WORKSPACE}/", ""),
        URL.replace("LandingZone", "landingzone"),
        URL.replace("/Files/LandingZone", "/Tables"),
        URL.replace("/Files/", "/Files/../Files/"),
        URL.replace("Files/LandingZone", "Files%2FLandingZone"),
        URL.replace(ITEM, f"{ITEM}%2F.."),
        f"{URL}/orders",
        f"{URL}?sv=2024-01-01&sig=secret",
        f"{URL}#part",
        f"{ENDPOINT}/{WORKSPACE}@elsewhere.example/{ITEM}/Files/LandingZone",
        f"{ENDPOINT}@elsewhere.example/{WORKSPACE}/{ITEM}/Files/LandingZone",
        f"{ENDPOINT}:443443/{WORKSPACE}/{ITEM}/Files/LandingZone",
    ],
)
def test_anything_else_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"expected|IPv6"):
        OneLakeAddress.parse(url)


@given(st.text(max_size=40) | st.text(max_size=10).map(lambda text: f"{URL}{text}") | st.sampled_from([URL]))
def test_what_is_accepted_leads_to_the_host_and_the_folder_that_it_shows(url: str) -> None:
    try:
        address = OneLakeAddress.parse(url)
    except ValueError:
        return
    assert (address.url, address.host) == (URL, "onelake.dfs.fabric.microsoft.com")
    assert address.abfss == f"abfss://{WORKSPACE}@{address.host}/{ITEM}/Files/LandingZone"


def test_a_secret_in_a_url_is_not_repeated() -> None:
    for url in (f"{URL}?sig=planted", f"{URL}/more?sig=planted", URL.replace("https://", "https://me:planted@")):
        with pytest.raises(ValueError, match="expected") as error:
            OneLakeAddress.parse(url)
        assert "planted" not in str(error.value)
    for endpoint in (f"{ENDPOINT}?sig=planted", f"{ENDPOINT}#planted", ENDPOINT.replace("//", "//me:planted@")):
        with pytest.raises(ValueError, match="expected") as error:
            OneLakeAddress(WORKSPACE, ITEM, endpoint)
        assert "planted" not in str(error.value)
