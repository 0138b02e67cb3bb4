"""What becomes of a model over a limit, by the kind of Direct Lake that it uses (reference `direct-lake` §1.2)."""

from __future__ import annotations

from enum import Enum

from mirror_assets.direct_lake.guardrails.fit import Limit


class Mode(str, Enum):
    """The kinds of Direct Lake, as a model's connection and its property DirectLakeBehavior have it."""

    ONELAKE = "Direct Lake on OneLake"
    SQL = "Direct Lake on SQL, Automatic"
    SQL_ONLY = "Direct Lake on SQL, DirectLakeOnly"

    @property
    def fails(self) -> bool:
        """Whether over a limit queries fail; else they are slower, by DirectQuery."""
        return self is not Mode.SQL


def consequence(mode: Mode, limit: Limit) -> str:
    """What happens over the limit, in one sentence.

    Microsoft's pages don't agree on whether one table over its limits takes Direct Lake from the whole model
    ("evaluated per query" in the overview, "can prevent Direct Lake mode for the entire model" in How Direct Lake
    works). By tests of others, which no page confirms, the refresh of a model on SQL succeeds with a warning, and that
    of a model on OneLake fails.
    """
    if mode is Mode.ONELAKE:
        return "framing fails, and there is no DirectQuery to fall back to: the model can't be refreshed or queried"
    if mode is Mode.SQL_ONLY:
        return "queries fail"
    if limit is Limit.MODEL_BYTES:
        return "all queries to the model fall back to DirectQuery, which is slower"
    return "queries to the table, perhaps to the whole model, fall back to DirectQuery, which is slower"
