"""The measured rows as text: medians, compared tokens, targets, ratios. Does not import PyTorch."""
from __future__ import annotations

import dataclasses
import math
import statistics
import textwrap
from typing import Any, Mapping, Sequence

from .cores import SLOWER
from .ways import ROLES, Subject, Way

WIDTH = 110
READY_WITH_S, READY_WITHOUT_S, START_WITHOUT_S = 0.012, 0.007, 0.7
FIRST_GRAPH_S, ALL_GRAPHS_S, REPLAY, STORED_BYTES = 0.012, 0.150, 1.01, 10e6


@dataclasses.dataclass
class Row:
    """A way with its processes' answers. `reason`: why it has no answer; `wrong`: what is incorrect."""

    way: Way
    answers: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    reason: str = ""
    wrong: str = ""
    stored_bytes: int | None = None

    def take(self, answer: Mapping[str, Any]) -> None:
        if "reason" in answer:
            if self.answers:  # an earlier process succeeded
                self.wrong = self.wrong or f"once it {answer['reason']}"
            else:
                self.reason = str(answer["reason"])
            return
        self.answers.append(dict(answer))
        self.wrong = self.wrong or str(answer.get("wrong", ""))

    def get(self, name: str) -> float | None:
        """The median over its processes."""
        values = [answer[name] for answer in self.answers if isinstance(answer.get(name), (int, float)) and not isinstance(answer.get(name), bool)]
        return statistics.median(values) if values else None

    def on_quick_cores(self, name: str, least_s: float) -> tuple[float | None, int]:
        """(the median over the processes on fast cores, their number). least_s: the fastest loop of all rows' processes."""
        quick = [answer[name] for answer in self.answers if name in answer and answer.get("core_s", math.inf) <= SLOWER * least_s]
        return (statistics.median(quick) if quick else None), len(quick)

    @property
    def tokens(self) -> Any:
        return next((answer["tokens"] for answer in self.answers if answer.get("tokens")), None)

    def as_json(self) -> dict[str, Any]:
        names = sorted({name for answer in self.answers for name in answer})
        medians = {name: self.get(name) for name in names if self.get(name) is not None}
        return {"way": self.way.name, "reason": self.reason, "wrong": self.wrong, "stored_bytes": self.stored_bytes, "median": medians,
                "runs": self.answers}


def compare_tokens(rows: Sequence[Row]) -> None:
    """Checks that all processes of a family gave the same tokens as the first one with tokens."""
    first: dict[str, tuple[str, Any]] = {}
    for row in rows:
        for answer in row.answers:
            tokens = answer.get("tokens")
            if not tokens or not row.way.family:
                continue
            whose, expected = first.setdefault(row.way.family, (row.way.name, tokens))
            if tokens != expected and not row.wrong:
                row.wrong = f"{_differing(tokens, expected)} tokens differ from those of '{whose}'"


def _differing(tokens: Any, expected: Any) -> str:
    if isinstance(tokens, dict) and isinstance(expected, dict):
        keys = sorted(expected.keys() | tokens.keys(), key=str)
        return f"in {sum(tokens.get(key) != expected.get(key) for key in keys)} of {len(keys)} sizes,"
    if len(tokens) != len(expected):
        return f"{len(tokens)} instead of {len(expected)}, and"
    return f"{sum(a != b for a, b in zip(tokens, expected))} of {len(expected)}"


# --- numbers with their unit


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, factor, until in (("us", 1e6, 999.5e-6), ("ms", 1e3, 0.9995)):
        if abs(seconds) < until:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds)} s"


def size(count: float | None) -> str:
    if count is None:
        return "-"
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} KB"


def factor(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}x" if number < 2 else f"{_three_digits(number)}x"


def _three_digits(number: float) -> str:
    return f"{number:.2f}" if abs(number) < 9.995 else f"{number:.1f}" if abs(number) < 99.95 else f"{number:.0f}"


# --- a subject's table


