"""A table that shows which of PyTorch's own operators are adopted, and whether their replays are right.

usage: operators.py LIBWARMGRAPH [--dtype float32] [--workers 8] [--only PATTERN,PATTERN...] [--json FILE] [--cleared]

Each operator of PyTorch's database (OpInfo) runs on its first strided sample: PyTorch captures it twice with everything at other addresses.
It is adopted through the C interface, replayed at addresses that no capture had, and compared with PyTorch's own replay. If an operator
breaks the context, the other operators still run. Exit status 1: an operator was replayed wrong.
"""
import argparse
import collections
import contextlib
import ctypes as c
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import types

import apart
import generators
import warmgraph_c as wg

WARM_UPS = 3


def load_database(dtype_name):
    """Returns (torch, operators that have this dtype on CUDA, by name)."""
    import torch

    try:
        import expecttest  # noqa: F401: the database wants it, and only its own tests use it
    except ImportError:
        stub = types.ModuleType("expecttest")
        stub.TestCase = object
        stub.assert_expected_inline = None
        sys.modules["expecttest"] = stub
    import torch.testing._internal.common_methods_invocations as database

    # The database seeds the generator before each operator that draws random numbers. A capture does not allow this, so it is replaced.
    database.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)

    dtype = getattr(torch, dtype_name)
    known = {}
    for op in database.op_db:
        if dtype in op.supported_dtypes("cuda"):
            known[op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")] = op
    return torch, known


clear_stack = None  # the library's function wg_clear_stack; --cleared sets it


class NotCaptured(Exception):
    """PyTorch itself cannot capture the operator, or the operator has no results to compare."""


Leaf = collections.namedtuple("Leaf", "storage dtype offset size stride")  # describes a tensor of a sample


class Operator:
    """One operator with its first strided sample, whose memory can be moved."""

    def __init__(self, torch, op, dtype):
        from torch.utils._pytree import tree_flatten

        self.torch, self.op, self.turn = torch, op, 0
        self.generators = [generators.default(torch)]
        sample = next((s for s in op.sample_inputs("cuda", dtype) if self._is_usable(tree_flatten(self._parts(s))[0])), None)
        if sample is None:
            raise NotCaptured("no strided sample")
        leaves, self.tree = tree_flatten(self._parts(sample))
        # Copies of the sample on the host: the sample's own tensors would be undeclared memory in use, and padding of kernels points there.
        self.storages = {}
        self.leaves = [self._kept(x) if isinstance(x, torch.Tensor) else x for x in leaves]

    def _kept(self, tensor):
        storage = tensor.untyped_storage()
        self.storages.setdefault(storage.data_ptr(), storage.cpu())
        return Leaf(storage.data_ptr(), tensor.dtype, tensor.storage_offset(), tensor.size(), tensor.stride())

    @staticmethod
    def _parts(sample):
        return (sample.input, tuple(sample.args), dict(sample.kwargs))

    def _is_usable(self, leaves):
        torch = self.torch
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        return all(x.is_cuda and x.layout == torch.strided and not x.is_conj() and not x.is_neg() for x in tensors)

    def moved(self, spacer):
        """Returns the leaves on new storage. Leaves that share storage still share it."""
        torch, storages, result = self.torch, {}, []
        self.turn += 1
        for leaf in self.leaves:
            if not isinstance(leaf, Leaf):
                result.append(leaf)
                continue
            if leaf.storage not in storages:
                spacer.append(apart.spacer(torch, self.storages[leaf.storage].nbytes(), self.turn))
                storages[leaf.storage] = self.storages[leaf.storage].cuda()
            view = torch.empty(0, dtype=leaf.dtype, device="cuda")
            view.set_(storages[leaf.storage], leaf.offset, leaf.size, leaf.stride)
            result.append(view)
        return result

    def run(self, leaves):
        from torch.utils._pytree import tree_flatten, tree_unflatten

        value, args, kwargs = tree_unflatten(leaves, self.tree)
        results = [x for x in tree_flatten(self.op(value, *args, **kwargs))[0] if isinstance(x, self.torch.Tensor)]
        results = [self.torch.view_as_real(x.resolve_conj()) if x.is_complex() else x for x in results]
        if any(x.layout != self.torch.strided or not x.is_cuda for x in results):
            raise NotCaptured("a result that is not strided, or not on the device")
        return [x for x in results if x.numel() != 0]


Range = collections.namedtuple("Range", "name pointer size")


class Captured:
    """PyTorch's graph of out.copy_(operator(inputs)), in a new pool. The last inputs are the words of the generators."""

    def __init__(self, operator, leaves, spacer):
        torch = operator.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        kept = [x.clone() if isinstance(x, torch.Tensor) else x for x in leaves]
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                results = operator.run(leaves)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        if not results:
            raise NotCaptured("no result")
        self.outputs = [torch.zeros(x.size(), dtype=x.dtype, device="cuda") for x in results]
        del results
        spacer.append(torch.empty(5 << 12, dtype=torch.uint8, device="cuda"))
        for leaf, was in zip(leaves, kept):  # the operator changes these tensors in place
            if isinstance(leaf, torch.Tensor) and leaf.numel() and not _overlaps(leaf):
                leaf.copy_(was)
        self.inputs = _storages(torch, leaves)
        pool = torch.cuda.graph_pool_handle()
        torch.cuda.synchronize()
        torch._C._cuda_clearCublasWorkspaces()
        before = wg.free_blocks(torch.cuda.memory_snapshot())
        self.graph = torch.cuda.CUDAGraph(keep_graph=True)
        self.words = [word for generator in operator.generators for word in generators.registered(torch, self.graph, generator)]
        self.inputs += self.words
        with torch.cuda.graph(self.graph, pool=pool, capture_error_mode="thread_local"), _over(torch):
            for out, result in zip(self.outputs, operator.run(leaves)):
                out.copy_(result)
        snapshot = torch.cuda.memory_snapshot()
        self.free_blocks = wg.free_throughout(before, wg.free_blocks(snapshot))
        segments = [s for s in snapshot if tuple(s["segment_pool_id"]) == tuple(pool)]
        segments.sort(key=lambda s: (-s["total_size"], s["address"]))
        self.scratch = [Range(f"pool{i}", s["address"], s["total_size"]) for i, s in enumerate(segments)]
        torch._C._cuda_clearCublasWorkspaces()
        self.native = self.graph.raw_cuda_graph()
        self.keep = (leaves, pool)

    @property
    def regions(self):
        return [Range(f"in{i}", x.data_ptr(), x.numel() * x.element_size()) for i, x in enumerate(self.inputs)] + [
            Range(f"out{i}", x.data_ptr(), x.numel() * x.element_size()) for i, x in enumerate(self.outputs)]


def _over(torch):
    """A context in which each operator runs over a stack that was filled with zeros, if clear_stack is set."""
    from torch.utils._python_dispatch import TorchDispatchMode

    if clear_stack is None:
        return contextlib.nullcontext()

    class ClearedStack(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls):
            return False  # without this, PyTorch imports Dynamo, which takes seconds

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            clear_stack()
            return func(*args, **(kwargs or {}))

    return ClearedStack()


def _overlaps(tensor):
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.size(), tensor.stride()))


