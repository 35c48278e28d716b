"""PyTorch functions that are recorded in one process and replayed in the next, and compared with PyTorch itself.

usage: cases.py [--only PATTERN,PATTERN...] [--workers 6]     runs each case cold and warm, prints a table; exit status 1 if a case went
wrong
       cases.py --run CASE --folder DIR --as first|cold|warm|plain  runs one process of a case

The table has milliseconds of the first call: "plain" without warmgraph (compiled code finds Inductor's and Triton's own caches filled),
"cold" with the recording, "warm" in the next process. Then come the milliseconds of a later call, plain and warm. Each process has its
model on the device before its first call; in a first call, PyTorch also starts libraries (cuBLAS, cuDNN) that a hit does not need. `--only
'engine_pair*'`: the graph is captured once in a first process and once in the cold one; after the times, the table has the number of
captures that proved an entry. With `--only 'pair_*'`, functions run under gradients, forward and backward.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import faulthandler
import fnmatch
import importlib.util
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import functions
import training

LIMIT_S = 100
MOST_LETTERS = 6000  # the most characters of a failed case's output that are printed
COMPILERS = ("torch._dynamo", "torch._inductor", "triton")


# Cases that also have a first process, which leaves captures for the cold one.
IN_PAIRS = ("engine_pair", "engine_pair_that_stays")
CASES = {one.__name__: one for one in (*functions.CASES, *training.CASES)}
RECORDED = {**functions.RECORDED, **training.RECORDED}  # the number of entries, which is 1 for all others
REFUSED = {**functions.REFUSED, **training.REFUSED}  # a part of the reason
NEEDS = {name: "torchao" for name in CASES if name.startswith("torchao_")}  # a package; without it the case is left out


# --- Code of one process


def flat(torch, value):
    """The tensors in a result, copied to the host."""
    if isinstance(value, torch.Tensor):
        return [value.detach().float().cpu() if not value.is_complex() else torch.view_as_real(value).cpu()]
    if isinstance(value, dict):
        return [one for key in value for one in flat(torch, value[key])]
    if isinstance(value, (list, tuple)):
        return [one for item in value for one in flat(torch, item)]
    return []


def steps(torch, call, arguments):
    results, times = [], []
    with torch.no_grad():
        for one in arguments:
            torch.cuda.synchronize()
            started = time.perf_counter()
            result = call(*one)
            torch.cuda.synchronize()
            times.append((time.perf_counter() - started) * 1e3)
            results.append(flat(torch, result))
    return results, times


def pairs_of(stats):
    """The numbers of captures that were written for other processes, that proved an entry, and that proved none."""
    return {name: sum(getattr(one, name) for one in stats) for name in ("captures_written", "captures_paired", "captures_ignored")}


def outcome_of(call):
    import warmgraph

    if isinstance(call, functions.Engine):
        return {"recorded": call.outcomes.count("recorded"), "hits": call.outcomes.count("replayed"), "refused": call.refused, "phases": [],
                "captured": call.outcomes.count("captured"), **pairs_of(warmgraph.stats())}
    wrappers = [call] if isinstance(call, warmgraph.CachedFunction) else [one for one in vars(call).values()
                                                                          if isinstance(one, warmgraph.CachedFunction)]
    entries = warmgraph.stats(wrappers[0])[0].kinds["entries"]
    # A first call that changes what later calls find (an optimizer's state, a tuner's choice) is not recorded; the next one is.
    refusals = [one._shared.last_refusal for one in wrappers if one._shared.last_refusal and "the next call" not in one._shared.last_refusal]
    report = wrappers[0].report()
    return {"recorded": entries.made, "hits": entries.hits, "refused": refusals,
            "phases": [(name, round(ms, 1)) for name, ms in report.phases] if report else []}


def run(arguments):
    import warmgraph  # one of the two orders of imports; both must work

    # Pairs log more, so that the log of a failed pair shows where it failed.
    logging.basicConfig(level=logging.DEBUG if arguments.run.startswith("pair_") else logging.WARNING)
    faulthandler.dump_traceback_later(LIMIT_S - 20, exit=True)  # if the process hangs, this prints where
    import torch

    functions.AS = arguments.how
    case, folder = CASES[arguments.run], pathlib.Path(arguments.folder)
    if arguments.how == "plain":
        call, given = case(torch, "plain")
        print(json.dumps({"times": [round(ms, 2) for ms in steps(torch, call, given)[1]]}), flush=True)
        return
    options = {"cache_dir": str(folder / "cache"), "config": warmgraph.Config(model=arguments.run)}
    torch.manual_seed(7)
    call, given = case(torch, options)
    before = {name for name in sys.modules if name.startswith(COMPILERS)}
    reserved = torch.cuda.memory_reserved()
    results, times = steps(torch, call, given)
    added = {name for name in sys.modules if name.startswith(COMPILERS)} - before
    found = {"times": [round(ms, 2) for ms in times], **outcome_of(call), "reserved": torch.cuda.memory_reserved() - reserved,
             "compilers": len(added)}
    torch.save(results, folder / f"{arguments.how}.pt")
    if arguments.how == "cold":
        torch.manual_seed(7)
        plain, given = case(torch, None)
        torch.save(steps(torch, plain, given)[0], folder / "reference.pt")
    print(json.dumps(found), flush=True)


# --- Code of the process that starts the others


def process(name, folder, how):
    """Runs a case in a new process. Returns (output, the end of standard error)."""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}
    environment.setdefault("WARMGRAPH_LOG", "info")
    if how == "warm":
        environment["WARMGRAPH_POLICY"] = "require_hit"
    try:
        done = subprocess.run([sys.executable, __file__, "--run", name, "--folder", str(folder), "--as", how], env=environment,
                              capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as late:
        return None, f"took longer than {LIMIT_S} s\n{late.stderr or ''}"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return (json.loads(lines[-1]) if done.returncode == 0 and lines else None), f"status {done.returncode}\n{done.stderr}"


def compared(folder, one, other):
    """Compares two results. Returns the largest difference, or the reason why the results cannot be compared."""
    import torch

    a, b = torch.load(folder / f"{one}.pt"), torch.load(folder / f"{other}.pt")
    worst = 0.0
    for i, (left, right) in enumerate(zip(a, b)):
        if [x.shape for x in left] != [x.shape for x in right]:
            return f"step {i}: {[tuple(x.shape) for x in left]} and {[tuple(x.shape) for x in right]}"
        for x, y in zip(left, right):
            if x.numel():
                worst = max(worst, float((x - y).abs().max()))
            if not torch.allclose(x, y, rtol=1e-3, atol=1e-3):
                return f"step {i} differs by {worst:.3g}"
    return worst


@dataclasses.dataclass
class Chain:
    """A case in its cold and its warm process. `wrong` lists its errors."""

    name: str
    cold: dict | None = None
    warm: dict | None = None
    plain: dict | None = None
    wrong: list = dataclasses.field(default_factory=list)
    text: str = ""


def chain(name, folder):
    result = Chain(name)
    folder.mkdir(parents=True, exist_ok=True)
    if name in IN_PAIRS:
        first, error = process(name, folder, "first")
        result.text = error
        if first is None or (first["captured"], first["captures_written"]) != (1, 1):
            result.wrong.append(f"the first process gave {first}")
            return result
    result.cold, error = process(name, folder, "cold")
    result.text = error
    if result.cold is None:
        result.wrong.append("the cold process failed")
        return result
    if name in REFUSED:
        if result.cold["recorded"] or not any(REFUSED[name] in why for why in result.cold["refused"]):
            result.wrong.append(f"recorded {result.cold['recorded']}, refused {result.cold['refused']}, expected a refusal: ... {REFUSED[name]} ...")
    elif result.cold["refused"] or result.cold["recorded"] != RECORDED.get(name, 1):
        result.wrong.append(f"recorded {result.cold['recorded']}, refused {result.cold['refused']}")
    if name in IN_PAIRS and result.cold["captures_paired"] + result.cold["captures_ignored"] != 1:
        result.wrong.append("the first process's capture was not looked at")
    if name == "engine_pair" and result.cold["captures_paired"] != 1:
        result.wrong.append("the first process's capture proved nothing")
    same = compared(folder, "cold", "reference")
    if name in IN_PAIRS and isinstance(compared(folder, "first", "reference"), str):
        result.wrong.append("the first process gave something else")
    if isinstance(same, str):
        result.wrong.append(f"cold against PyTorch: {same}")
    if result.cold["refused"]:
        return result
    result.warm, error = process(name, folder, "warm")
    result.text += f"\n--- warm\n{error}"
    if result.warm is None:
        result.wrong.append("the warm process failed")
        return result
    same = compared(folder, "warm", "cold")
    if isinstance(same, str):
        result.wrong.append(f"warm against cold: {same}")
    result.plain, _ = process(name, folder, "plain")
    if result.warm["compilers"]:
        result.wrong.append(f"{result.warm['compilers']} modules of compilers were loaded by a hit")
    return result


def _time(process, step):
    return f"{process['times'][step]:.2f}" if process else "-"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="*")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--run")
    parser.add_argument("--folder")
    parser.add_argument("--as", dest="how")
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments)
        return 0
    names = [name for name in CASES if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.only.split(","))]
    missing = [name for name in names if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None]
    names = [name for name in names if name not in missing]
    if missing:
        print(f"left out, because a package is missing: {', '.join(f'{name} ({NEEDS[name]})' for name in missing)}")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
        chains = list(pool.map(lambda name: chain(name, pathlib.Path(folder) / name), names))
    for one in [one for one in chains if one.wrong]:
        kept = [line for line in one.text.splitlines() if "Warning" not in line]
        print(f"=== {one.name}\n" + "\n".join(kept)[-MOST_LETTERS:])
    print(f"=== phases of {chains[0].name}: cold {(chains[0].cold or {}).get('phases')}, warm {(chains[0].warm or {}).get('phases')}")
    print(f"{'':<22} {'':<6} {'plain':>9} {'cold':>9} {'warm':>9}   {'later, plain':>12} {'warm':>9}")
    for one in chains:
        first = [_time(process, 0) for process in (one.plain, one.cold, one.warm)]
        later = [_time(process, functions.STEPS - 1) for process in (one.plain, one.warm)]
        print(f"{one.name:<22} {'WRONG' if one.wrong else 'ok':<6} {first[0]:>9} {first[1]:>9} {first[2]:>9}   {later[0]:>12} {later[1]:>9}"
              f"  {'; '.join(map(str, one.wrong))[:500]}"
              + (f"  {one.cold['captures_paired']} of 1 paired" if one.cold and one.name in IN_PAIRS else ""))
    return 1 if any(one.wrong for one in chains) else 0


if __name__ == "__main__":
    sys.exit(main())