def _columns(subject: Subject) -> list[tuple[str, Any]]:
    def seconds(name: str) -> Any:
        return lambda row: duration(row.get(name))

    stored = ("stored", lambda row: size(row.stored_bytes))
    if subject.is_table:
        sizes = [(f"step, {count}", seconds(f"step{count}_s")) for count in (1, 8, 32)]
        return [("start, result", seconds("start_s")), ("ready, graph", seconds("graph_s")), ("ready, result", seconds("first_s")),
                ("ready, all", seconds("all_s")), *sizes, stored]
    return [("start, result", seconds("start_s")), ("of it model", seconds("model_s")), ("ready, result", seconds("first_s")),
            ("step", seconds("step_s")), ("enqueuing", seconds("enqueue_s")), stored]


def lines_of(subject: Subject, title: str, rows: Sequence[Row]) -> list[str]:
    columns = _columns(subject)
    name_width = max(35 if subject.is_table else 39, *(len(row.way.name) + 2 for row in rows)) if rows else 39
    widths = [max(len(head), 9) + 1 for head, _ in columns]
    lines = [title, f"{'':<{name_width}}" + "".join(f"{head:>{width}}" for (head, _), width in zip(columns, widths))]
    notes: list[str] = []
    for row in rows:
        if row.answers and not row.way.family and not row.wrong:  # the process only prepared another way
            continue
        mark = ""
        if row.reason or row.wrong:
            notes.append(f"{'WRONG: ' if row.wrong else ''}{row.way.name}: {row.reason or row.wrong}")
            mark = f" [{len(notes)}]"
        name = f"{row.way.name}{mark}"
        cells = [cell(row) for _, cell in columns] if row.answers else ["-"] * len(columns)
        lines.append(f"{name:<{name_width}}" + "".join(f"{text:>{width}}" for text, width in zip(cells, widths)))
    for number, note in enumerate(notes, 1):
        lines += textwrap.wrap(" ".join(note.split()), WIDTH, initial_indent=f"[{number}] ", subsequent_indent="    ")
    return lines


def least_core_s(rows: Mapping[str, Sequence[Row]]) -> float | None:
    """The fastest loop of all processes."""
    found = [answer["core_s"] for some in rows.values() for row in some for answer in row.answers if "core_s" in answer]
    return min(found) if found else None


def core_title(rows: Mapping[str, Sequence[Row]]) -> str:
    return (f"on quick cores (a fixed loop took {duration(least_core_s(rows))} in the quickest process, and so many times longer in others: "
            "neighbours use the cores)")