def _storages(torch, leaves):
    """Returns each storage once, as a flat tensor over its bytes."""
    flat = {}
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor) or leaf.numel() == 0:
            continue
        storage = leaf.untyped_storage()
        if storage.data_ptr() in flat:
            continue
        whole = torch.empty(0, dtype=leaf.dtype, device="cuda")
        whole.set_(storage, 0, (storage.nbytes() // leaf.element_size(),), (1,))
        flat[storage.data_ptr()] = torch.view_as_real(whole) if whole.is_complex() else whole
    return list(flat.values())


def declarations(tensors, prefix):
    decls, keep = [], []
    for i, x in enumerate(tensors):
        name = str(x.dtype).removeprefix("torch.")
        if name not in wg.DTYPES:
            raise NotCaptured(f"dtype {name}")
        sizes = (c.c_int64 * 1)(x.numel())
        keep.append(sizes)
        decls.append(wg.TensorDecl(f"{prefix}{i}".encode(), wg.DTYPES[name], 1, sizes))
    result = wg.array(wg.TensorDecl, decls)
    result.keep = keep
    return result


class Adopter:
    def __init__(self, library, folder):
        self.library = library
        self.device = library.made("wg_device_open", b"cuda:0")
        library.call("wg_prepare_recording", self.device)
        options = wg.CacheOptions()
        library.call("wg_cache_options_init", c.byref(options), c.c_uint64(c.sizeof(options)))
        options.model, options.cache_dir = b"operators", str(folder).encode()
        options.world_size, options.global_rank = 1, 0
        self.cache = library.made("wg_cache_open", c.byref(options))

    def adopt(self, name, first, second, strict):
        inputs, outputs = declarations(first.inputs, "in"), declarations(first.outputs, "out")
        spec = wg.FunctionSpec()
        spec.size, spec.name, spec.version = c.sizeof(spec), name.encode(), b"1"
        spec.inputs, spec.input_count = inputs, len(inputs)
        spec.outputs, spec.output_count = outputs, len(outputs)
        spec.strict = int(strict)
        spec.undeclared_constants = 1  # cuFFT and cuDNN have tables in undeclared memory
        natives = [wg.native_capture(first), wg.native_capture(second)]
        adoption = wg.Adoption(c.sizeof(wg.Adoption), c.pointer(natives[0]), c.pointer(natives[1]), 0, None, 0)
        return self.library.made("wg_cache_adopt", self.cache, self.device, c.byref(spec), c.byref(adoption))

    def replay(self, function, tensors):
        args = wg.array(wg.Arg, [
            wg.Arg(name.encode(), 0, 0, wg.Memory.at(x.data_ptr(), x.numel() * x.element_size()), None, None, 0, 0)
            for name, x in tensors])
        outcome = c.c_int32(-1)
        stream = self.library.raw.wg_device_stream(self.device)
        self.library.call("wg_call", function, c.c_void_p(stream), args, c.c_uint64(len(args)), c.byref(outcome))
        self.library.call("wg_stream_synchronize", c.c_void_p(stream))
        return outcome.value


def is_equal(torch, a, b):
    if a.dtype.is_floating_point:
        tolerance = {torch.float32: 1e-4, torch.float64: 1e-7}.get(a.dtype, 2e-2)
        return torch.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    return torch.equal(a, b)


def replay_natively(torch, captured, others):
    """Replays with PyTorch, which fills the words of its generators. `others`: the words of another replay, which get the same values."""
    captured.graph.replay()
    for word, other in zip(captured.words, others[len(others) - len(captured.words):]):
        other.copy_(word)
    torch.cuda.synchronize()


def try_operator(torch, adopter, name, op, dtype):
    result = {"operator": name}
    try:
        operator = Operator(torch, op, dtype)
        spacer = []
        first = Captured(operator, operator.moved(spacer), spacer)
        spacer.append(torch.empty(3 << 20, dtype=torch.uint8, device="cuda"))
        second = Captured(operator, operator.moved(spacer), spacer)
        torch.cuda.synchronize()
        result["captured"] = True
    except Exception as error:
        # A broken capture changes the generator's state or the context, and would break the next capture, so the process must end.
        return {**result, "captured": False, "is_spoilt": not isinstance(error, NotCaptured), "reason": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    function = None
    for strict in (True, False):
        started = time.perf_counter()
        try:
            function = adopter.adopt(safe + ("-strict" if strict else ""), first, second, strict)
        except wg.Failure as failure:
            result["strict_reason" if strict else "reason"] = str(failure)
        result["adopted_strict" if strict else "adopted"] = function is not None
        result["ms"] = (time.perf_counter() - started) * 1000
        if function is not None and strict:
            result["adopted"] = True
            break
    if function is None:
        return result
    third = [x.clone() for x in first.inputs]
    outputs = [torch.full_like(x, 1) for x in first.outputs]
    tensors = [(f"in{i}", x) for i, x in enumerate(third)] + [(f"out{i}", x) for i, x in enumerate(outputs)]
    replay_natively(torch, first, third)
    result["outcome"] = adopter.replay(function, tensors)
    torch.cuda.synchronize()
    result["equal"] = all(is_equal(torch, a, b) for a, b in zip(outputs + third, first.outputs + first.inputs))
    adopter.library.call("wg_function_destroy", function)
    return result


def work(arguments):
    """Reads names of operators from standard input, one per line. Prints a line of JSON for each."""
    global clear_stack
    library = wg.Library(arguments.library)
    clear_stack = library.raw.wg_clear_stack if arguments.cleared else None
    with tempfile.TemporaryDirectory() as folder:
        adopter = Adopter(library, pathlib.Path(folder) / "cache")
        torch, known = load_database(arguments.dtype)
        torch.manual_seed(7)
        print(json.dumps({"ready": len(known)}), flush=True)
        for line in sys.stdin:
            name = line.strip()
            torch.cuda.empty_cache()
            result = try_operator(torch, adopter, name, known[name], getattr(torch, arguments.dtype))
            print(json.dumps(result), flush=True)
            if result.get("is_spoilt"):
                os._exit(0)  # ends without destructors, because the context may be broken


class Worker:
    def __init__(self, arguments):
        self.command = [sys.executable, __file__, arguments.library, "--work", "--dtype", arguments.dtype] + (
            ["--cleared"] if arguments.cleared else [])
        self.process = None

    def ask(self, name):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
            self.read()
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            answer = self.read()
        except BrokenPipeError:
            answer = None
        if answer is not None:
            if answer.get("is_spoilt"):
                self.process.wait()
                self.process = None
            return answer
        status = self.process.wait()
        self.process = None
        return {"operator": name, "captured": True, "adopted": False, "reason": f"the process ended with status {status}"}

    def read(self):
        """Returns the next line that is JSON; other lines are skipped. Returns None at the end."""
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        return None

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


# The names that describe_node gives (capture/src/classify/structural_difference.cpp).
OTHER_NODES = "empty|copy|fill|event record|event wait|host function|memory operations|semaphore wait|semaphore signal"


def category(reason):
    """The reason without names, numbers and addresses, for counting equal reasons."""
    text = re.sub(r"^wg_cache_adopt: ", "", reason)
    text = re.sub(r"cannot adopt '[^']*': ", "", text)
    text = re.sub(rf"(?:kernel .*?|{OTHER_NODES}) \(node \d+\)", "a node", text)
    text = re.sub(r"0x[0-9a-f]+|\b\d+\b", "#", text)
    text = re.sub(r"'[^']*'", "'...'", text)
    return text[:110]


def table(results):
    captured = [r for r in results if r["captured"]]
    adopted = [r for r in captured if r.get("adopted")]
    wrong = [r for r in adopted if not r.get("equal")]
    strict = [r for r in captured if r.get("adopted_strict")]

    def share(part):
        return f"{len(part):5d}  {100 * len(part) / max(1, len(captured)):5.1f} %"

    lines = [f"operators of the database          {len(results):5d}", f"captured by PyTorch                {len(captured):5d}",
             f"adopted with Spec::strict          {share(strict)}", f"adopted                            {share(adopted)}",
             f"  equal                            {share([r for r in adopted if r.get('equal')])}",
             f"  wrong                            {share(wrong)}", "refused, by reason:"]
    reasons = collections.Counter(category(r.get("reason", "")) for r in captured if not r.get("adopted"))
    lines += [f"  {count:4d}  {reason}" for reason, count in reasons.most_common()]
    lines += ["refused: " + " ".join(sorted(r["operator"] for r in captured if not r.get("adopted")))]
    lines += ["wrong: " + " ".join(sorted(r["operator"] for r in wrong))] if wrong else []
    return "\n".join(lines), len(wrong)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--only", default="*")
    parser.add_argument("--json")
    parser.add_argument("--cleared", action="store_true", help="clear the stack before each operator that is captured")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments)
        return 0
    import concurrent.futures
    import queue

    _, known = load_database(arguments.dtype)
    names = [name for name in known if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.only.split(","))]
    workers = queue.Queue()
    all_workers = [Worker(arguments) for _ in range(arguments.workers)]
    for worker in all_workers:
        workers.put(worker)

    def one(name):
        worker = workers.get()
        try:
            return worker.ask(name)
        finally:
            workers.put(worker)

    results = []
    with concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
        for result in pool.map(one, names):
            results.append(result)
            if len(results) % 25 == 0:
                print(f"{len(results)} of {len(names)}", file=sys.stderr, flush=True)
    for worker in all_workers:
        worker.close()
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1))
    text, wrong = table(results)
    print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
