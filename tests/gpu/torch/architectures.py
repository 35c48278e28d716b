"""A table that shows which models of timm, torchvision and transformers are recorded, and whether another process replays them right.

usage: architectures.py [--suite NAME,...] [--only PATTERN,...] [--workers 12] [--json FILE] [--resume FILE] [--folder DIR] [--limit-s N] [--every N]
                        [--list]
       architectures.py --table FILE...        prints the table of earlier sweeps
       architectures.py --device cpu           makes and runs the models without a GPU and without warmgraph
       architectures.py --make-list            writes architectures.txt anew, on the CPU; with --resume architectures.txt, only adds to it

warmgraph must be importable. The models are those of architectures.txt: suite, name, type, and for transformers a recipe. Patterns fit names
or "suite/name". One process runs a model, records it and lets PyTorch capture it; another one replays it with policy require_hit. Each works
through many models. A fault ends only its own process. --json gets a line for each finished model, --resume leaves out the models of such a
file and prints its results too, and after --limit-s seconds no model starts. --every 25 --workers 1 runs each 25th model alone on the device. Exit status 1: a result was wrong, or a call failed that runs
without warmgraph.
"""
from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import fnmatch
import gc
import inspect
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import architecture_models as zoo

LIST = pathlib.Path(__file__).with_name("architectures.txt")
LIMIT_S = {"find": 60, "native": 90, "record": 90, "replay": 60}  # for one model; compiled ones have COMPILED_S
COMPILED_S = 240
WARM_UPS = 2
TOLERANCE = {"float32": 1e-3, "float16": 1e-2, "bfloat16": 4e-2}  # of the greatest value


# --- Code of a process that runs models


def reason_of(error):
    """The first line of an error, and the line of a model's code that raised it."""
    lines = f"{type(error).__name__}: {error}".strip().splitlines()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if re.search(r"/(transformers|timm|torchvision)/", frame.filename)]
    place = f" at {pathlib.Path(frames[-1].filename).name}:{frames[-1].lineno} ({frames[-1].line})" if frames else ""
    return lines[0][:4000] + place  # a miss names two texts of a module


def is_device_lost(torch, device):
    try:
        if device == "cuda":
            torch.cuda.synchronize()
            torch.zeros(1, device=device).add_(1).item()
        return False
    except Exception:
        return True


def copied(torch, result):
    return [one.detach().clone() for one in zoo.tensors(torch, result)]