def core_lines(rows: Mapping[str, Sequence[Row]]) -> list[str]:
    """The times of warmgraph's hits on cores without other load."""
    least = least_core_s(rows)
    if least is None:
        return []
    lines = []
    for subject, some in rows.items():
        for row in (one for one in some if one.way.needs and one.way.entries and one.answers):
            for name, what in [("graph_s", "the first graph"), ("all_s", "all graphs")] if row.way.start == "table" else [("first_s", "result")]:
                found, count = row.on_quick_cores(name, least)
                every = ", ".join(f"{duration(answer[name])} ({factor(answer['core_s'] / least)})" for answer in row.answers if {name, "core_s"} <= answer.keys())
                lines += textwrap.wrap(f"{subject}, {row.way.name}: ready to {what} {duration(found)} in {count} of {len(row.answers)} processes; "
                                       f"each: {every}", WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines


# --- targets and ratios


@dataclasses.dataclass
class Target:
    what: str
    wanted: str
    found: str
    is_met: bool | None  # None: not measured

    def line(self) -> str:
        verdict = {None: "not measured", True: "met", False: "MISSED"}[self.is_met]
        return f"  {self.what:<70}{self.wanted:>11}{self.found:>10}  {verdict}"


def _at_most(what: str, wanted: float | None, found: float | None, text: Any) -> Target:
    """`wanted`: None when the reference was not measured."""
    is_met = None if wanted is None or found is None else found <= wanted
    return Target(what, f"<= {text(wanted)}" if wanted is not None else "-", text(found), is_met)


def targets(rows: Mapping[str, Sequence[Row]]) -> list[Target]:
    """The targets by subject."""
    found: list[Target] = []
    for name in ("step", "huggingface"):
        if name in rows:
            found += _targets_of_step(name, {row.way.name: row for row in rows[name]})
    if "table" in rows:
        found += _targets_of_table({row.way.name: row for row in rows["table"]})
    return found


def _targets_of_step(name: str, rows: Mapping[str, Row]) -> list[Target]:
    found = []
    eager = _of(rows, "eager", "start_s")
    for role in ("hit", "eager hit"):
        way = ROLES[role]
        found.append(_at_most(f"{name}, {way}: ready to result", READY_WITH_S, _of(rows, way, "first_s"), duration))
        found.append(_at_most(f"{name}, {way}: start to result (eager's)", eager, _of(rows, way, "start_s"), duration))
    for role in ("recording", "eager hit"):
        found.append(_at_most(f"{name}, {ROLES[role]}: replay / PyTorch's own graph", REPLAY, _of(rows, ROLES[role], "replay_ratio"), factor))
    way = ROLES["without"]
    if way in rows:
        found.append(_at_most(f"{name}, {way}: ready to result", READY_WITHOUT_S, _of(rows, way, "first_s"), duration))
        found.append(_at_most(f"{name}, {way}: start to result", START_WITHOUT_S, _of(rows, way, "start_s"), duration))
    return found


def _targets_of_table(rows: Mapping[str, Row]) -> list[Target]:
    way = ROLES["hit"]
    stored = rows[way].stored_bytes if way in rows else None
    return [_at_most("table: the first graph", FIRST_GRAPH_S, _of(rows, way, "graph_s"), duration),
            _at_most("table: all graphs", ALL_GRAPHS_S, _of(rows, way, "all_s"), duration),
            _at_most("table: replay / PyTorch's own graphs", REPLAY, _of(rows, way, "replay_ratio"), factor),
            _at_most("table: stored", STORED_BYTES, stored, size)]


def _of(rows: Mapping[str, Row], way: str, name: str) -> float | None:
    return rows[way].get(name) if way in rows else None


def ratios(subject: Subject, rows: Sequence[Row]) -> list[str]:
    """For each peer: its time divided by warmgraph's time, from context ready (and from the process's start) to the result."""
    ours = [row for row in rows if row.answers and row.way.start in ("restored", "without torch") or row.answers and row is _restored_table(rows)]
    peers = [row for row in rows if row.answers and row.way.family and not row.way.entries and row.way.start != "without torch"]
    if not ours or not peers:
        return []
    asked = [("first_s", "ready to result")] + ([("all_s", "ready to all graphs")] if subject.is_table else
                                                        [("start_s", "start to result")])
    width = 18
    lines = [f"  {'longer than ...':<40}" + "".join(f"{_short(row.way.name):>{width}}" for row in ours)]
    for name, what in asked:
        lines.append(f"  {what}:")
        for peer in peers:
            cells = "".join(f"{_quotient(peer.get(name), row.get(name)):>{width}}" for row in ours)
            lines.append(f"    {peer.way.name:<38}{cells}")
    return lines


def _restored_table(rows: Sequence[Row]) -> Row | None:
    return next((row for row in rows if row.way.start == "table" and row.way.needs), None)


def _short(name: str) -> str:
    return {ROLES["hit"]: "warmgraph", ROLES["eager hit"]: "eager recorded", ROLES["without"]: "without PyTorch"}.get(name, name)


def _quotient(a: float | None, b: float | None) -> str:
    return "-" if a is None or not b else f"{_three_digits(a / b)}x"


def recording_lines(subject: Subject, rows: Sequence[Row]) -> list[str]:
    """The time that recording added to the start of the recording process."""
    by_name = {row.way.name: row for row in rows}
    lines = []
    for row in rows:
        if row.way.start != "recording" or not row.answers:
            continue
        alone = by_name.get("torch.compile, empty caches" if row.way.family == "compiled" else "eager")
        base, first = alone.get("first_s") if alone is not None else None, row.get("first_s")
        added = f"; {duration(first - base)} more than '{alone.way.name}'" if alone is not None and base is not None and first is not None else ""
        lines.append(f"  {subject.name}, {row.way.name}: captured twice and adopted in {duration(row.get('recording_s'))}{added}")
    return lines
