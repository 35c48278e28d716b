"""Compares PyTorch's own ways to start with warmgraph's: from a new process to the first result, then replays.

usage: torch_peers.py LIBWARMGRAPH [--subject step,table,huggingface] [--only PATTERN]... [--runs 3] [--limit 290] [--json FILE]
                      [--folder DIR] [--list]

LIBWARMGRAPH is a libwarmgraph.so with the CUDA backend; PyTorch is this Python's. Each way starts in its own processes, one after the
other, with its own caches. "start": since the process was started; "ready": since CUDA runs and the model is on the device; "graph": a
table's first graph is ready, and its work done; "result": the next tokens are on the host. "step" is one of up to 200 in a row, "enqueuing" the
host's part of a step on an idle device. A process moves to the fastest core when it starts and again before it is
ready, because other processes may use the machine. warmgraph's package is compiled to bytecode first, like pip does. Fast ways run
--runs times, in turns, if --limit (seconds for everything) permits it; then the table has medians. The reason of a failed way is below the table.
--only takes a shell pattern of ways' names (--list shows them), and adds the ways that they need; it may be repeated. --folder is kept.
Sizes: --layers, --dim, --heads, --hidden, --vocabulary, --batch, --context of the step; --table-layers, --sizes of the table; --hf-layers.
Exit status: 0; 1 a way of warmgraph's failed, or tokens are wrong; 2 usage; 3 there is no PyTorch with CUDA.
"""
from __future__ import annotations

import argparse
import compileall
import contextlib
import fnmatch
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any, Iterator

from peers import processes, table
from peers.processes import Place
from peers.table import Row
from peers.ways import SUBJECTS, Subject, Way, needed

FOLDER = pathlib.Path(__file__).resolve().parent
PACKAGE = FOLDER.parent / "python" / "warmgraph"
LLAMA_STEP = FOLDER.parent / "tests" / "gpu" / "torch" / "llama_step.py"
SIZES = {"layers": 16, "dim": 2048, "heads": 16, "hidden": 5632, "vocabulary": 32000, "batch": 8, "context": 1024, "hf_layers": 8,
         "table_layers": 16, "sizes": 32}
LEAST_S = 8  # do not start a process with fewer seconds left
NEEDED_BYTES = 8e9  # for a memory folder: weights and caches of the step, and spare room


def say(text: str) -> None:
    print(f"[{time.monotonic() - STARTED:6.1f} s] {text}", file=sys.stderr, flush=True)


STARTED = time.monotonic()


