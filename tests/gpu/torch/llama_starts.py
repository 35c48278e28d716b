"""How long PyTorch itself takes to the first logits of llama_step.py's model, each way in a fresh process.

Used by llama_step.py --compare. A way that this PyTorch has not is "not available", with the reason.
"""
import argparse
import json
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import time

LIMIT_S = 900  # a way that takes longer is given up

# Name; cache folder ("" for none); whether it starts empty; how it starts; what it leaves; further environment.
WAYS = [
    ("eager", "eager", True, "eager", "", {}),
    ("torch.compile, empty caches", "plain", True, "compile", "mega.bin", {}),
    ("torch.compile, caches warm", "plain", False, "compile", "", {}),
    ("Mega-Cache into empty caches", "mega", True, "mega.bin", "", {}),
    ("caching precompile, empty caches", "precompile", True, "compile", "precompile.bin", {"TORCH_CACHING_PRECOMPILE": "1"}),
    ("caching precompile, caches warm", "precompile", False, "compile", "", {"TORCH_CACHING_PRECOMPILE": "1"}),
    ("caching precompile, Mega-Cache into empty caches", "precompile2", True, "precompile.bin", "",
     {"TORCH_CACHING_PRECOMPILE": "1"}),
]


def environment_of(caches, more):
    """Ours, with PyTorch's caches in `caches` and no others."""
    result = {name: value for name, value in os.environ.items() if name != "TORCH_CACHING_PRECOMPILE"}
    return result | {"TORCHINDUCTOR_CACHE_DIR": str(caches), "TRITON_CACHE_DIR": str(caches / "triton")} | more


def measured(folder, options, way):
    """One row of the table."""
    name, caches, is_empty, start, leaves, more = way
    caches, answer = folder / "starts" / caches, folder / "starts" / "answer.json"
    if is_empty:
        shutil.rmtree(caches, ignore_errors=True)
    caches.mkdir(parents=True, exist_ok=True)
    answer.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--folder", str(folder / "starts"), "--start", start, "--leaves", leaves, *options]
    if start.endswith(".bin") and not (folder / "starts" / start).exists():
        return {"name": name, "reason": f"{start} was not left behind"}
    try:
        status = subprocess.run(command, check=False, env=environment_of(caches, more), timeout=LIMIT_S).returncode
    except subprocess.TimeoutExpired:
        return {"name": name, "reason": f"took longer than {LIMIT_S} s"}
    if not answer.exists():
        return {"name": name, "reason": f"the process ended with status {status}"}
    return {"name": name, **json.loads(answer.read_text())}


def compared(folder, options):
    """All rows. Tokens that differ from eager's are noted: bfloat16 rounds otherwise in compiled code."""
    rows = []
    for way in WAYS:
        print(f"[compare] {way[0]}", flush=True)
        row = measured(folder, options, way)
        expected = rows[0].get("tokens") if rows else None
        if "tokens" in row and expected:
            same = sum(a == b for a, b in zip(row["tokens"], expected))
            row["note"] = f"{same} of {len(expected)} tokens as eager; {row['note']}"
        told = f"not available: {row['reason']}" if "reason" in row else f"{row['first_logits_s']:.4f} s; {row['note']}"
        print(f"[compare] {way[0]:<50} {told}", flush=True)
        rows.append(row)
    return rows


# --- the process that is measured


def silence_dropped_guards():
    """Caching precompile warns of each guard that it drops: dozens of lines for every model."""
    logging.getLogger("torch._dynamo.guards").setLevel(logging.ERROR)


def left_artifacts(torch, path):
    """What Mega-Cache would carry to another machine; a note."""
    saved = torch.compiler.save_cache_artifacts()
    if saved is None:
        return "no artifacts to save"
    path.write_bytes(saved[0])
    return f"left {len(saved[0]) / 1e6:.2f} MB of artifacts"


def counted(torch):
    """What PyTorch's own counters say of its caches."""
    counters = torch._dynamo.utils.counters
    wanted = [("inductor", "fxgraph_cache_hit"), ("inductor", "fxgraph_cache_miss"), ("aot_autograd", "autograd_cache_hit"),
              ("aot_autograd", "autograd_cache_miss"), ("dynamo_cache", "dynamo_cache_hit"), ("dynamo_cache", "dynamo_cache_miss"),
              ("stats", "unique_graphs")]
    return {name: counters[group][name] for group, name in wanted if counters[group].get(name)}


def start_once(torch, arguments, folder, shape):
    import llama_model

    imported = time.perf_counter()
    llama_model.choose_attention(arguments.attention)
    model, token, position = llama_model.made(shape)
    torch.cuda.synchronize()
    ready = time.perf_counter()
    # Here, because it imports the compiler, which is a part of every compiled start.
    if os.environ.get("TORCH_CACHING_PRECOMPILE") and not getattr(torch._dynamo.config, "caching_precompile", None):
        return {"reason": f"torch {torch.__version__} has no torch._dynamo.config.caching_precompile"}
    notes = []
    if arguments.start.endswith(".bin"):
        if torch.compiler.load_cache_artifacts((folder / arguments.start).read_bytes()) is None:
            return {"reason": "load_cache_artifacts took nothing"}
        notes.append(f"of it {time.perf_counter() - ready:.3f} s to load the artifacts")
    step = model if arguments.start == "eager" else llama_model.compiled(model)
    with torch.no_grad():
        logits, following = step(token, position)
    first = logits.cpu(), following.cpu()
    done = time.perf_counter()
    if arguments.leaves:
        notes.append(left_artifacts(torch, folder / arguments.leaves))
    counts = counted(torch)
    notes += [f"{name} {count}" for name, count in counts.items()]
    return {"first_logits_s": done - ready, "total_s": done - imported, "model_s": ready - imported, "tokens": first[1].tolist(),
            "counters": counts, "note": ", ".join(notes)}


def main():
    import llama_step

    parser = argparse.ArgumentParser()
    llama_step.add_shape(parser)
    for name in ("folder", "start", "leaves"):
        parser.add_argument(f"--{name}", default="")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.folder)
    import torch

    import llama_model

    silence_dropped_guards()
    try:
        answer = start_once(torch, arguments, folder, llama_model.Shape(**llama_step.shape_of(arguments)))
    except Exception as error:
        answer = {"reason": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
