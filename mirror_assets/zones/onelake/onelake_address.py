"""The address of a folder of a Fabric item: endpoint, workspace and item by GUID, and the folder's path."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, urlsplit

ENDPOINT = "https://onelake.dfs.fabric.microsoft.com"
LANDING_ZONE = "Files/LandingZone"

_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?")


@dataclass(frozen=True)
class OneLakeAddress:
    """A folder of an item. Workspace and item are GUIDs, because names break after a rename, or mixed with a GUID."""

    workspace: str
    item: str
    endpoint: str = ENDPOINT
    folder: str = LANDING_ZONE

    def __post_init__(self) -> None:
        """Require GUIDs and an https endpoint. Raises ValueError."""
        for what, text in (("workspace", self.workspace), ("item", self.item)):
            if not _GUID.fullmatch(text):
                raise ValueError(f"expected the {what}'s GUID in small letters, got {text!r}")
        parts = urlsplit(self.endpoint)
        if parts.scheme != "https" or not _HOST.fullmatch(parts.netloc) or self.endpoint != f"https://{parts.netloc}":
            raise ValueError(f"expected an endpoint such as {ENDPOINT}, got {_shown(parts)!r}")

    @classmethod
    def parse(cls, url: str) -> OneLakeAddress:
        """Parse a URL as the portal shows it, `https://<host>/<workspace>/<item>/Files/LandingZone`.

        Raises ValueError for any other text.
        """
        parts = urlsplit(url.strip())
        segments = [segment for segment in parts.path.split("/") if segment]
        if parts.scheme != "https" or parts.query or parts.fragment or "@" in parts.netloc or len(segments) < 2:
            raise ValueError(f"expected the landing zone's URL as the portal shows it, got {_shown(parts)!r}")
        workspace, item, *folder = segments
        if "/".join(folder) != LANDING_ZONE:
            raise ValueError(f"expected a URL that ends with /{LANDING_ZONE}, got {_shown(parts)!r}")
        return cls(workspace.lower(), item.lower(), f"https://{parts.netloc}")

    def below(self, path: str) -> OneLakeAddress:
        """Return a folder below this one."""
        return replace(self, folder=f"{self.folder}/{path}")

    @property
    def host(self) -> str:
        """The endpoint's host, with its port if it has one."""
        return urlsplit(self.endpoint).netloc

    @property
    def blob_endpoint(self) -> str:
        """The endpoint of the blob interface, which the SDK reads through; firewalls must admit both."""
        return f"https://{self.host.replace('.dfs.', '.blob.', 1)}"

    @property
    def url(self) -> str:
        """The folder's URL, for messages and links."""
        return f"https://{self.host}/{self.workspace}/{self.item}/{self.folder}"

    @property
    def abfss(self) -> str:
        """The folder as Spark names it."""
        return f"abfss://{self.workspace}@{self.host}/{self.item}/{self.folder}"

    def within_workspace(self, path: str) -> str:
        """Return a path below the folder, from the workspace on; "" is the folder itself."""
        return f"{self.item}/{self.folder}/{path}" if path else f"{self.item}/{self.folder}"

    def relative(self, found: str) -> str:
        """Return the path below the folder of a name in a listing."""
        return found.removeprefix(f"{self.item}/{self.folder}/")


def _shown(url: SplitResult) -> str:
    """Return the URL without parts that may be secret: a user before the host, a signature after the path."""
    return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()
