"""Every URL of a mirrored database that people paste is read, or answered with the URL to write."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress
from mirror_assets.zones.onelake.pasted_url import ENDPOINT, read_url

W, I = "1f0c6a5e-0a4b-4c53-9a4b-9f1f4a7f1d11", "2d5a7f2c-6d57-4f0e-8a37-3c1de43e6c22"  # noqa: E741 short, for the URLs
_PRIVATE = f"https://{W.replace('-', '')}.z1f"
_REGIONAL = "https://westeurope-onelake.dfs.fabric.microsoft.com"
_ZONE = "Files/LandingZone"


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        (f"{ENDPOINT}/{W}/{I}/{_ZONE}", ENDPOINT),
        (f"  {ENDPOINT.upper().replace('HTTPS', 'https')}/{W.upper()}/{I.upper()}/{_ZONE}/\n", ENDPOINT),
        (f"{ENDPOINT}/{W}/{I}/Files", ENDPOINT),
        (f"{ENDPOINT}/{W}/{I}/", ENDPOINT),
        (f"{ENDPOINT}/{W}/{I}.MirroredDatabase/{_ZONE}", ENDPOINT),
        (f"https://onelake.blob.fabric.microsoft.com/{W}/{I}/{_ZONE}", ENDPOINT),
        (f"https://api.onelake.fabric.microsoft.com/{W}/{I}/{_ZONE}", ENDPOINT),
        (f"{_REGIONAL}/{W}/{I}/{_ZONE}", _REGIONAL),
        (f"{_REGIONAL.replace('.dfs.', '.blob.')}/{W}/{I}/{_ZONE}", _REGIONAL),
        *(
            (f"{_PRIVATE}.{interface}.fabric.microsoft.com/{W}/{I}/{_ZONE}", f"{_PRIVATE}.dfs.fabric.microsoft.com")
            for interface in ("dfs", "blob", "onelake", "w.api", "c")
        ),
        (f"abfss://{W}@onelake.dfs.fabric.microsoft.com/{I}/{_ZONE}", ENDPOINT),
        (f"abfss://{W}@westeurope-onelake.blob.fabric.microsoft.com/{I}", _REGIONAL),
        (f"https://app.fabric.microsoft.com/groups/{W}/mirroreddatabases/{I}?experience=fabric-developer", ENDPOINT),
        (f"https://app.powerbi.com/groups/{W}/mirroredDatabases/{I.upper()}/details?ctid={I}#top", ENDPOINT),
        (f"https://127.0.0.1:8443/{W}/{I}/{_ZONE}", "https://127.0.0.1:8443"),
    ],
)
def test_a_url_of_the_database_is_read(url: str, endpoint: str) -> None:
    assert read_url(url) == (endpoint, W, I)


@pytest.mark.parametrize(
    ("url", "write"),
    [
        (f"{ENDPOINT}/{W}/{I}/{_ZONE}/sales.schema/orders", f"{ENDPOINT}/{W}/{I}/{_ZONE}"),
        (f"{ENDPOINT}/{W}/{I}/Tables/sales", f"{ENDPOINT}/{W}/{I}/{_ZONE}"),
        (f"{ENDPOINT}/{W}/{I}/files/landingzone", f"{ENDPOINT}/{W}/{I}/{_ZONE}"),
        (f"{ENDPOINT}/{W}/{I}/{_ZONE}?sig=planted", f"{ENDPOINT}/{W}/{I}/{_ZONE}"),
        (f"{ENDPOINT.replace('https', 'http')}/{W}/{I}/{_ZONE}", f"{ENDPOINT}/{W}/{I}/{_ZONE}"),
        (f"https://me:planted@onelake.dfs.fabric.microsoft.com/{W}/{I}/{_ZONE}", f"{ENDPOINT}/{W}/{I}/{_ZONE}"),
        (f"{ENDPOINT}/Sales%20Team/sales.MirroredDatabase/{_ZONE}", "<workspace GUID>/<item GUID>/Files/LandingZone"),
        (f"{ENDPOINT}/{W}/sales.MirroredDatabase/{_ZONE}", f"{ENDPOINT}/{W}/<item GUID>/{_ZONE}"),
        (f"abfss://Sales@onelake.dfs.fabric.microsoft.com/{I}", f"{ENDPOINT}/<workspace GUID>/{I}/{_ZONE}"),
        ("https://app.fabric.microsoft.com/groups/me/list", f"{ENDPOINT}/<workspace GUID>/<item GUID>/{_ZONE}"),
        (f"https://app.fabric.microsoft.com/groups/{W}/lakehouses/{I}", "<workspace GUID>/<item GUID>"),
        (f"https://app.fabric.microsoft.com/groups/me/mirroreddatabases/{I}", f"<workspace GUID>/{I}/{_ZONE}"),
        (f"https://{'a' * 32}.zaa.dfs.fabric.microsoft.com/{W}/{I}/{_ZONE}", f"{_PRIVATE}.dfs.fabric.microsoft.com"),
        (f"https://{W}.pbidedicated.fabric.microsoft.com/{W}/{I}/{_ZONE}", f"write {ENDPOINT} in place of https://{W}"),
    ],
)
def test_another_url_is_refused_with_the_one_to_write(url: str, write: str) -> None:
    with pytest.raises(ValueError, match=r"expected .*write ") as refusal:
        read_url(url)
    assert write in str(refusal.value)
    assert "planted" not in str(refusal.value)


_GUIDS = st.uuids().map(str) | st.uuids().map(lambda guid: str(guid).upper())
_HOSTS = st.sampled_from(
    ["onelake.dfs", "onelake.blob", "api.onelake", "eastus2-onelake.dfs", "msit-onelake.blob", "{}.z{}.blob"]
)
_ENDS = st.sampled_from(["", "/", "/Files", "/Files/", f"/{_ZONE}", f"/{_ZONE}/"])


def _pasted(workspace: str, item: str, host: str, end: str, form: str) -> str:
    plain = uuid.UUID(workspace).hex
    host = f"{host.format(plain, plain[:2])}.fabric.microsoft.com"
    return form.format(workspace=workspace, item=item, host=host, end=end)


_FORMS = st.sampled_from(
    [
        "https://{host}/{workspace}/{item}{end}",
        "https://{host}/{workspace}/{item}.MirroredDatabase{end}",
        "abfss://{workspace}@{host}/{item}{end}",
        "https://app.fabric.microsoft.com/groups/{workspace}/mirroreddatabases/{item}?experience=power-bi",
    ]
)


@given(_GUIDS, _GUIDS, _HOSTS, _ENDS, _FORMS)
def test_reading_is_idempotent_and_never_changes_the_item(
    workspace: str, item: str, host: str, end: str, form: str
) -> None:
    address = OneLakeAddress.parse(_pasted(workspace, item, host, end, form))
    assert (address.workspace, address.item) == (workspace.lower(), item.lower())
    assert ".dfs." in address.host
    assert OneLakeAddress.parse(address.url) == OneLakeAddress.parse(address.abfss) == address


@given(st.text(alphabet="/@:?#%.-aAfF019 GUID", max_size=60), _GUIDS, _GUIDS)
def test_any_other_text_is_refused_or_names_the_item_that_it_shows(text: str, workspace: str, item: str) -> None:
    for url in (text, f"https://{text}/{workspace}/{item}", f"{ENDPOINT}/{workspace}/{item}{text}"):
        try:
            found = read_url(url)
        except ValueError:
            continue
        assert found[1:] == (workspace.lower(), item.lower())