def difference(torch, a, b):
    """(greatest difference, greatest value), or a text if they cannot be compared."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        return (0.0, 0.0) if torch.equal(a, b) else f"{int((a != b).sum())} of {a.numel()} elements"
    if a.numel() == 0:
        return (0.0, 0.0)
    a, b = (torch.view_as_real(one) if one.is_complex() else one for one in (a, b))
    a, b = a.double(), b.double()
    if not torch.equal(a.isfinite(), b.isfinite()):
        return "other infinities or NaNs"
    a, b = (one.nan_to_num(0, 0, 0) for one in (a, b))
    return (float((a - b).abs().max()), float(b.abs().max()))


def compared(torch, found, expected, spread, type_name):
    """(reason why the results differ or "", greatest difference as a part of the greatest value). `spread`: another run of the model on the
    same input as the first expected result."""
    worst = 0.0
    if len(found) != len(expected):
        return f"{len(found)} results, {len(expected)} expected", 1.0
    for at, (a, b) in enumerate(zip(found, expected)):
        differs, own = difference(torch, a, b), spread[at] if at < len(spread) else (0.0, 0.0)
        if isinstance(own, str):
            continue  # it is not the same twice without warmgraph
        if isinstance(differs, str):
            return f"result {at}: {differs}", 1.0
        worst = max(worst, differs[0] / max(differs[1], 1e-6))
        if not differs[0] <= 4 * own[0] + TOLERANCE.get(type_name, 1e-3) * max(differs[1], 1e-3):
            return f"result {at} differs by {differs[0]:.3g}, values up to {differs[1]:.3g}", worst
    return "", worst


class Program:
    """A model with its inputs. call(inputs) runs it natively."""

    def __init__(self, torch, row, device):
        self.torch, self.row, self.device = torch, row, device
        self.model, self.inputs = zoo.make(torch, row, device)
        self.type_name = row.type.partition("-")[0]
        self.native = torch.compile(self.model, fullgraph=True) if row.suite == "compiled" and device != "cpu" else self.model
        self.wrapper = None

    def call(self, inputs, function=None):
        with self.torch.no_grad():
            if self.row.suite == "generate":
                return copied(self.torch, zoo.generated(self.model, inputs))
            return copied(self.torch, (self.native if function is None else function)(**inputs))

    def natives(self):
        """Results for each input, and the differences between two runs on the first."""
        again = self.call(self.inputs[0])
        results = [self.call(one) for one in self.inputs]
        spread = [difference(self.torch, a, b) for a, b in zip(again, results[0])]
        if self.device == "cuda":
            self.torch.cuda.synchronize()
        return results, spread

    def wrap(self, warmgraph, folder, policy):
        options = {"cache_dir": str(pathlib.Path(folder) / "cache"), "config": warmgraph.Config(model=self.row.folder, policy=policy),
                   "compile": None if self.row.suite == "compiled" else False}
        if self.row.suite == "generate":
            self.wrapper = warmgraph.cache_compile(self.model.forward, **options)
        else:
            self.wrapper = warmgraph.cache_compile(self.model, **options)

    def wrapped(self, inputs):
        """The results of the wrapped model, in which only the forward pass is wrapped for generate()."""
        if self.row.suite != "generate":
            results = self.call(inputs, self.wrapper)
        else:
            self.model.forward = self.wrapper
            try:
                results = self.call(inputs)
            finally:
                del self.model.forward
        self.torch.cuda.synchronize()
        return results


def outcomes(warmgraph, wrapper):
    """(recorded entries, hits, reasons of refusals, time and phases of the first call)."""
    entries = [one.kinds["entries"] for one in warmgraph.stats(wrapper)[:1]]
    recorded, hits = sum(one.made for one in entries), sum(one.hits for one in entries)
    report = wrapper.report()
    refused = list(wrapper._shared.refused) + list(wrapper._shared.runs_as_it_is)
    refused += [report.reason] if report is not None and report.outcome == "refused" else []
    refused = list(dict.fromkeys(one for one in refused if one))
    ms = round(report.first_call_ms, 1) if report is not None else 0.0
    return recorded, hits, refused, ms, [(name, round(one, 1)) for name, one in report.phases] if report is not None else []


def record(torch, warmgraph, program, folder, say):
    result = {}
    try:
        expected, spread = program.natives()
        result["native"] = True
    except Exception as error:
        say("ended", {"native": False, "reason": reason_of(error)})
        return is_device_lost(torch, program.device)
    say("wrapped", result)
    started = time.perf_counter()
    try:
        program.wrap(warmgraph, folder, "default")
        found = program.wrapped(program.inputs[0])
        result["call_ms"] = round((time.perf_counter() - started) * 1e3, 1)
        wrong, worst = compared(torch, found, expected[0], spread, program.type_name)
        for one, other in list(zip(program.inputs, expected))[1:]:
            more, difference_here = compared(torch, program.wrapped(one), other, spread, program.type_name)
            wrong, worst = wrong or more, max(worst, difference_here)
        recorded, hits, refused, ms, phases = outcomes(warmgraph, program.wrapper)
        # generate() calls forward in two ways: its first pass changes the cache's Python state and is refused, its other passes are recorded.
        is_recorded = bool(recorded) if program.row.suite == "generate" else bool(recorded or hits) and not refused
        result.update(recorded=is_recorded, entries=recorded, ms=ms, phases=phases, cold_difference=worst)
        result["explain"] = warmgraph.explain(program.wrapper)[-1500:]
        if wrong:
            result["wrong"] = f"in the recording process: {wrong}"
        if not result["recorded"]:
            result["refused"] = refused[0] if refused else "neither recorded nor refused: " + result["explain"][:200]
    except Exception as error:
        result.update(recorded=False, hurt=reason_of(error))
        traceback.print_exc()
        with contextlib.suppress(Exception):
            result["explain"] = warmgraph.explain(program.wrapper)[-1500:]
        if is_device_lost(torch, program.device):
            say("ended", result)
            return True
    with contextlib.suppress(Exception):
        program.wrapper.reset()
    say("capture", result)
    reason = captured_by_torch(torch, program, expected, spread)
    result["capturable"] = not reason
    if reason:
        result["not_capturable"] = reason
    say("ended", result)
    return bool(reason)  # a broken capture leaves a process that cannot capture


def captured_by_torch(torch, program, expected, spread):
    """Why PyTorch itself cannot capture the model, or "". The graph of the first input must be right for the second."""
    try:
        if program.row.suite == "generate":
            return step_captured_by_torch(torch, program)
        static = {name: one.clone() for name, one in program.inputs[0].items()}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                program.call(static)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
            results = zoo.tensors(torch, program.native(**static))
        for name, one in static.items():
            one.copy_(program.inputs[1][name])
        graph.replay()
        torch.cuda.synchronize()
        wrong, _ = compared(torch, [one.detach().clone() for one in results], expected[1], spread, program.type_name)
        return f"its own graph is wrong: {wrong}" if wrong else ""
    except Exception as error:
        return reason_of(error)


def held_tensors(torch, value, seen):
    """The tensors in arguments, and in the attributes of their objects (caches)."""
    if id(value) in seen:
        return []
    seen[id(value)] = value
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in held_tensors(torch, part, seen)]
    if type(value).__module__.startswith("transformers.") and not isinstance(value, torch.nn.Module) and hasattr(value, "__dict__"):
        return held_tensors(torch, dict(vars(value)), seen)
    return []


def step_captured_by_torch(torch, program):
    """The same for the last forward pass of generate(), with its cache."""
    forward, steps = program.model.forward, []

    def seen(*args, **kwargs):
        held = held_tensors(torch, [args, kwargs], {})
        steps.append((args, kwargs, held, [one.clone() for one in held]))  # as they are before this step
        return forward(*args, **kwargs)

    seen.__signature__ = inspect.signature(forward)
    program.model.forward = seen
    try:
        program.call(program.inputs[1])
    finally:
        del program.model.forward
    args, kwargs, held, kept = steps[-1]
    del steps

    def again():
        for one, was in zip(held, kept):
            one.copy_(was)

    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                again()
                expected = forward(*args, **kwargs).logits.clone()
            again()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            logits = forward(*args, **kwargs).logits
        again()
        graph.replay()
        torch.cuda.synchronize()
    wrong, _ = compared(torch, [logits], [expected], [], program.type_name)
    return f"its own graph is wrong: {wrong}" if wrong else ""


def replay(torch, warmgraph, program, folder, say):
    result = {}
    say("wrapped", result)
    try:
        is_whole = program.row.suite != "generate"
        program.wrap(warmgraph, folder, "require_hit" if is_whole else "read_only")
        try:
            found = [program.wrapped(one) for one in program.inputs]
        except warmgraph.errors.MissForbidden as error:
            program.call(program.inputs[0], program.native)  # a model that keeps tables from its first call on replays from then on
            result["missed_at_first"] = reason_of(error)
            found = [program.wrapped(one) for one in program.inputs]
        recorded, hits, refused, ms, phases = outcomes(warmgraph, program.wrapper)
        result.update(hits=hits, replay_ms=ms)
        if recorded or refused and is_whole or not hits:
            misses = [one for kind in warmgraph.stats(program.wrapper)[:1] for one in kind.kinds["entries"].miss_reasons]
            result["missed"] = next(iter(misses[::-1] + refused), f"{recorded} recorded, {hits} hits")
    except warmgraph.errors.MissForbidden as error:
        say("ended", {**result, "missed": reason_of(error)})
        return is_device_lost(torch, program.device)
    except Exception as error:
        traceback.print_exc()
        say("ended", {**result, "hurt": f"in the replaying process: {reason_of(error)}"})
        return is_device_lost(torch, program.device)
    say("native", result)
    try:
        expected, spread = program.natives()
    except Exception as error:
        say("ended", {**result, "hurt": f"the model itself fails after the replay: {reason_of(error)}"})
        return is_device_lost(torch, program.device)
    worst = 0.0
    for at, (one, other) in enumerate(zip(found, expected)):
        wrong, difference_here = compared(torch, one, other, spread, program.type_name)
        worst = max(worst, difference_here)
        if wrong and "wrong" not in result:
            result["wrong"] = f"input {at}: {wrong}"
    result["difference"] = worst
    with contextlib.suppress(Exception):
        program.wrapper.reset()
    say("ended", result)
    return False


def work(arguments):
    """Imports the libraries without touching the device, and forks processes that do the tasks, one after another. Code that a lost
    process had imported need not be imported again."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # models print
    import warnings

    import timm  # noqa: F401
    import torch
    import torchvision  # noqa: F401
    import transformers  # noqa: F401

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    if arguments.device == "cpu":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (12 << 30, 12 << 30))
    if arguments.fresh:
        tasks(torch, arguments, answers)
        return
    while True:
        child = os.fork()
        if child == 0:
            try:
                tasks(torch, arguments, answers)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return
        if status == NO_DEVICE:
            answers.write(json.dumps({"stage": "no device"}) + "\n")
            answers.flush()
            return
        answers.write(json.dumps({"stage": "lost", "status": status}) + "\n")
        answers.flush()


