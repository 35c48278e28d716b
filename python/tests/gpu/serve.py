"""Tests samples/serve from end to end: PyTorch records a transformers language model, and Python without PyTorch and a C++ program serve
it.

usage: serve.py [--samples DIR] [--program warmgraph_serve] [--how eager,compiled] [--record ARGUMENT...]     exit status 1 if one went
wrong

--samples: the folder of record.py and serve.py (default: this repository's). --program: the C++ program; without it only Python serves.
--record: all following arguments are for record.py (--record --layers 16 --width 2048).
"""
from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SAMPLES = pathlib.Path(__file__).resolve().parents[3] / "samples/serve"
LIMIT_S = 280
WITHOUT_TORCH = """
import runpy, sys
class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "triton"):
            raise ImportError(f"{name} is imported by a process that serves")
sys.meta_path.insert(0, Forbidden())
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(what: str, command: list[str]) -> str:
    """Runs the command. Returns an error text, or ""."""
    environment = {**os.environ, "WARMGRAPH_POLICY": "read_write" if what == "record" else "require_hit"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"{what} took longer than {LIMIT_S} s"
    print(f"--- {what}: status {done.returncode}\n{done.stdout}{done.stderr if done.returncode else ''}", flush=True)
    if done.returncode:
        return f"{what} ended with status {done.returncode}"
    if what != "record" and not re.search(r": those that PyTorch generated$", done.stdout, re.M):
        return f"{what} does not say that it generated PyTorch's tokens"
    return ""


def served(samples: pathlib.Path, program: str | None, how: str, more: list[str], folder: str) -> list[str]:
    """Records and serves the model. Returns a list of errors."""
    print(f"=== {how}")
    wrong = run("record", [sys.executable, str(samples / "record.py"), folder, *more, *(["--compile"] if how == "compiled" else [])])
    if wrong:
        return [wrong]
    commands = {"serve.py": [sys.executable, "-c", WITHOUT_TORCH, str(samples / "serve.py"), folder]}
    if program:
        commands["serve.cpp"] = [program, folder]
    return [text for text in (run(what, command) for what, command in commands.items()) if text]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=pathlib.Path, default=SAMPLES)
    parser.add_argument("--program")
    parser.add_argument("--how", default="eager,compiled")
    parser.add_argument("--record", nargs=argparse.REMAINDER, default=[])
    arguments = parser.parse_args()
    wrong = []
    for how in arguments.how.split(","):
        with tempfile.TemporaryDirectory() as folder:
            wrong += [f"{how}: {text}" for text in served(arguments.samples, arguments.program, how, arguments.record, folder)]
    print("\n".join(wrong) or "all tokens are PyTorch's")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
