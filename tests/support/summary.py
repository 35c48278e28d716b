"""Prints the closing lines of `./dev test`: how many tests of each part ran, which were skipped and why, how long each
part took, the size of the tree (tests/engineering/size.py), and its words (tests/engineering/words.py).

usage: summary.py FOLDER

FOLDER contains the run's files: ctest.xml (ctest --output-junit), python.xml and torch.xml (pytest --junit-xml; either may be missing),
parts.tsv (lines "what<tab>seconds"), left_out.txt (a line with the reason for each part that was left out), processor.txt (seconds of
processor time). The last line is "N passed, N failed, N skipped". The exit status is 1 when a test failed, or when no test ran.
"""
from __future__ import annotations

import collections
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

PARTS = {
    "dev": "C++ tests",
    "asan": "C++ tests under AddressSanitizer and UBSan",
    "tsan": "C++ tests under ThreadSanitizer",
    "fuzz": "fuzz targets",
    "python": "Python tests without PyTorch",
    "torch": "Python tests with PyTorch, on the host",
}
WIDTH, SMALL_S = 44, 5
PYTHON = ("python.tests", "python.torch")  # ctest's names of the two pytest runs; python.xml and torch.xml list their cases


class Part:
    def __init__(self) -> None:
        self.passed = self.failed = 0
        self.skipped: collections.Counter[str] = collections.Counter()  # how many cases were skipped, by the reason


def part_of(name: str) -> str:
    before, colon, _ = name.partition(":")
    return before if colon and before in PARTS else "dev"


def reason_of(text: str) -> str:
    """Returns the reason in the output of a case: GoogleTest's line "...: Skipped", and the lines after it."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line.endswith(": Skipped") and at + 1 < len(lines):
            return lines[at + 1].strip()
    return "no reason given"


def read(file: pathlib.Path, part_of_case: "collections.abc.Callable[[str], str | None]", parts: dict[str, Part]) -> None:
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        key = part_of_case(case.get("name", ""))
        if key is None:
            continue
        part, skipped = parts[key], case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            part.failed += 1
        elif skipped is not None or case.get("status") in ("notrun", "disabled"):
            message = skipped.get("message", "") if skipped is not None else ""
            part.skipped[reason_of(case.findtext("system-out", "")) if file.name == "ctest.xml" else message] += 1
        else:
            part.passed += 1


def duration(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def steps(file: pathlib.Path) -> list[tuple[str, float]]:
    """Returns the name and the seconds of each step. Short steps are joined into one line at the end."""
    rows = [(what, float(seconds)) for what, seconds in (line.split("\t") for line in file.read_text().splitlines())]
    small = sum(seconds for _, seconds in rows if seconds < SMALL_S)
    long = [(what if len(what) <= WIDTH else f"{what[:WIDTH - 4]} ...", seconds) for what, seconds in rows if seconds >= SMALL_S]
    return [*long, ("all that took less than 5 s each", small)]


def house() -> str:
    """The size of the tree and its words, as text. Returns "" when git cannot list the files."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "engineering"))
    import size
    import words

    try:
        return f"{size.table(size.measure())}\n{words.table(words.measure(words.sources(None)))}"
    except (OSError, subprocess.CalledProcessError):
        return ""


def main(folder: pathlib.Path) -> int:
    parts: dict[str, Part] = collections.defaultdict(Part)
    lists = [file for file in ("python", "torch") if (folder / f"{file}.xml").exists()]
    # If a pytest run has no list, it failed before its first case. Then ctest's own result is kept.
    listed = {name for name, file in zip(PYTHON, ("python", "torch")) if file in lists}
    read(folder / "ctest.xml", lambda name: None if name in listed else part_of(name), parts)
    for file in lists:
        read(folder / f"{file}.xml", lambda name, file=file: file, parts)

    print("\nran                                             passed  failed  skipped")
    for key, what in PARTS.items():
        if key in parts:
            part = parts[key]
            print(f"  {what:<44} {part.passed:>7} {part.failed:>7} {part.skipped.total():>8}")
    reasons = [(count, PARTS[key], reason) for key in PARTS if key in parts for reason, count in parts[key].skipped.most_common()]
    if reasons:
        print("skipped, and why")
    for count, what, reason in reasons:
        print(f"  {count:>4} of the {what}: {reason}")
    left_out = folder / "left_out.txt"
    if left_out.exists():
        print("left out\n" + "".join(f"  {line}\n" for line in left_out.read_text().splitlines()), end="")
    print("time")
    for what, seconds in steps(folder / "parts.tsv"):
        print(f"  {what:<44} {duration(seconds):>12}")
    total, processor = (float(word) for word in (folder / "processor.txt").read_text().split())
    print(f"  {'all, and of it processor time':<44} {duration(total):>12}   {duration(processor)}")
    print(house())
    passed, failed = sum(part.passed for part in parts.values()), sum(part.failed for part in parts.values())
    print(f"\n{passed} passed, {failed} failed, {sum(part.skipped.total() for part in parts.values())} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