SPOILT, NO_DEVICE = 90, 91  # exit statuses


def read_line():
    """A line of standard input, which other processes also read from."""
    line = b""
    while not line.endswith(b"\n"):
        one = os.read(0, 1)
        if not one:
            return ""
        line += one
    return line.decode()


def tasks(torch, arguments, answers):
    """Reads tasks from standard input, a line of JSON each: [phase, row]. Prints lines of JSON: the stage, and what is known so far."""
    def say(stage, result):
        answers.write(json.dumps({"stage": stage, "process": os.getpid(), **result}) + "\n")
        answers.flush()

    faulthandler.enable()
    warmgraph = None
    if arguments.device == "cuda":
        import warmgraph  # before the first kernel

        try:
            torch.zeros(1, device="cuda")
        except RuntimeError:
            traceback.print_exc()
            os._exit(NO_DEVICE)
    while line := read_line():
        phase, *given = json.loads(line)
        print(f"--- {phase} {given}", file=sys.stderr, flush=True)
        if phase == "find":
            say("ended", zoo.find(torch, *given))
            say("ready", {})
            continue
        is_spoilt, program, started = False, None, time.perf_counter()
        try:
            program = Program(torch, zoo.Row(*given), arguments.device)
        except Exception as error:
            traceback.print_exc()
            say("ended", {"native": False, "reason": "cannot be made: " + reason_of(error)})
            is_spoilt = is_device_lost(torch, arguments.device)
        made_s = round(time.perf_counter() - started, 2)
        if program is not None and phase == "native":
            try:
                program.call(program.inputs[0])
                say("ended", {"native": True, "made_s": made_s, "s": round(time.perf_counter() - started, 2)})
            except Exception as error:
                traceback.print_exc()
                say("ended", {"native": False, "reason": reason_of(error)})
        elif program is not None:
            run = record if phase == "record" else replay
            more = {f"{phase}_made_s": made_s}
            is_spoilt = run(torch, warmgraph, program, arguments.folder, lambda stage, result: say(stage, {
                **result, **more, f"{phase}_s": round(time.perf_counter() - started, 2)}))
        del program
        if is_spoilt:
            os._exit(SPOILT)  # without destructors, because the context may be broken
        gc.collect()
        if arguments.device == "cuda":
            torch.cuda.empty_cache()
        if "torch._dynamo" in sys.modules and given[0] == "compiled":
            torch._dynamo.reset()
        say("ready", {})


