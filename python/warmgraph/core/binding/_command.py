"""Runs the command `warmgraph`, a program in the wheel. See `warmgraph --help` and docs/command.md."""
from __future__ import annotations

import os
import pathlib
import sys

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "bin" / "warmgraph"


def main() -> None:
    os.execv(PROGRAM, ["warmgraph", *sys.argv[1:]])