class Comparison:
    """The processes of all ways, and their rows."""

    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path) -> None:
        self.arguments, self.folder = arguments, folder
        self.rows: dict[str, list[Row]] = {}
        self.machine: dict[str, Any] = {}

    def left_s(self) -> float:
        return self.arguments.limit - (time.monotonic() - STARTED)

    def quickest_s(self, subject: str) -> float:
        """The fastest process of this subject's fast ways."""
        return min((answer["process_s"] for row in self.rows.get(subject, []) if row.way.is_repeated for answer in row.answers), default=0.0)

    # --- one process

    def settings(self, subject: str, way: Way, limit_s: float) -> dict[str, Any]:
        place = Place(self.folder / subject)
        sizes = {name: getattr(self.arguments, name) for name in SIZES}
        return {"subject": subject, "start": way.start, "family": way.family, "folder": str(place.folder), "entries": str(place.entries(way)),
                "leaves": way.leaves, "needs": way.needs, "answer": str(place.folder / "answer.json"), "limit_s": max(1.0, limit_s - 2),
                "library": self.arguments.library, "with_transformers": any(one.name == "huggingface" for one, _ in self.chosen), **sizes}

    def answer(self, subject: str, way: Way) -> dict[str, Any]:
        place = Place(self.folder / subject)
        reason = place.missing(way)
        if reason:
            return {"reason": reason}
        limit_s = min(way.limit_s, self.left_s())
        if limit_s < LEAST_S or self.left_s() < self.quickest_s(subject):
            return {"reason": f"left out: {self.arguments.limit:.0f} s were used up (--limit)"}
        place.prepared(way)
        settings = self.settings(subject, way, limit_s)
        command, found = [sys.executable, str(FOLDER / "peers" / "with_torch.py"), json.dumps(settings)], settings["answer"]
        if way.start == "without torch":
            command[1] = str(FOLDER / "peers" / "without_torch.py")
        if way.start == "adopt":
            command, found = self.adopting(place), place.folder / "adopted" / "capture.json"
        log = place.folder / "logs" / f"{re.sub('[^a-z]+', '-', way.name.lower()).strip('-')}.log"
        return processes.run(command, place.environment(way, {"WARMGRAPH_LIBRARY": self.arguments.library}), limit_s, log, pathlib.Path(found))

    def adopting(self, place: Place) -> list[str]:
        folder = place.folder / "adopted"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shape = [text for name in ("layers", "dim", "heads", "hidden", "vocabulary", "batch", "context")
                 for text in (f"--{name}", str(getattr(self.arguments, name)))]
        return [sys.executable, str(LLAMA_STEP), self.arguments.library, "--capture", str(folder), *shape]

    # --- all

    @property
    def chosen(self) -> list[tuple[Subject, list[Way]]]:
        """The ways that --subject and --only name, and the ways that they need, in the subjects' order."""
        subjects, patterns = self.arguments.subject.split(","), self.arguments.only or ["*"]
        found = []
        for subject in (one for one in SUBJECTS if one.name in subjects):
            named = [way for way in subject.ways if any(fnmatch.fnmatchcase(way.name, pattern) for pattern in patterns)]
            all_needed = [one for way in named for one in (*needed(way, subject), way)]
            found.append((subject, [way for way in subject.ways if way in all_needed]))
        return found

    def run(self) -> str:
        """Returns why there is nothing to compare, or ""."""
        for name in ("machine", *(subject.name for subject, _ in self.chosen)):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.machine = self.answer("machine", Way("machine", "machine", "", "machine"))
        if "reason" in self.machine:
            return str(self.machine["reason"])
        say(f"{self.machine['gpu']}, torch {self.machine['torch']}: imported once, so files are in memory")
        if not compileall.compile_dir(PACKAGE, quiet=2):
            say(f"no bytecode was written beside {PACKAGE}: each process compiles the package, which an installed one does not")
        for subject, ways in self.chosen:
            self.rows[subject.name] = [Row(way) for way in ways]
            for row in self.rows[subject.name]:
                self.once(subject, row)
        for number in range(1, self.arguments.runs):
            self.again(number)
        for rows in self.rows.values():
            table.compare_tokens(rows)
        return ""

    def once(self, subject: Subject, row: Row) -> None:
        row.take(self.answer(subject.name, row.way))
        row.stored_bytes = self.stored(subject, row)
        last = row.answers[-1] if row.answers else {}
        told = row.reason or row.wrong or f"{table.duration(last.get('first_s'))}, process {table.duration(last.get('process_s'))}"
        say(f"{subject.name}, {row.way.name}: {told}")

    def again(self, number: int) -> None:
        """Runs the fast ways again, in turns, while there is time."""
        for subject, _ in self.chosen:
            for row in self.rows[subject.name]:
                takes = row.get("process_s")
                if row.way.is_repeated and len(row.answers) == number and takes is not None and takes * 1.3 + LEAST_S < self.left_s():
                    self.once(subject, row)

    def stored(self, subject: Subject, row: Row) -> int | None:
        """Bytes that a later start of this way needs."""
        place, way = Place(self.folder / subject.name), row.way
        if not row.answers or way.start in ("eager", "graph", "table of graphs"):
            return None
        if way.start in ("adopt", "without torch"):
            return processes.size_of(place.folder / "adopted" / "cache")
        if way.start == "mega":
            return processes.size_of(place.folder / way.needs)
        return processes.size_of(place.entries(way) if way.entries else place.caches(way))

    # --- Output

    def lines(self) -> list[str]:
        lines = [self.machine_line()]
        for subject, _ in self.chosen:
            rows = self.rows.get(subject.name, [])
            title = subject.title.format(**{name: getattr(self.arguments, name) for name in SIZES})
            lines += ["", *table.lines_of(subject, f"{subject.name}: {title}", rows)]
        recorded = [line for subject, _ in self.chosen for line in table.recording_lines(subject, self.rows.get(subject.name, []))]
        lines += ["", "recording added", *recorded] if recorded else []
        quick = table.core_lines(self.rows)
        lines += ["", table.core_title(self.rows), *quick] if quick else []
        lines += ["", f"{'target':<72}{'':>11}{'found':>10}", *(target.line() for target in table.targets(self.rows))]
        for subject, _ in self.chosen:
            found = table.ratios(subject, self.rows.get(subject.name, []))
            lines += ["", f"{subject.name}: how many times longer the others take", *found] if found else []
        return [*lines, "", f"in all {time.monotonic() - STARTED:.0f} s"]

    def machine_line(self) -> str:
        found = self.machine
        parts = [found.get("gpu"), f"driver {driver()}", f"CUDA {found.get('cuda')}", f"torch {found.get('torch')}",
                 f"transformers {found['transformers']}" if "transformers" in found else "", f"warmgraph {found.get('warmgraph')}",
                 f"{found.get('cores')} cores"]
        return ", ".join(str(part) for part in parts if part)

    def as_json(self) -> dict[str, Any]:
        return {"machine": {**self.machine, "driver": driver()}, "arguments": vars(self.arguments),
                "subjects": {name: [row.as_json() for row in rows] for name, rows in self.rows.items()},
                "targets": [vars(target) for target in table.targets(self.rows)], "seconds": time.monotonic() - STARTED}

    def status(self) -> int:
        rows = [row for rows in self.rows.values() for row in rows]
        ours = [row for row in rows if row.way.entries or row.way.start in ("adopt", "without torch")]
        return 1 if any(row.wrong for row in rows) or any(row.reason for row in ours) else 0


