"""The cost of a condition and of masks: a large slice of changes encoded with them, beside the same without."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.bench_table import BenchTable
from benchmarks.contest import interleaved
from benchmarks.result import Case, Outcome
from benchmarks.source import make_source
from mirror_assets.source.log import DeltaLog

PLAIN, MASKS, MOST, MOST_MASKED, FEW_MASKED = (
    "all rows and values",
    "two masks",
    "90 % of the rows",
    "90 % of the rows, two masks",
    "10 % of the rows, two masks",
)
_MASKED = 'columns: {tailnum: "sha2(concat(tailnum, \'a salt\'), 256)", dest: "left(dest, 1)"}'
_MOST, _FEW = 'where: "flight % 10 <> 3"', 'where: "flight % 10 = 3"'
_SETTINGS = {
    PLAIN: (),
    MASKS: (_MASKED,),
    MOST: (_MOST,),
    MOST_MASKED: (_MOST, _MASKED),
    FEW_MASKED: (_FEW, _MASKED),
}


def run(bench: Bench) -> Outcome:
    """Encode and stage the changes in each way, after version 0, which is empty."""
    uri = make_source(bench.spark, bench.folder, bench.size(400_000, 4_100_000))
    ways = {name: _staging(bench, uri, name, settings) for name, settings in _SETTINGS.items()}
    last = DeltaLog(uri).state().version
    case = Case(f"versions 1 to {last}", interleaved(bench.meter, ways, bench.rounds), PLAIN)
    return Outcome("choosing", [case])


def _staging(bench: Bench, uri: str, name: str, settings: tuple[str, ...]) -> Callable[[int], None]:
    root = bench.folder / str(list(_SETTINGS).index(name)) / "begun"
    begun = BenchTable(bench.spark, root, uri, ", ".join(("keys: [id]", *settings)))
    begun.begin(0)
    return begun.in_copies(BenchTable.stage)
