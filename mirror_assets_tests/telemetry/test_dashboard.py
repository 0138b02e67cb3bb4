"""The dashboard uses exported metrics and their labels, and Prometheus can evaluate its expressions."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mirror_assets.telemetry.export import exporting
from mirror_assets_tests.pages import ROOT
from mirror_assets_tests.telemetry.recorded import exported_metrics, record_everything
from mirror_assets_tests.telemetry.scrape import free_port

DASHBOARD = json.loads((ROOT / "dashboards" / "mirror_assets.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
_OF_SCRAPES = {"job", "instance", "le"}
_SERVER = shutil.which("prometheus")


def _known() -> dict[str, frozenset[str]]:
    """Return the labels of each exported series, by its name."""
    return {
        f"{name}{ending}": metric.labels
        for name, metric in exported_metrics().items()
        for ending in (("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",))
    }


def test_every_panel_has_a_place_and_a_description() -> None:
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    assert all(panel["description"] and panel["title"] for panel in PANELS)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_each_expression_has_known_metrics_and_their_labels(expression: str) -> None:
    known = _known()
    names = set(re.findall(r"\b(?:mirror|process)_\w+", expression))
    ours = {name for name in names if name.startswith("mirror_")}
    assert names
    assert ours <= set(known)
    labels = {part.strip() for found in re.findall(r"by \(([^)]*)\)", expression) for part in found.split(",")}
    labels |= set(re.findall(r'(\w+)=~?"', expression))
    assert labels - _OF_SCRAPES <= {label for name in ours for label in known[name]}


def test_every_metric_of_tables_is_on_the_dashboard() -> None:
    shown = " ".join(EXPRESSIONS)
    missing = {name for name in exported_metrics() if name not in shown}
    assert missing == {"mirror_source_version", "mirror_covered_version", "mirror_published_time_seconds"}


class Prometheus:
    """A server that scrapes one port each second."""

    def __init__(self, folder: Path, scraped: int) -> None:
        self._port = free_port()
        config = folder / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s}\nscrape_configs:\n"
            f"  - {{job_name: mirror, static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]}}\n"
        )
        own = f"--web.listen-address=127.0.0.1:{self._port}"
        command = [str(_SERVER), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", own]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, expression: str) -> list[object]:
        """Return the answer to an expression. Raises OSError while the server starts, and for a wrong expression."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/query?{query}", timeout=10) as answer:
            found = json.load(answer)
        assert found["status"] == "success"
        return list(found["data"]["result"])

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A server that has scraped an export of everything for some seconds."""
    if _SERVER is None:
        pytest.skip("there is no `prometheus` on the path (Debian's package has one)")
    port = free_port()
    with exporting(pytest.fail, port=port):
        record_everything()
        server = Prometheus(tmp_path_factory.mktemp("prometheus"), port)
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                record_everything()
                time.sleep(1)
                with suppress(OSError):
                    if len(server.ask("count_over_time(mirror_lag_seconds[1m]) > 8")):
                        break
            yield server
        finally:
            server.close()


@pytest.mark.long(15)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_prometheus_answers_each_expression_with_data(prometheus: Prometheus, expression: str) -> None:
    asked = expression.replace("$__rate_interval", "30s").replace("$table", ".*").replace("$job", ".*")
    assert prometheus.ask(asked)
