"""Reads the URL of a mirrored database as people paste it: of its landing zone, of a file in it, of its page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

_GLOBAL, _API = "onelake.dfs.fabric.microsoft.com", "api.onelake.fabric.microsoft.com"
ENDPOINT = f"https://{_GLOBAL}"
LANDING_ZONE = "Files/LandingZone"

GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OF_TYPE = ".mirroreddatabase"
_PORTALS = frozenset({"app.fabric.microsoft.com", "app.powerbi.com"})
_FABRIC = ".fabric.microsoft.com"
# The host of a workspace's private link, whichever interface follows (reference `onelake` §2).
_PRIVATE = re.compile(r"([0-9a-f]{32})\.z[0-9a-f]{2}\.")
_ACCEPTED = ("", "Files", LANDING_ZONE)


def read_url(url: str) -> tuple[str, str, str]:
    """Return endpoint, workspace and item, both by GUID in small letters.

    Accepts the URL of the item, its `Files` or its landing zone at any host of OneLake, also as abfss URI, and the
    address of the item's page in the portal. Raises ValueError with the URL to write for any other text; the message
    repeats no part that may be secret.
    """
    parts = urlsplit(url.strip())
    before, _, host = parts.netloc.lower().rpartition("@")
    steps = [step for step in parts.path.split("/") if step]
    is_page, is_abfss = host in _PORTALS, parts.scheme == "abfss"
    if is_page:
        steps = _ids_of_page(steps)
    elif is_abfss and before:
        steps.insert(0, before)
    workspace, item = (_guid(step) for step in (*steps, "", "")[:2])
    endpoint = ENDPOINT if is_page or not host else f"https://{_dfs_host(host, workspace)}"
    write = f"{endpoint}/{workspace or '<workspace GUID>'}/{item or '<item GUID>'}/{LANDING_ZONE}"
    if not workspace or not item:
        page = "paste the address of the mirrored database's page in the portal"
        raise ValueError(f"expected the GUIDs of workspace and item, not their names: write {write}, or {page}")
    is_known = (parts.scheme == "https" and not before) or (is_abfss and bool(before))
    is_alone = is_page or (not (parts.query or parts.fragment) and "/".join(steps[2:]) in _ACCEPTED)
    if not is_known or not is_alone:
        raise ValueError(f"expected the landing zone's URL alone: write {write}")
    return endpoint, workspace, item


def _ids_of_page(steps: Sequence[str]) -> list[str]:
    """Return workspace and item of `/groups/<workspace>/mirroreddatabases/<item>`; nothing for another page."""
    is_database = [step.lower() for step in steps[0:3:2]] == ["groups", "mirroreddatabases"]
    return [steps[1], steps[3]] if is_database and len(steps) > 3 else []


def _guid(text: str) -> str:
    """Return the GUID, without the item's type after it; "" for another text."""
    found = text.lower().removesuffix(_OF_TYPE)
    return found if GUID.fullmatch(found) else ""


def _dfs_host(host: str, workspace: str) -> str:
    """Return the host of the dfs interface: the blob interface and OneLake's API have others.

    Raises ValueError for another host of Fabric, and for the private link of another workspace.
    """
    private = _PRIVATE.match(host) if host.endswith(_FABRIC) else None
    if private is None:
        found = host.replace(".blob.", ".dfs.", 1)
        found = _GLOBAL if found == _API else found
        if found.endswith(_FABRIC) and ".dfs." not in found:
            raise ValueError(f"expected a host of OneLake: write https://{_GLOBAL} in place of https://{host}")
        return found
    own = workspace.replace("-", "")
    if own and private[1] != own:
        right = f"https://{own}.z{own[:2]}.dfs{_FABRIC}"
        raise ValueError(f"expected the host of the URL's own workspace: write {right} in place of https://{host}")
    return f"{private[0]}dfs{_FABRIC}"