def driver() -> str:
    """The driver's version, "580.159.04"."""
    with contextlib.suppress(OSError):
        found = re.search(r"(\d+\.\d+(\.\d+)?)", pathlib.Path("/proc/driver/nvidia/version").read_text())
        if found:
            return found.group(1)
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        asked = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True, timeout=10,
                               check=False)
        if asked.returncode == 0 and asked.stdout.strip():
            return asked.stdout.split()[0]
    return "unknown"


@contextlib.contextmanager
def working_folder(given: str | None) -> Iterator[pathlib.Path]:
    """The folder of --folder, which is kept; else a temporary folder, in memory if there is room."""
    if given:
        folder = pathlib.Path(given).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    memory = pathlib.Path("/dev/shm")
    place = memory if memory.is_dir() and shutil.disk_usage(memory).free > NEEDED_BYTES else pathlib.Path(tempfile.gettempdir())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="warmgraph-peers-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parsed(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("library", nargs="?")
    parser.add_argument("--subject", default=",".join(one.name for one in SUBJECTS))
    parser.add_argument("--only", action="append")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=290)
    parser.add_argument("--json")
    parser.add_argument("--folder")
    parser.add_argument("--list", action="store_true")
    for name, value in SIZES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    arguments = parser.parse_args(given)
    unknown = set(arguments.subject.split(",")) - {one.name for one in SUBJECTS}
    if unknown:
        parser.error(f"--subject {sorted(unknown)[0]}: expected some of {', '.join(one.name for one in SUBJECTS)}")
    if not arguments.list and (not arguments.library or not pathlib.Path(arguments.library).is_file()):
        parser.error(f"LIBWARMGRAPH is {arguments.library!r}, expected the path of libwarmgraph.so")
    arguments.library = str(pathlib.Path(arguments.library).resolve()) if arguments.library else ""
    return arguments


def main(given: list[str] | None = None) -> int:
    arguments = parsed(given)
    if arguments.list:
        for subject in SUBJECTS:
            print("\n".join([subject.name, *(f"  {way.name}" for way in subject.ways)]))
        return 0
    with working_folder(arguments.folder) as folder:
        comparison = Comparison(arguments, folder)
        try:
            why = comparison.run()
            if why:
                print(f"torch_peers: nothing to compare: {why}", file=sys.stderr)
                return 3
        finally:
            if comparison.rows:  # also for an interrupted run
                print("\n".join(comparison.lines()), flush=True)
            if arguments.json:
                pathlib.Path(arguments.json).write_text(json.dumps(comparison.as_json(), indent=1))
        return comparison.status()


if __name__ == "__main__":
    sys.exit(main())
