"""Runs one process after the other: starts it, ends it at its time limit, and reads its answer. An error becomes a reason, never an exception."""
from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
from typing import Any, Mapping, Sequence

from .ways import Way

STARTED = "PEERS_STARTED"  # time.monotonic() when the process was started; on Linux all processes share this clock
_LINES, _LETTERS = 6, 900  # the most lines and letters of a reason
_OURS = ("TORCH_CACHING_PRECOMPILE", "WARMGRAPH_POLICY", "WARMGRAPH_LOG", "WARMGRAPH_CACHE_DIR", "TORCH_LOGS")


@dataclasses.dataclass(frozen=True)
class Place:
    """The folders of one subject."""

    folder: pathlib.Path

    def caches(self, way: Way) -> pathlib.Path:
        return self.folder / "caches" / way.caches

    def entries(self, way: Way) -> pathlib.Path:
        return self.folder / "entries" / (way.entries or "none")

    def prepared(self, way: Way) -> None:
        """Prepares the folders for a new process that starts in this way."""
        if way.is_empty:
            shutil.rmtree(self.caches(way), ignore_errors=True)
        if way.leaves and way.entries:
            shutil.rmtree(self.entries(way), ignore_errors=True)
        self.caches(way).mkdir(parents=True, exist_ok=True)
        if way.leaves:
            (self.folder / way.leaves).unlink(missing_ok=True)

    def missing(self, way: Way) -> str:
        """Why this way cannot start, or ""."""
        return f"{way.needs} was not left behind" if way.needs and not (self.folder / way.needs).exists() else ""

    def environment(self, way: Way, more: Mapping[str, str]) -> dict[str, str]:
        """This process's environment, with the caches of PyTorch, Triton and the driver in this way's folder."""
        caches = self.caches(way)
        ours = {name: value for name, value in os.environ.items() if name not in _OURS}
        return {**ours, "TORCHINDUCTOR_CACHE_DIR": str(caches), "TRITON_CACHE_DIR": str(caches / "triton"),
                "CUDA_CACHE_PATH": str(caches / "driver"), "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", **more, **way.environment}


def run(command: Sequence[str], environment: Mapping[str, str], limit_s: float, log: pathlib.Path, answer: pathlib.Path | None) -> dict[str, Any]:
    """The process's answer (an object in the file `answer`; None: no answer expected), with "process_s"; or {"reason": why it has no answer}."""
    if answer is not None:
        answer.unlink(missing_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("wb") as output:  # no pipe: a compiler's workers may outlive the process and keep a pipe open
        try:
            process = subprocess.Popen(command, env={**environment, STARTED: repr(time.monotonic())}, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output, start_new_session=True)
        except OSError as error:
            return {"reason": f"{command[0]} does not start: {error}"}
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return {"reason": f"took longer than {limit_s:.0f} s{_said(log)}"}
        except BaseException:  # interrupted: end everything that the process started
            _end(process)
            raise
    if status != 0:
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        return {"reason": f"ended with {how}{_said(log)}"}
    return _read(answer, log) | {"process_s": time.monotonic() - started}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and everything that it started: it leads its own group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(answer: pathlib.Path | None, log: pathlib.Path) -> dict[str, Any]:
    if answer is None:
        return {}
    try:
        found = json.loads(answer.read_text(errors="replace"))
    except OSError:
        return {"reason": f"gave no answer{_said(log)}"}
    except ValueError as error:
        return {"reason": f"its output is not JSON: {error}{_said(log)}"}
    if not isinstance(found, dict):
        return {"reason": f"its answer is a {type(found).__name__}, expected an object{_said(log)}"}
    return found


def _said(log: pathlib.Path) -> str:
    """The end of the process's output, without lines that only mark a place in the line above. If the process ended itself at its
    limit: the place where its main thread was. faulthandler prints this thread last, its innermost call first."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip(" ^~\t")]
    timeout = next((i for i, line in enumerate(lines) if line.startswith("Timeout (")), None)
    if timeout is not None:
        main = max((i for i, line in enumerate(lines) if i > timeout and "most recent call first" in line), default=timeout)
        lines = [lines[timeout], *lines[main + 1:main + _LINES]]
    return ": " + " | ".join(lines[-_LINES:])[-_LETTERS:] if lines else ""


def size_of(folder: pathlib.Path) -> int:
    """Bytes of the files in a folder, or of a file."""
    if folder.is_file():
        return folder.stat().st_size
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):  # a temporary that was removed
            total += file.stat().st_size if file.is_file() and not file.is_symlink() else 0
    return total
