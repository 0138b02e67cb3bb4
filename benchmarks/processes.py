"""What many processes cost together: those that were started with one mark in their environment, by what they do.

The mark finds them wherever they are: a JVM whose Python has ended belongs to no parent any more.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import TracebackType

from typing_extensions import Self

MARK = "MIRROR_BENCH_MARK"
_TICKS = os.sysconf("SC_CLK_TCK")
_EVERY_SECONDS = 1.0


class Role(str, Enum):
    """What a process does."""

    DAEMON = "daemon"
    WEBSERVER = "webserver"
    CODE_SERVER = "code server"
    RUN = "run"
    JVM = "JVM"
    POSTGRES = "postgres"
    OTHER = "other"


# By a part of the command line's first words; the first that is found. Dagster's code server spawns its runs.
_WORDS = 5
_ROLES = {
    "/java": Role.JVM,
    "dagster_webserver": Role.WEBSERVER,
    "dagster._daemon": Role.DAEMON,
    "spawn_main": Role.RUN,
    "mirror-assets": Role.RUN,
    "code-server start": Role.CODE_SERVER,
    "dagster api grpc": Role.CODE_SERVER,
    "postgres": Role.POSTGRES,
}


@dataclass(frozen=True)
class Usage:
    """Seconds, processor seconds, and bytes of memory when all processes together had most; shared pages count once."""

    seconds: float
    cpu: Mapping[Role, float]
    peak: Mapping[Role, int]

    @property
    def cpu_seconds(self) -> float:
        """Of all processes."""
        return sum(self.cpu.values())

    @property
    def bytes(self) -> int:
        """Of all processes."""
        return sum(self.peak.values())


@dataclass(frozen=True)
class _Process:
    pid: int
    began: int

    @property
    def folder(self) -> Path:
        return Path(f"/proc/{self.pid}")


@dataclass(frozen=True)
class _Seen:
    process: _Process
    parent: int
    cpu: float


@dataclass
class ProcessWatch:
    """Looks at the marked processes once a second, as a context; what ends between two looks is missed after the first.

    Memory is the sum of proportional set sizes: what processes share, as a code server and its runs do, counts once.
    """

    mark: str
    _ours: dict[_Process, bool] = field(default_factory=dict)
    _cpu: dict[_Process, tuple[Role, float]] = field(default_factory=dict)
    _peak: Mapping[Role, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def begin(self) -> Callable[[], Usage]:
        """Begin to measure; the function that is returned says what was used since."""
        self._look()
        with self._lock:
            before, self._peak = self._by_role(), {}
        began = time.perf_counter()

        def used() -> Usage:
            self._look()
            with self._lock:
                cpu = self._by_role()
                spent = {role: cpu[role] - before[role] for role in Role if cpu[role] > before[role]}
                return Usage(time.perf_counter() - began, spent, self._peak)

        return used

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_SECONDS):
            self._look()

    def _look(self) -> None:
        with self._lock:
            memory: Counter[Role] = Counter()
            for seen in self._our_processes():
                try:
                    role = _role(seen.process)
                    memory[role] += _proportional(seen.process)
                except OSError:  # it has ended since it was listed
                    continue
                self._cpu[seen.process] = (role, seen.cpu)
            if memory.total() > sum(self._peak.values()):
                self._peak = memory

    def _our_processes(self) -> Iterator[_Seen]:
        """Marked ones, and their children: a child of Postgres writes its title over its environment."""
        parents = set[int]()
        for seen in _processes():
            if seen.process not in self._ours:
                self._ours[seen.process] = seen.parent in parents or is_marked(seen.process.pid, self.mark)
            if self._ours[seen.process]:
                parents.add(seen.process.pid)
                yield seen

    def _by_role(self) -> dict[Role, float]:
        total = dict.fromkeys(Role, 0.0)
        for role, cpu in self._cpu.values():
            total[role] += cpu
        return total


def is_marked(pid: int, mark: str) -> bool:
    """Whether the process was started with the mark."""
    try:
        return f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def pythons_of(mark: str, words: str) -> list[int]:
    """The marked Python processes whose command line has these words."""
    found = []
    for pid in _marked(mark):
        with suppress(OSError):  # it has ended since it was listed
            line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            if words in line and Path(line.split()[0]).name.startswith("python"):
                found.append(pid)
    return found


def cpu_of_family(pid: int) -> float:
    """Return the processor seconds of a process and of all that descend from it and have not ended."""
    seen = {one.process.pid: one for one in _processes()}
    children = defaultdict[int, list[int]](list)
    for process in seen.values():
        children[process.parent].append(process.process.pid)
    family, found = [pid], 0.0
    while family:
        one = family.pop()
        found += seen[one].cpu if one in seen else 0
        family += children[one]
    return found


def end_marked(mark: str, *, seconds: float) -> None:
    """Ask the marked processes to end, and kill those that are there after so many seconds."""
    for wanted in (signal.SIGTERM, signal.SIGKILL):
        for pid in _marked(mark):
            try:
                os.kill(pid, wanted)
            except ProcessLookupError:
                continue
        deadline = time.monotonic() + seconds
        while _marked(mark) and time.monotonic() < deadline:
            time.sleep(0.2)


def _marked(mark: str) -> list[int]:
    """Zombies have no environment any more."""
    return [seen.process.pid for seen in _processes() if is_marked(seen.process.pid, mark)]


def _processes() -> Iterator[_Seen]:
    """Every process with its processor seconds, those of its threads that have ended too."""
    for name in os.listdir("/proc"):  # noqa: PTH208 it is looked through once a second: names are enough
        if name.isdecimal():
            try:
                fields = Path(f"/proc/{name}/stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            numbers = fields.rpartition(")")[2].split()
            cpu = (int(numbers[11]) + int(numbers[12])) / _TICKS
            yield _Seen(_Process(int(name), int(numbers[19])), int(numbers[1]), cpu)


def _role(process: _Process) -> Role:
    words = (process.folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    begin = " ".join(words[:_WORDS])
    return next((role for part, role in _ROLES.items() if part in begin), Role.OTHER)


def _proportional(process: _Process) -> int:
    lines = (process.folder / "smaps_rollup").read_text(encoding="ascii").splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)