# --- Code of the process that starts the others


class Worker:
    """A process that runs models in processes below it. `identity`: the process that answered last."""

    def __init__(self, arguments, number):
        self.command = [sys.executable, str(pathlib.Path(__file__).resolve()), "--work", "--device", arguments.device, "--folder", arguments.folder]
        self.command += ["--fresh"] if arguments.fresh else []
        folder = pathlib.Path(arguments.folder)
        self.log, self.process, self.identity = folder / f"worker{number}.log", None, None
        self.environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton"),
                            "TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
                            "TOKENIZERS_PARALLELISM": "false", "PYTORCH_NVML_BASED_CUDA_CHECK": "1", "PYTHONWARNINGS": "ignore"}

    def ask(self, phase, given, limit_s):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log.open("a"), text=True,
                                            env=self.environment, start_new_session=True)
            limit_s += 60  # for the imports
        is_late = threading.Event()

        def late():
            is_late.set()
            self.kill()

        timer = threading.Timer(limit_s, late)
        timer.start()
        last, status = {"stage": "made"}, None
        try:
            self.process.stdin.write(json.dumps([phase, *given]) + "\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                one = json.loads(line)
                self.identity = one.pop("process", None)
                if one["stage"] == "ready":
                    return last
                if one["stage"] == "no device" and not self.command[-1] == "--fresh":
                    self.command.append("--fresh")  # a library has used the device before the fork
                    self.close()
                    return self.ask(phase, given, limit_s)
                if one["stage"] == "lost":
                    status = one["status"]
                    break
                last = one
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
        self.identity = None
        if status is None:
            status = self.process.wait()
            self.process = None
        if last["stage"] == "ended":
            return last
        return {**last, "died": f"took longer than {limit_s} s" if is_late.is_set() else f"the process ended with status {status}"}

    def kill(self):
        with contextlib.suppress(ProcessLookupError, AttributeError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self):
        if self.process is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
                self.process.wait()
        self.process = self.identity = None


def merged(first, second):
    """One result of what both phases found; a process that died counts for its stage."""
    result = {}
    for phase, found in (("record", first), ("replay", second)):
        if found is None:
            continue
        died, stage = found.get("died"), found.get("stage")
        left_out = ("stage", "died") if phase == "record" else ("stage", "died", "native", "reason")
        result.update({key: value for key, value in found.items() if key not in left_out})
        if died:
            where = f"{died}, in stage '{stage}' of phase '{phase}'"
            if phase == "record" and stage == "capture":
                result.update(capturable=False, not_capturable=where)
            elif phase == "record" and stage == "made":
                result.update(native=False, reason=where)
            else:
                result.setdefault("hurt", where)
        elif phase == "replay" and found.get("native") is False:
            result["hurt"] = f"in the replaying process: {found.get('reason')}"
    return result


class Sweep:
    """Tasks of rows, in threads with a worker each. A row's replay never runs in the process that recorded it."""

    def __init__(self, arguments, rows, finish):
        self.arguments, self.finish = arguments, finish
        self.changed = threading.Condition()
        self.fresh, self.recorded, self.running = collections.deque(rows), collections.deque(), 0
        self.ends = time.monotonic() + arguments.limit_s if arguments.limit_s else None

    def _next(self, worker):
        """(row, result of the first phase or None); None: nothing is left."""
        with self.changed:
            while True:
                other = next((one for one in self.recorded if one[2] != worker.identity or worker.identity is None), None)
                if other is not None:
                    self.recorded.remove(other)
                    self.running += 1
                    return other[0], other[1]
                if self.fresh and (self.ends is None or time.monotonic() < self.ends):
                    self.running += 1
                    return self.fresh.popleft(), None
                if self.recorded and not self.running:
                    worker.close()
                    continue
                if not self.running:
                    return None
                self.changed.wait(1)

    def _work(self, number):
        worker = Worker(self.arguments, number)
        while True:
            task = self._next(worker)
            if task is None:
                break
            row, first = task
            given = [row.suite, row.name, row.type, row.recipe] if isinstance(row, zoo.Row) else list(row)
            phase = self.arguments.phase if first is None else "replay"
            try:
                answer = worker.ask(phase, given, COMPILED_S if given[0] == "compiled" else LIMIT_S[phase])
            except Exception as error:
                traceback.print_exc()
                worker.kill()
                worker = Worker(self.arguments, number)
                answer = {"stage": "made", "died": f"the worker cannot be asked: {error}"}
            with self.changed:
                self.running -= 1
                if phase == "record" and answer.get("recorded"):
                    self.recorded.append((row, answer, worker.identity))
                else:
                    self.finish(row, first or answer, answer if first is not None else None)
                self.changed.notify_all()
        worker.close()

    def run(self):
        threads = [threading.Thread(target=self._work, args=(number,)) for number in range(self.arguments.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


# --- The table


def category(reason):
    """The reason without names, numbers and addresses, for counting equal reasons."""
    text = re.sub(r"cannot (adopt|record) '[^']*':? ?", "", reason)
    text = re.sub(r" at [a-z0-9_]+\.py:\d+ .*$", "", text)
    text = re.sub(r"0x[0-9a-f]+|-?\b\d+(\.\d+)?\b", "#", text)
    text = re.sub(r"'[^']*'", "'...'", text)
    text = re.sub(r"kernel \S+|void \S+.*?\) ", "a kernel ", text)
    return " ".join(text.split())[:150]


def verdict(result):
    if result.get("hurt"):
        return "hurt"
    if result.get("wrong"):
        return "wrong"
    if result.get("recorded") and not result.get("missed"):
        return "equal"
    return "refused"


def by_reason(pairs):
    groups = collections.defaultdict(list)
    for name, reason in pairs:
        groups[category(reason)].append(name)
    ordered = sorted(groups.items(), key=lambda one: (-len(one[1]), one[0]))
    return [f"  {len(names):4d}  {reason}\n        {' '.join(sorted(names))}" for reason, names in ordered]


def table(results):
    """(text, number of wrong or hurt models)."""
    groups = collections.defaultdict(list)
    for result in results:
        groups[(result["suite"], result["type"])].append(result)
    lines = [f"{'suite':<12} {'type':<22} {'models':>7} {'run':>5} {'captured':>9} {'recorded':>9} {'':>7} {'equal':>6} {'wrong':>6} {'hurt':>5}"
             f" {'others recorded':>16}"]

    def line(suite, type_name, some):
        run = [one for one in some if one.get("native")]
        can = [one for one in run if one.get("capturable")]
        done = [one for one in can if one.get("recorded") and not one.get("missed")]
        counts = collections.Counter(verdict(one) for one in run)
        others = sum(bool(one.get("recorded")) and not one.get("capturable") for one in run)
        return (f"{suite:<12} {type_name:<22} {len(some):>7} {len(run):>5} {len(can):>9} {len(done):>9} {100 * len(done) / max(1, len(can)):>5.1f} % "
                f"{sum(verdict(one) == 'equal' for one in can):>6} {counts['wrong']:>6} {counts['hurt']:>5} {others:>16}")

    lines += [line(*key, some) for key, some in groups.items()]
    lines += [line("all", "", results)]
    run = [one for one in results if one.get("native")]

    def name(one):
        return f"{one['suite']}/{one['name']}" + ("" if one["type"] == "float32" else f":{one['type']}")

    for kind in ("wrong", "hurt"):
        some = [(name(one), one[kind]) for one in run if verdict(one) == kind]
        lines += [f"{kind}: {len(some)}"] + [f"  {each}: {why}" for each, why in some]
    some = [(name(one), one.get("missed") or one.get("refused") or "") for one in run if one.get("capturable") and verdict(one) == "refused"]
    lines += [f"refused, though PyTorch can capture it: {len(some)}", *by_reason(some)]
    some = [(name(one), one.get("not_capturable", "")) for one in run if not one.get("capturable") and verdict(one) != "hurt"]
    lines += [f"PyTorch cannot capture it: {len(some)}", *by_reason(some)]
    some = [(name(one), one.get("reason", "")) for one in results if not one.get("native")]
    lines += [f"does not run without warmgraph: {len(some)}", *by_reason(some)] if some else []
    return "\n".join(lines), sum(verdict(one) in ("wrong", "hurt") for one in run)


def read_results(paths):
    found = {}
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # a line that was cut
                one = json.loads(line)
                found[(one["suite"], one["name"], one["type"])] = one
    return list(found.values())


def make_list(arguments):
    arguments.device, arguments.phase = "cpu", "find"
    tasks = [(suite, name) for suite, names in zoo.candidates().items() for name in names]
    found, lost = [], []
    if arguments.resume:  # only what is not in the list yet
        rows = {(row.suite, row.name, row.recipe) for row in zoo.read_rows(pathlib.Path(arguments.resume))}
        candidates = {name for suite, name in tasks if suite == "base"}
        found = [list(one) for one in sorted(rows) if one[0] != "compiled" and (one[0] != "base" or one[1] in candidates)]
        known = {(suite, name) for suite, name, _ in found}
        suites = {suite for suite, _ in known}
        tasks = [one for one in tasks if one not in known and not (one[0] in ("timm", "torchvision") and one[0] in suites)
                 or one[0] == "causal" and ("generate", one[1]) not in known]

    tasks = [one for one in tasks if one[0] in (arguments.suite or one[0]) and any(fnmatch.fnmatch(one[1], only) for only in arguments.only or ["*"])]

    def finish(task, answer, _):
        found.extend(one for one in answer.get("rows", []) if one not in found and not any(one[:2] == other[:2] for other in found))
        if not answer.get("rows") or answer.get("reason"):
            lost.append(f"{' '.join(task)}: {answer.get('died') or answer.get('reason')}")
            print(lost[-1], file=sys.stderr, flush=True)

    Sweep(arguments, tasks, finish).run()
    rows = zoo.all_rows(found)
    head = "# Models that architectures.py runs: suite, name, type, recipe. Written by architectures.py --make-list.\n"
    LIST.write_text(head + "".join(f"{one.suite} {one.name} {one.type} {one.recipe}\n" for one in rows))
    print(collections.Counter(one.suite for one in rows))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--suite", type=lambda text: text.split(","))
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--json")
    parser.add_argument("--resume")
    parser.add_argument("--folder")
    parser.add_argument("--limit-s", type=float)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", nargs="+")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--make-list", action="store_true")
    parser.add_argument("--fresh", action="store_true", help="start each process anew instead of forking it after the imports")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments)
        return 0
    if arguments.table:
        text, bad = table(read_results(arguments.table))
        print(text)
        return 1 if bad else 0
    with contextlib.ExitStack() as stack:
        arguments.folder = arguments.folder or stack.enter_context(tempfile.TemporaryDirectory())
        pathlib.Path(arguments.folder).mkdir(parents=True, exist_ok=True)
        if arguments.make_list:
            make_list(arguments)
            return 0
        return sweep(arguments)


def sweep(arguments):
    rows = [row for row in zoo.read_rows(LIST) if row.suite in (arguments.suite or [row.suite])]
    if arguments.only:
        rows = [row for row in rows if any(fnmatch.fnmatch(name, one) for one in arguments.only for name in (row.name, f"{row.suite}/{row.name}"))]
    rows = rows[::arguments.every]
    if arguments.list:
        print("\n".join(f"{row.suite} {row.name} {row.type} {row.recipe}" for row in rows))
        return 0
    results = read_results([arguments.resume]) if arguments.resume and os.path.exists(arguments.resume) else []
    known = {(one["suite"], one["name"], one["type"]) for one in results}
    rows = [row for row in rows if (row.suite, row.name, row.type) not in known]
    arguments.phase = "native" if arguments.device == "cpu" else "record"
    started, refused, done = time.monotonic(), 0, 0

    def finish(row, first, second):
        nonlocal refused, done
        result = {"suite": row.suite, "name": row.name, "type": row.type, **merged(first, second)}
        results.append(result)
        done += 1
        refused += bool(result.get("native")) and verdict(result) != "equal" and arguments.device != "cpu"
        if arguments.json:
            with open(arguments.json, "a") as file:
                file.write(json.dumps(result) + "\n")
        if done % 10 == 0 or done == len(rows):
            print(f"{done} of {len(rows)}, {refused} not equal or refused, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)

    Sweep(arguments, rows, finish).run()
    if arguments.device == "cpu":
        failed = [one for one in results if not one.get("native")]
        print(f"{len(results)} models, {len(results) - len(failed)} run")
        print("\n".join(f"  {one['suite']} {one['name']} {one['type']}: {one.get('reason') or one.get('hurt')}" for one in failed))
        return 1 if failed else 0
    text, bad = table(results)
    print(text)
    if done < len(rows):
        print(f"{len(rows) - done} models are left: continue with --resume {arguments.json}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
