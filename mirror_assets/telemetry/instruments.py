"""All exported metrics with their names, kinds, units and labels. No label contains a slice or a version."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

# The name of the meter and the tracer.
SCOPE: Final = "mirror_assets"


class Stage(str, Enum):
    """The stages of a slice."""

    PLAN = "plan"
    STAGE = "stage"
    CHECK = "check"
    PUBLISH = "publish"
    APPLY = "apply"


class MetricKind(str, Enum):
    """How a metric is measured."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True)
class Instrument:
    """A metric. `unit` is a UCUM unit, with annotations in braces; `bounds` are the bucket bounds of a histogram."""

    name: str
    kind: MetricKind
    unit: str
    text: str
    labels: tuple[str, ...] = ("table",)
    bounds: tuple[float, ...] = ()

    @property
    def exposed(self) -> str:
        """Its name in Prometheus, without the endings of a histogram's series."""
        unit = {"s": "_seconds", "By": "_bytes"}.get(self.unit, "")
        name = self.name.replace(".", "_")
        return f"{name}{unit}{'_total' if self.kind is MetricKind.COUNTER else ''}"


def _counter(name: str, unit: str, text: str, *labels: str) -> Instrument:
    return Instrument(name, MetricKind.COUNTER, unit, text, labels)


def _gauge(name: str, unit: str, text: str, *labels: str) -> Instrument:
    return Instrument(name, MetricKind.GAUGE, unit, text, ("table", *labels))


_STAGE_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_DELAY_BOUNDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0, 86400.0)

LAG: Final = _gauge("mirror.lag", "s", "Age of the oldest pending commit; 0 if none is pending.")
LAG_COMMITS: Final = _gauge("mirror.lag.commits", "{commit}", "Commits that are known to be pending.")
SOURCE_VERSION: Final = _gauge("mirror.source.version", "{version}", "The newest known version of the source.")
COVERED_VERSION: Final = _gauge("mirror.covered.version", "{version}", "The version that has landed.")
POLLED: Final = _gauge("mirror.polled.time", "s", "When the source was last polled, since 1970; 0 if never.")
PUBLISHED: Final = _gauge("mirror.published.time", "s", "When this process last published a slice, since 1970.")
CHECK_PASSED: Final = _gauge("mirror.check.passed", "", "0 if the check's newest result is a failure, else 1.", "check")
DAEMON_HEARTBEAT: Final = Instrument(
    "mirror.daemon.heartbeat.time",
    MetricKind.GAUGE,
    "s",
    "The last heartbeat of a required Dagster daemon, since 1970; 0 if never.",
    ("daemon",),
)

SLICES: Final = _counter(
    "mirror.slices", "{slice}", "Slices, or chunks of a snapshot, that have landed.", "table", "kind"
)
ROWS: Final = _counter("mirror.rows", "{row}", "Rows in landing files, by the kind of change.", "table", "change")
BYTES: Final = _counter("mirror.landed", "By", "Bytes of landing files.", "table")
FILES: Final = _counter("mirror.files", "{file}", "Landing files.", "table")
FAILURES: Final = _counter(
    "mirror.failures", "{failure}", "Failed attempts at a table, by the error's code.", "table", "code"
)
STAGE_SECONDS: Final = _counter("mirror.stage", "s", "Time spent in a stage.", "table", "stage")
REQUESTS: Final = _counter(
    "mirror.store.requests",
    "{request}",
    "Requests to stores, by the status of the response.",
    "store",
    "operation",
    "status",
)
COST_REQUESTS: Final = _counter("mirror.estimated.requests", "{request}", "Estimated requests to OneLake.", "table")
COST_CAPACITY: Final = _counter(
    "mirror.estimated.capacity_unit_seconds", "{CU.s}", "Estimated Fabric capacity for these requests.", "table"
)
STAGE_DURATION: Final = Instrument(
    "mirror.stage.duration", MetricKind.HISTOGRAM, "s", "Duration of one stage of one slice.", ("stage",), _STAGE_BOUNDS
)
LANDING_DELAY: Final = Instrument(
    "mirror.landing.delay",
    MetricKind.HISTOGRAM,
    "s",
    "Age of a slice's last commit when the slice lands.",
    (),
    _DELAY_BOUNDS,
)

TABLE_GAUGES: Final = (LAG, LAG_COMMITS, SOURCE_VERSION, COVERED_VERSION, POLLED, PUBLISHED)
COUNTERS: Final = (
    SLICES,
    ROWS,
    BYTES,
    FILES,
    FAILURES,
    STAGE_SECONDS,
    REQUESTS,
    COST_REQUESTS,
    COST_CAPACITY,
)
HISTOGRAMS: Final = (STAGE_DURATION, LANDING_DELAY)
INSTRUMENTS: Final = (*TABLE_GAUGES, CHECK_PASSED, DAEMON_HEARTBEAT, *COUNTERS, *HISTOGRAMS)
