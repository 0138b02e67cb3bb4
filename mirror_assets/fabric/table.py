"""One table as Fabric mirrors it."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.landing.format import Manifest
from mirror_assets.monitoring import MonitoredTable, TableState


@dataclass(frozen=True)
class FabricTable(MonitoredTable):
    """One table of a mirrored database, with what its table folder tells; `uri` is where OneLake has it."""

    uri: str

    @property
    def location(self) -> str:
        """The mirrored table in OneLake."""
        return self.uri

    def has_applied(self, manifest: Manifest) -> bool:
        """Whether all that the manifest has committed is in the mirror, as far as Fabric tells.

        Fabric numbers nothing that it has applied. It does move landing files away when it has processed them, but for
        the last, and it counts the rows that it has processed, in all operations (reference `landing-zone` §4.14, §3).
        So: no other file waits, and the counter has reached the rows of all files of this epoch, the last one's too.

        To be confirmed on a live tenant: that the counter begins anew when a folder is made again (else a mirror may be
        compared too early: the check says so, and the next one is right), and that it counts every row of a file, also
        deletes without a match (else the mirror would seem to wait for ever).
        """
        counted = self.last_sync is not None and self.processed_rows >= manifest.landed_rows
        return self.state is TableState.REPLICATING and self.waiting_files == 0 and counted
