"""Later calls that are like one before: what they look at, and what makes them another call."""
from __future__ import annotations

import dataclasses
import enum
import gc
import threading
import weakref
from typing import Any, Callable, Iterator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
import warmgraph  # noqa: E402
from warmgraph import _objects, errors  # noqa: E402
from warmgraph.torch import _bound, _call, _function, _launching, _modes, _outside, _tensor_reader  # noqa: E402

if _objects.exchange_of(torch.Tensor) is None:
    pytest.skip("this PyTorch or Python has no table of DLPack's", allow_module_level=True)

FACTOR = 2.0


def wrap(function: Any) -> Any:
    return warmgraph.cache_compile(function, compile=False, config=warmgraph.Config(model="net"))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Objects of one class share what was recorded: each test starts anew."""
    yield
    Net.step.reset()


class Kind(enum.Enum):
    ADD = 1
    MULTIPLY = 2


@dataclasses.dataclass
class Meta:
    tokens: Any
    is_prompt: bool
    sizes: list[int]
    scale: float = 0.0
    bias = 1


class Net(torch.nn.Module):
    heads = 2

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Dropout(0.0))

    @wrap
    def step(self, meta: Any, caches: Any, kind: Kind = Kind.ADD, *, dtype: Any = torch.float32) -> Any:
        y = self.norm(self.linear(meta.tokens)) * FACTOR + self.heads + meta.bias + meta.scale
        caches[0].add_(y)
        return {"y": y.to(dtype), "cache": caches[0], "row": caches[1][0], "kind": kind.name}


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    host.use(monkeypatch)
    with torch.no_grad():
        yield


def aligned(*sizes: int) -> Any:
    """As a GPU's allocator gives memory."""
    count = torch.Size(sizes).numel()
    memory = torch.randn(count + 128)
    start = -memory.data_ptr() % 256 // 4
    return memory[start:start + count].view(sizes)


class Reads:
    """How often a call was read at length."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, read = 0, _function.TorchFunction._read

        def counted(function: Any, *given: Any) -> Any:
            self.count += 1
            return read(function, *given)

        monkeypatch.setattr(_function.TorchFunction, "_read", counted)

    def of(self, call: Callable[[], Any]) -> int:
        before = self.count
        call()
        return self.count - before


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


class Given:
    """A call that is known by heart; a test changes something of it."""

    def __init__(self) -> None:
        self.net = Net()
        self.meta = Meta(aligned(2, 4), True, [2, 4])
        self.caches: Any = [aligned(2, 4), aligned(2, 4)]
        self.caches[0].mark = "a"  # as mark_static_address leaves one
        self.options: dict[str, Any] = {"dtype": torch.float32}
        for _ in range(3):
            self.call()

    def call(self) -> Any:
        return self.net.step(self.meta, self.caches, **self.options)


def test_the_third_call_is_looked_at_natively(reads):
    given = Given()
    assert reads.count == 2 and reads.of(given.call) == 0
    given.meta = Meta(aligned(2, 4), True, [2, 4])  # new objects that are alike
    given.caches = [aligned(2, 4), given.caches[1]]
    given.caches[0].mark = "a"
    assert reads.of(given.call) == 0
    pointers, _ = host.entries[0].calls[-1]
    assert pointers[:3] == [given.meta.tokens.data_ptr(), *(one.data_ptr() for one in given.caches)]


def test_results_are_those_of_a_call_that_was_read():
    given = Given()
    result = given.call()
    pointers, _ = host.entries[0].calls[-1]
    assert list(result) == ["y", "cache", "row", "kind"] and result["kind"] == "ADD"
    assert result["y"].shape == (2, 4) and result["y"].data_ptr() == pointers[3]
    assert result["cache"] is given.caches[0] and result["row"].data_ptr() == given.caches[1].data_ptr()


def _part(given: Given, name: str, value: Any) -> None:
    setattr(given.meta, name, value)


def _hooked(given: Given) -> None:
    given.net.norm[0].register_forward_hook(lambda module, inputs, output: output + 1)


def _weights_elsewhere(given: Given) -> None:
    given.net.linear.weight.data = given.net.linear.weight.data.clone()


def _weight_replaced(given: Given) -> None:
    given.net.linear.weight = torch.nn.Parameter(torch.zeros(4, 4), requires_grad=False)


def _transposed_weight(given: Given) -> None:
    given.net.linear.weight.data = given.net.linear.weight.data.t()


def _argument_on_a_weight(given: Given) -> None:
    given.caches = [given.net.linear.weight.data[:2], given.caches[1]]


def _one_list_twice(given: Given) -> None:
    given.meta.sizes = given.caches = [aligned(2, 4), aligned(2, 4)]


def _frozen_weight(given: Given) -> None:
    given.net.linear.weight.requires_grad_(False)


def _marked(given: Given) -> None:
    given.meta.tokens.mark = 1


def _marked_otherwise(given: Given) -> None:
    given.caches[0].mark = "b"


def _unaligned(given: Given) -> None:
    memory = torch.zeros(256)
    start = -memory.data_ptr() % 256 // 4 + 1
    given.meta.tokens = memory[start:start + 8].view(2, 4)


CHANGES = {
    "a size": lambda given: _part(given, "tokens", aligned(3, 4)),
    "strides": lambda given: _part(given, "tokens", torch.randn(4, 2).t()),
    "a type": lambda given: _part(given, "tokens", torch.randn(2, 4, dtype=torch.float64)),
    "an offset": _unaligned,
    "another class of tensor": lambda given: _part(given, "tokens", torch.nn.Parameter(aligned(2, 4), requires_grad=False)),
    "requires grad": lambda given: _part(given, "tokens", torch.randn(2, 4, requires_grad=True)),
    "a mark": _marked,
    "another mark": _marked_otherwise,
    "a lazy negative": lambda given: _part(given, "tokens", torch.randn(2, 4, dtype=torch.complex64).conj().imag),
    "a tensor that is none": lambda given: _part(given, "tokens", None),
    "a bool": lambda given: _part(given, "is_prompt", False),
    "a bool that is a number": lambda given: _part(given, "is_prompt", 1),
    "a number in a list": lambda given: given.meta.sizes.__setitem__(0, 3),
    "a longer list": lambda given: given.meta.sizes.append(1),
    "a tuple": lambda given: setattr(given, "caches", tuple(given.caches)),
    "a float": lambda given: _part(given, "scale", 0.25),
    "a negative zero": lambda given: _part(given, "scale", -0.0),
    "a further attribute": lambda given: _part(given, "more", 1),
    "an option": lambda given: given.options.update(dtype=torch.float64),
    "an option that was left out": lambda given: given.options.update(kind=Kind.MULTIPLY),
    "an option less": lambda given: given.options.clear(),
    "one list twice": _one_list_twice,
    "an argument on a weight": _argument_on_a_weight,
    "weights elsewhere": _weights_elsewhere,
    "a weight replaced": _weight_replaced,
    "a transposed weight": _transposed_weight,
    "a weight that requires no grad any more": _frozen_weight,
    "a weight of another type": lambda given: setattr(given.net.linear.weight, "data", given.net.linear.weight.data.double()),
    "another class of module": lambda given: setattr(given.net.norm[1], "__class__", torch.nn.Dropout1d),
    "eval": lambda given: given.net.norm[1].eval(),
    "an attribute of the module": lambda given: setattr(given.net, "heads", 3),
    "a hook": _hooked,
}


@pytest.mark.parametrize("change", CHANGES)
def test_is_another_call(change, reads):
    given = Given()
    assert reads.of(given.call) == 0
    CHANGES[change](given)
    assert reads.of(lambda: _tried(given)) == 1


def _tried(given: Given) -> None:
    try:
        given.call()
    except (AttributeError, TypeError, RuntimeError):  # the function's own
        pass


@pytest.mark.parametrize("holder, name, value", [("Net", "heads", 5), ("Meta", "bias", 2), ("globals", "FACTOR", 3.0)])
def test_classes_and_globals_are_looked_at(reads, monkeypatch, holder, name, value):
    given = Given()
    if holder == "globals":
        monkeypatch.setitem(globals(), name, value)
    else:
        monkeypatch.setattr(globals()[holder], name, value)
    assert reads.of(given.call) == 1


def test_code_is_looked_at(reads, monkeypatch):
    given = Given()
    monkeypatch.setattr(Net.step._function, "__code__", (lambda self, meta, caches, kind=None, *, dtype=None: {"y": caches[0]}).__code__)
    assert reads.of(given.call) == 1


def test_modes_are_looked_at(reads):
    given = Given()
    try:
        torch.set_default_dtype(torch.float64)
        assert reads.of(given.call) == 1
    finally:
        torch.set_default_dtype(torch.float32)


def _backend(kind: str, value: Any) -> tuple[Callable[[Any], None], Callable[[], Any], Any]:
    return getattr(torch._C, f"_set_{kind}_preferred_backend"), getattr(torch._C, f"_get_{kind}_preferred_backend"), value


def _order() -> Any:
    return torch._C._get_sdp_priority_order()


SETTINGS: dict[str, tuple[Callable[[Any], Any], Callable[[], Any], Any]] = {
    "blas": _backend("blas", torch._C._BlasBackend.Cublaslt),
    "linalg": _backend("linalg", torch._C._LinalgBackend.Magma),
    "attention order": (torch._C._set_sdp_priority_order, _order, [*reversed(_order())]),
    "flash attention": (torch.backends.cuda.enable_flash_sdp, torch.backends.cuda.flash_sdp_enabled, False),
    "math attention reduction": (torch._C._set_math_sdp_allow_fp16_bf16_reduction, torch._C._get_math_sdp_allow_fp16_bf16_reduction, True),
    "cudnn": (torch._C._set_cudnn_enabled, torch._C._get_cudnn_enabled, False),
    "cudnn benchmark": (torch._C._set_cudnn_benchmark, torch._C._get_cudnn_benchmark, True),
    "cudnn deterministic": (torch._C._set_cudnn_deterministic, torch._C._get_cudnn_deterministic, True),
    "deterministic warns": (lambda on: torch.use_deterministic_algorithms(False, warn_only=on), lambda: False, True),
    "deterministic fill": (torch._C._set_deterministic_fill_uninitialized_memory, torch._C._get_deterministic_fill_uninitialized_memory, False),
    "flash attention 3": (torch._C._set_sdp_use_fa3, torch._C._get_fa3_sdp_enabled, not torch._C._get_fa3_sdp_enabled()),
    "efficient attention": (torch._C._set_sdp_use_mem_efficient, torch._C._get_mem_efficient_sdp_enabled, False),
    "math attention": (torch._C._set_sdp_use_math, torch._C._get_math_sdp_enabled, False),
    "cudnn attention": (torch._C._set_sdp_use_cudnn, torch._C._get_cudnn_sdp_enabled, False),
    "overrideable attention": (torch._C._set_sdp_use_overrideable, torch._C._get_overrideable_sdp_enabled, False),
    "fp16 accumulation": (torch._C._set_cublas_allow_fp16_accumulation, torch._C._get_cublas_allow_fp16_accumulation, True),
    "sm carveout": (torch._C._set_sm_carveout_experimental, torch._C._get_sm_carveout_experimental, 4),
    "fast path": (torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled, False),
    "precision": (torch.set_float32_matmul_precision, torch.get_float32_matmul_precision, "high"),
    "deterministic": (torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled, True),
    "fp16 reduction": (torch._C._set_cublas_allow_fp16_reduced_precision_reduction, lambda: True, False),
    "bf16 reduction": (torch._C._set_cublas_allow_bf16_reduced_precision_reduction, lambda: True, False),
    "matmul tf32": (torch._C._set_cublas_allow_tf32, torch._C._get_cublas_allow_tf32, True),
    "cudnn tf32": (torch._C._set_cudnn_allow_tf32, torch._C._get_cudnn_allow_tf32, False),
    "default dtype": (torch.set_default_dtype, torch.get_default_dtype, torch.float64),
    "autocast": (lambda on: torch.set_autocast_enabled("cuda", on), lambda: torch.is_autocast_enabled("cuda"), True),
    "autocast cache": (torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled, False),
    "device": (torch.set_default_device, lambda: None, "cpu"),
}
OF_LATER_VERSIONS = {  # PyTorch 2.15
    "flash attention 4": ("_set_sdp_use_fa4", "_get_fa4_sdp_enabled", True),
    "matmul grouped": ("_set_cublaslt_prefer_grouped_gemm", "_get_cublaslt_prefer_grouped_gemm", True),
    "cudnn depthwise": ("_set_cudnn_depthwise_kernel", "_get_cudnn_depthwise_kernel", "native"),
    "native operators": ("_set_native_aot_enabled", "_get_native_aot_enabled", False),
    "native operators masked": ("_set_native_aot_unconditional_masked", "_get_native_aot_unconditional_masked", True),
    "layout of gradients": ("_set_grad_layout_enforcement_enabled", "_is_grad_layout_enforcement_enabled", False),
}
SETTINGS.update({name: (getattr(torch._C, change), getattr(torch._C, ask), value) for name, (change, ask, value) in OF_LATER_VERSIONS.items()
                 if hasattr(torch._C, change)})
# What decides no kernel of a CUDA device's, or is seen otherwise (dispatch and function modes, tracing, gradients).
NO_SETTINGS = set("""
    autograd_fallback_mode backcompat_broadcast_warn backcompat_keepdim_warn cached_tensors_enabled check_sparse_tensor_invariants conj
    cpu_allow_fp16_reduced_precision_reduction default_mobile_cpu_allocator default_tensor_type dispatch_mode dtensor_allow_implicit_replication
    fake_constant fwd_grad_enabled generator_metaclass grad_enabled graph_exec_group graph_executor_optimize meta_in_tls_dispatch_include miopen_immediate
    mkldnn_deterministic mkldnn_enabled multithreading_enabled neg nnpack_enabled onednn_allow_tf32 only_lift_cpu_tensors override_stale_capture_stream
    print_stack_traces_on_fatal_signal qengine rocm_fa_preferred_backend should_use_format_with_string_table skip_next_torch_function
    storage_access_error_msg storage_data_ptr_access_error_msg symbolize_mode tensor_metadata thread_name throw_on_mutable_data_ptr torch_function_state
    tracing_state value_trace view_replay_enabled warnAlways warn_deprecated_on_mutable_data_ptr warn_on_accumulate_grad_stream_mismatch worker_pids
    worker_signal_handlers""".split())
GUARDS = set("""
    blas_preferred_backend cublas_allow_bf16_reduced_precision_reduction cublas_allow_fp16_accumulation cublas_allow_fp16_reduced_precision_reduction
    cublas_allow_tf32 cublaslt_prefer_grouped_gemm cudnn_allow_tf32 cudnn_benchmark cudnn_depthwise_kernel cudnn_deterministic cudnn_enabled default_dtype
    deterministic_algorithms deterministic_fill_uninitialized_memory float32_matmul_precision fp32_precision_setter grad_layout_enforcement_enabled
    linalg_preferred_backend math_sdp_allow_fp16_bf16_reduction native_aot_enabled native_aot_unconditional_masked sdp_priority_order sdp_use_cudnn
    sdp_use_fa3 sdp_use_fa4 sdp_use_flash sdp_use_math sdp_use_mem_efficient sdp_use_overrideable sm_carveout_experimental""".split())


def test_this_pytorch_has_no_setting_that_we_do_not_know():
    """One that decides which kernels run has to be asked in _modes.py, and is named in GUARDS then; any other in NO_SETTINGS."""
    settings = {name.removeprefix("_set_") for name in dir(torch._C) if name.startswith("_set_")}
    assert settings - NO_SETTINGS - GUARDS == set(), torch.__version__


@pytest.mark.parametrize("name", SETTINGS)
def test_each_mode_is_looked_at(name, reads):
    given, (change, ask, value) = Given(), SETTINGS[name]
    assert reads.of(given.call) == 0
    before = ask()
    try:
        change(value)
        assert reads.of(given.call) == 1
    finally:
        change(before)
    assert reads.of(given.call) == 0


def test_modes_whose_answers_are_objects_are_asked_of_pytorchs_own_code(reads, monkeypatch):
    """Which a PyTorch may not have, or may answer otherwise: it is asked as a program asks it then."""
    assert all(_modes._code_behind(name) is not None for name in _modes._CODE), torch.__version__
    _modes._code_behind.cache_clear()
    monkeypatch.setattr(_modes, "_CODE", {"preferred blas": "linalgPreferredBackend", "preferred linalg": "noSuchFunction"})
    try:
        assert [_modes._code_behind(name) for name in _modes._CODE] == [None, None]
        given = Given()
        assert reads.of(given.call) == 0
        torch._C._set_linalg_preferred_backend(torch._C._LinalgBackend.Magma)
        assert reads.of(given.call) == 1
    finally:
        torch._C._set_linalg_preferred_backend(torch._C._LinalgBackend.Default)
        _modes._code_behind.cache_clear()


def _with_mode(mode: Any) -> Callable[[Given], Any]:
    def called(given: Given) -> None:
        with mode():
            given.call()

    return called


def _traced(given: Given) -> None:
    given.net.requires_grad_(False)  # a tracer takes no constants that require it
    given.call(), given.call()
    calls = len(host.entries[-1].calls)
    torch.jit.trace(lambda x: x + bool(given.call()), torch.zeros(1), check_trace=False)
    assert len(host.entries[-1].calls) == calls
    given.net.requires_grad_(True)


class Watching(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Looking(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


WATCHED = {
    "dispatch mode": _with_mode(Watching), "function mode": _with_mode(Looking), "tracing": _traced,
    "vmap": lambda given: torch.func.vmap(lambda x: (given.call(), x)[1])(torch.zeros(2)),
}


@pytest.mark.parametrize("what", WATCHED)
def test_who_watches_operators_sees_them_in_a_later_call(what, reads):
    given = Given()
    assert reads.of(given.call) == 0
    calls = len(host.entries[0].calls)
    WATCHED[what](given)
    if what != "tracing":  # which has looked at it itself, and changed weights for it
        assert len(host.entries[0].calls) == calls and reads.of(given.call) == 0 and len(host.entries[0].calls) == calls + 1


def test_precisions_of_which_pytorch_does_not_say_how_they_mix_are_another_call(reads):
    """Its own code throws then, and is asked past Python."""
    given, before = Given(), torch.backends.cuda.matmul.fp32_precision
    assert reads.of(given.call) == 0
    try:
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        with pytest.raises(RuntimeError):
            torch._C._get_float32_matmul_precision()
        assert reads.of(given.call) == 1
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    assert reads.of(given.call) == 0


def test_pytorchs_own_code_is_asked_where_this_pytorch_has_it(reads, monkeypatch):
    """Else Python is, and both see what changes."""
    functions = {name: one for name, one in _modes._FUNCTIONS.items() if name != "device"}  # which is CUDA's
    missing = [name for name, one in functions.items() if _modes._function(one.library, one.symbol) is None]
    assert not missing and _modes._address(_modes._TRACING) and _modes._address(_modes._INTERPRETERS), (torch.__version__, missing)
    monkeypatch.setattr(_modes, "_FUNCTIONS", {name: one._replace(symbol="no_such_function") for name, one in functions.items()})
    monkeypatch.setattr(_modes, "_TRACING", ("libtorch_cpu.so", "no_such_function"))
    monkeypatch.setattr(_modes, "_INTERPRETERS", ("no_such_library.so", "no_such_function"))
    given = Given()
    assert reads.of(given.call) == 0
    for name in ("fp16 reduction", "bf16 reduction", "precision", "matmul tf32", "cudnn tf32", "default dtype", "autocast", "autocast cache", "sm carveout"):
        change, ask, value = SETTINGS[name]
        before = ask()
        try:
            change(value)
            assert reads.of(given.call) == 1, name
        finally:
            change(before)
    for what in WATCHED.keys() - {"tracing"}:
        calls = len(host.entries[0].calls)
        WATCHED[what](given)
        assert len(host.entries[0].calls) == calls, what
    _traced(given)


def test_inference_mode_is_looked_at(reads):
    given = Given()
    with torch.inference_mode():
        assert reads.of(given.call) == 1


def test_modes_that_cannot_be_asked_make_another_call(reads, monkeypatch):
    """Questions fail where old and new settings of precision are mixed."""
    fails: list[bool] = []

    def first() -> bool:
        return _raises() if fails else False

    monkeypatch.setattr(_modes, "_CALLS", (first, *_modes._CALLS[1:]))
    given = Given()
    assert reads.of(given.call) == 0
    fails.append(True)
    assert reads.of(given.call) == 1 and _modes.modes()[0] == "unknown"
    fails.clear()
    assert reads.of(given.call) == 0


def _raises() -> Any:
    raise RuntimeError("mixed")


WEIGHTS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda weight: weight.t_(), "seen as its transposed": lambda weight: setattr(weight, "data", weight.data.t()),
    "swapped for its transposed": lambda weight: torch.utils.swap_tensors(weight, torch.nn.Parameter(weight.detach().t())),
    "swapped for another": lambda weight: torch.utils.swap_tensors(weight, torch.nn.Parameter(torch.randn(4, 4))),
    "elsewhere": lambda weight: setattr(weight, "data", weight.data.clone()), "set": lambda weight: weight.set_(torch.randn(4, 4)),
    "a row further": lambda weight: setattr(weight, "data", torch.cat([weight.data, weight.data])[1:5]),
    "its storage elsewhere": lambda weight: weight.untyped_storage().resize_(1 << 20),
}
_READERS = {"its bytes": lambda patch: None, "PyTorch": lambda patch: patch.setattr(_tensor_reader, "telling_bytes", lambda: 0),
            "DLPack": lambda patch: patch.setattr(_tensor_reader, "_own", lambda exchange: None)}


@pytest.fixture(params=_READERS)
def read_by(request, monkeypatch):
    """How weights are looked at."""
    _READERS[request.param](monkeypatch)


@pytest.mark.usefixtures("read_by")
@pytest.mark.parametrize("change", WEIGHTS)
def test_a_weight_that_was_changed_in_place_is_noticed(change, reads):
    given = Given()
    assert reads.of(given.call) == 0
    WEIGHTS[change](given.net.linear.weight)
    assert reads.of(given.call) == 1


@pytest.mark.usefixtures("read_by")
def test_sizes_that_lie_outside_of_a_weight_are_noticed(reads):
    """Of six dimensions: nothing of the tensor itself is another one."""
    weight = torch.zeros(2, 1, 1, 1, 1, 3)
    step, x = wrap(lambda x: x + weight.sum()), aligned(4)
    for _ in range(4):
        step(x)
    assert reads.of(lambda: step(x)) == 0
    weight.as_strided_((3, 1, 1, 1, 1, 2), (2, 2, 2, 2, 2, 1))
    assert reads.of(lambda: step(x)) == 1


@pytest.mark.usefixtures("read_by")
def test_a_weight_of_another_class_is_noticed(reads):
    given = Given()
    assert reads.of(given.call) == 0
    given.net.linear.weight.__class__ = type("Sub", (torch.nn.Parameter,), {})
    assert reads.of(given.call) == 1


@pytest.mark.usefixtures("read_by")
def test_a_weight_of_another_type_or_shape_is_noticed():
    """The function itself says what is wrong with it."""
    for change in (lambda weight: weight.data.view(torch.int32), lambda weight: weight.data.view(2, 8), lambda weight: weight.data[..., None], lambda weight: weight.data[:2]):
        given = Given()
        given.net.linear.weight.requires_grad_(False)
        given.call(), given.call(), given.call()
        calls = len(host.entries[-1].calls)
        given.net.linear.weight.data = change(given.net.linear.weight)
        with pytest.raises(RuntimeError):
            given.call()
        assert len(host.entries[-1].calls) == calls


def test_a_weight_that_requires_grad_from_now_on_is_noticed(reads):
    net = Net()
    net.requires_grad_(False)
    meta, caches = Meta(aligned(2, 4), True, [2, 4]), [aligned(2, 4), aligned(2, 4)]
    for _ in range(3):
        net.step(meta, caches)
    assert reads.of(lambda: net.step(meta, caches)) == 0
    net.linear.bias.requires_grad_(True)
    assert reads.of(lambda: net.step(meta, caches)) == 1


LAZY = {
    "a conjugate": lambda: torch.randn(4, dtype=torch.complex64),
    "a negative": lambda: torch.randn(4, dtype=torch.complex64).imag,
    "a negative number": lambda: torch.randn((), dtype=torch.complex64).imag,
}


@pytest.mark.parametrize("name", LAZY)
def test_a_weight_that_is_a_lazy_view_of_its_memory_from_now_on_is_noticed(name, reads):
    """`weight.data = weight.data.conj()` moves nothing, and DLPack shows no change."""
    weight = LAZY[name]()
    whole = weight if weight.is_complex() else weight._base
    step, x = wrap(lambda x: x * weight), aligned(4)
    for _ in range(3):
        step(x)
    assert reads.of(lambda: step(x)) == 0
    before = weight.data_ptr(), weight.stride()
    weight.data = whole.conj() if weight.is_complex() else whole.conj().imag
    assert (weight.data_ptr(), weight.stride()) == before and (weight.is_conj() or weight.is_neg())
    assert reads.of(lambda: step(x)) == 1


def _of_closure() -> tuple[Any, Any, Callable[[Any], None]]:
    factor = 2.0

    def scaled(x: Any, *, more: float = 1.0) -> Any:
        return x * factor + more

    def change(value: float) -> None:
        nonlocal factor
        factor = value

    return wrap(scaled), scaled, change


@pytest.mark.parametrize("what", ["contents", "no contents", "defaults", "code"])
def test_closures_and_what_functions_hold_are_looked_at(what, reads):
    (cached, function, change), x = _of_closure(), aligned(2, 4)
    for _ in range(3):
        cached(x)
    assert reads.of(lambda: cached(x)) == 0
    if what == "contents":
        change(3.0)
    elif what == "no contents":
        del function.__closure__[0].cell_contents
    elif what == "defaults":
        function.__kwdefaults__ = {"more": 2.0}
    else:
        function.__code__ = function.__code__.replace(co_firstlineno=1)
    assert reads.of(lambda: _ended(cached, x)) == 1


def _ended(cached: Any, x: Any) -> None:
    try:
        cached(x)
    except NameError:  # the function's own: it closes over nothing
        pass


def test_a_function_without_arguments_is_known_by_heart(reads):
    weight = aligned(2, 4)
    cached = wrap(lambda: weight + 1)
    for _ in range(3):
        cached()
    assert reads.of(cached) == 0
    weight.data = weight.data.clone()
    assert reads.of(cached) == 1


LISTS: dict[str, Callable[[list[Any]], Any]] = {
    "another tensor": lambda held: held.__setitem__(0, held[0].clone()),
    "an equal number": lambda held: held.__setitem__(1, True),
    "one more": lambda held: held.append(1),
    "one less": lambda held: held.pop(),
    "nothing": lambda held: held.clear(),
    "another order": lambda held: held.__setitem__(slice(2, 4), [held[3], held[2]]),
    "another one in a list": lambda held: held[4].__setitem__(0, "b"),
    "a list that is alike": lambda held: held.__setitem__(4, list(held[4])),
}


@pytest.mark.parametrize("change", LISTS)
def test_lists_that_a_function_finds_are_looked_at(change, reads):
    held, x = [aligned(2, 4), 1, aligned(2, 4), aligned(2, 4), ["a"], []], aligned(2, 4)

    def total(x: Any) -> Any:
        return x + (held[0] * held[1] + held[2] - held[3] if len(held) > 5 and held[4] else 0)

    cached = wrap(total)
    for _ in range(3):
        cached(x)
    assert reads.of(lambda: cached(x)) == 0
    LISTS[change](held)
    assert reads.of(lambda: cached(x)) == 1


def test_results_never_share_memory(reads):
    """Each call has memory of its own, of the sizes, strides and type that the recording had."""
    x = aligned(2, 4)
    cached = wrap(lambda x: (x.t() + 1, x.sum(0, dtype=torch.float64)))
    for _ in range(3):
        cached(x)
    first, second = cached(x), cached(x)
    assert reads.of(lambda: cached(x)) == 0
    assert len({one.data_ptr() for one in (*first, *second)}) == 4
    for kept, other in zip(first, (x.t() + 1, x.sum(0, dtype=torch.float64))):
        assert (kept.dtype, kept.shape, kept.stride(), kept.requires_grad) == (other.dtype, other.shape, other.stride(), False)
    pointers, _ = host.entries[0].calls[-1]
    assert pointers[0] == x.data_ptr() and len(pointers) == 3


def test_weights_that_moved_are_bound_where_they_are():
    given = Given()
    _weights_elsewhere(given)
    given.call()
    _, states = host.entries[0].calls[-1]
    assert given.net.linear.weight.data_ptr() in states


def test_weights_that_moved_are_bound_in_each_graph_that_has_them():
    """A call of another shape, which reads the weights before it sees that it is another one, does not hide it from the first."""
    net, calls = Net(), {}
    for rows in (2, 3):
        calls[rows] = (Meta(aligned(rows, 4), True, [2, 4]), [aligned(rows, 4), aligned(rows, 4)])
    for _ in range(4):
        for rows in calls:
            net.step(*calls[rows])
    assert len(host.entries) == 2
    before = net.linear.weight.data
    net.linear.weight.data = before.clone()
    assert net.linear.weight.data_ptr() != before.data_ptr()
    for rows in (3, 3, 2):
        net.step(*calls[rows])
    assert len(host.entries) == 2
    for entry in host.entries:
        _, states = entry.calls[-1]
        assert net.linear.weight.data_ptr() in states


def test_what_another_thread_bound_meanwhile_is_not_known_by_heart(monkeypatch):
    """Between the launch of a call and the look at it, a call of another object's went to the same entry."""
    other, given = Given(), Given.__new__(Given)
    _, states_of_other = host.entries[0].calls[-1]
    launched = _bound.Bound.launch

    def launch(self: Any) -> None:
        launched(self)
        self.variant.function.bound_states = list(states_of_other)

    monkeypatch.setattr(_bound.Bound, "launch", launch)
    given.__init__()  # type: ignore[misc]
    given.call()
    _, states = host.entries[0].calls[-1]
    assert given.net.linear.weight.data_ptr() in states
    assert other.net.linear.weight.data_ptr() not in states


def _at_aligned(tensor: Any) -> None:
    tensor.data = aligned(*tensor.shape).copy_(tensor.data)


def test_an_argument_on_a_weight_is_never_taken_for_one_beside_it():
    """Not at the second call either, when it lies where it lay at the first."""
    net = Net()
    _at_aligned(net.linear.weight)
    apart, on_weight = [aligned(2, 4), aligned(2, 4)], [net.linear.weight.data[:2], aligned(2, 4)]
    meta = Meta(aligned(2, 4), True, [2, 4])
    for _ in range(4):
        net.step(meta, apart)
    first = len(host.entries[0].calls)
    for _ in range(4):
        net.step(meta, on_weight)
    assert len(host.entries[0].calls) == first
    net.step(meta, apart)
    assert len(host.entries[0].calls) == first + 1


def test_two_objects_share_a_graph_and_not_their_weights(reads):
    """Both are known by heart, and each binds its own weights."""
    first, second = Given(), Given()
    assert len(host.entries) == 1
    for given in (first, second, first, second):
        given.call()
        assert given.net.linear.weight.data_ptr() in host.entries[0].calls[-1][1]


def test_a_function_that_another_thread_runs_makes_no_call_of_this_one_a_part_of_it(reads):
    given, other, inside, done = Given(), Given(), threading.Event(), threading.Event()
    parts: list[int] = []

    def nested() -> None:
        with _outside.running, torch.no_grad():  # as TorchFunction.run does
            inside.set()
            assert done.wait(30)
            calls = len(host.entries[0].calls)
            other.call()
            parts.append(len(host.entries[0].calls) - calls)

    thread = threading.Thread(target=nested)
    thread.start()
    assert inside.wait(30)
    try:
        counts = [reads.of(given.call) for _ in range(3)]
        entries = len(host.entries)
    finally:
        done.set()
        thread.join()
    assert counts[1:] == [0, 0] and parts == [0] and reads.of(given.call) == 0 and len(host.entries) == entries


def test_a_call_inside_of_a_function_that_runs_is_a_part_of_it(reads):
    given = Given()
    before = [len(one.calls) for one in host.entries]
    with _outside.running:
        given.call()
    assert [len(one.calls) for one in host.entries] == before and reads.of(given.call) == 0


def test_several_kinds_of_calls_are_known_at_once(reads):
    given = Given()
    sizes = [aligned(2, 4), aligned(3, 4), aligned(5, 4)]

    def calls() -> None:
        for one in sizes:
            given.meta.tokens, given.caches = one, [aligned(*one.shape), aligned(2, 4)]
            given.call()

    for _ in range(3):
        calls()
    assert reads.of(calls) == 0


def test_what_never_repeats_is_given_up(reads):
    """An attribute that the code does not name, and that differs at each call: it stays one variant, and is read."""
    given = Given()
    for i in range(20):
        given.meta.number = i
        assert reads.of(given.call) == 1
    (known,) = _torchs(given).steady.values()
    assert len(known) <= _function._MOST_TRIES


class Rich(enum.Enum):
    ONE = 1

    def __init__(self, number: int) -> None:
        self.weight = float(number)


def test_what_enumerators_hold_is_read(reads, monkeypatch):
    x = aligned(2, 4)
    cached = wrap(lambda x, kind: x * kind.weight)
    for _ in range(3):
        cached(x, Rich.ONE)
    monkeypatch.setattr(Rich.ONE, "weight", 3.0)
    assert reads.of(lambda: cached(x, Rich.ONE)) == 1


class Failing:
    """Stands for the stream, and fails once."""

    fault: BaseException | None = None

    def __call__(self, index: int) -> int:
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        return 0


@pytest.mark.parametrize("fault", [RuntimeError("no such stream"), KeyError("x"), MemoryError()])
def test_what_fails_before_the_launch_is_read_at_length(reads, monkeypatch, fault):
    monkeypatch.setattr(_launching, "native_stream", failing := Failing())
    given = Given()
    failing.fault = fault
    assert reads.of(given.call) == 1
    assert len(host.entries[0].calls) == 3  # the first call was the recording
    assert reads.of(given.call) == 0


def test_what_interrupts_a_later_call_is_raised_and_leaves_no_lock_behind(reads, monkeypatch):
    monkeypatch.setattr(_launching, "native_stream", failing := Failing())
    given = Given()
    failing.fault = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        given.call()
    assert not host.entries[0].lock.locked() and reads.of(given.call) == 0


@pytest.mark.parametrize("error, raised", [(errors.Stale, None), (errors.PartlyLaunched, errors.PartlyLaunched)])
def test_a_launch_that_fails_is_another_call_or_an_error(reads, monkeypatch, error, raised):
    """Nothing was enqueued after the first kind, and the function can run."""
    def fails(self: Any, stream: Any, args: Any, count: int) -> int:
        return int(error.code)

    given = Given()
    monkeypatch.setattr(host.FakeEntry, "_enqueued", fails)
    if raised is None:
        assert reads.of(given.call) == 1
        return
    with pytest.raises(raised):
        given.call()
    assert not host.entries[0].lock.locked()


@pytest.mark.parametrize("given", [(), ((), {}, 1), ([], {}), ((), ())])
def test_a_later_call_takes_a_tuple_and_a_dictionary_alone(given):
    call = next(iter(_torchs(Given()).steady.values()))[0].call
    with pytest.raises(TypeError, match="expected a tuple and a dict"):
        call(*given)


def test_a_call_has_its_result_where_later_ones_cannot_be_known(monkeypatch):
    def fails(*_: Any) -> Any:
        raise RuntimeError("no such tensor")

    monkeypatch.setattr(_objects.Tensors, "_numbers", fails)
    given = Given()
    assert given.call()["cache"] is given.caches[0]


def test_arguments_are_not_kept():
    given = Given()
    gone = [weakref.ref(given.meta.tokens), weakref.ref(given.meta), weakref.ref(given.caches[0])]
    given.meta, given.caches = Meta(aligned(2, 4), True, [2, 4]), [aligned(2, 4), aligned(2, 4)]
    given.call()
    gc.collect()
    assert [one() for one in gone] == [None, None, None]


def test_reset_forgets(reads):
    given = Given()
    given.net.step.reset()
    assert reads.of(given.call) == 1


class TestFrozen:
    def test_weights_are_not_looked_at_and_their_memory_is_kept(self, reads):
        given = Given()
        given.net.step.freeze_weights()
        weight = given.net.linear.weight
        at, memory = weight.data_ptr(), weakref.ref(weight)
        _weight_replaced(given)
        del weight
        gc.collect()
        assert reads.of(given.call) == 0
        assert at in host.entries[0].calls[-1][1] and memory() is not None

    def test_arguments_are(self, reads):
        given = Given()
        given.net.step.freeze_weights()
        given.meta.is_prompt = False
        assert reads.of(given.call) == 1

    def test_it_may_come_before_the_first_call(self, reads):
        net = Net()
        net.step.freeze_weights()
        meta, caches = Meta(aligned(2, 4), True, [2, 4]), [aligned(2, 4), aligned(2, 4)]
        for _ in range(3):
            net.step(meta, caches)
        net.heads = 7
        assert reads.of(lambda: net.step(meta, caches)) == 0

    def test_reset_ends_it(self, reads):
        given = Given()
        given.net.step.freeze_weights()
        given.net.step.reset()
        for _ in range(3):
            given.call()
        given.net.heads = 7
        assert reads.of(given.call) == 1


def test_threads_call_at_once():
    """Each result lies in memory of its own, and holds what its call was given."""
    import threading

    given, wrong = Given(), []

    def work() -> None:
        mine = Meta(aligned(2, 4), True, [2, 4])
        caches = [aligned(2, 4), aligned(2, 4)]
        for _ in range(200):
            with torch.no_grad():
                result = given.net.step(mine, caches, dtype=torch.float32)
            if result["cache"] is not caches[0] or result["row"].data_ptr() != caches[1].data_ptr():
                wrong.append(result)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_a_later_call_waits_while_another_thread_has_its_weights_elsewhere(reads):
    """It would be launched with the weight's address of that moment."""
    import threading

    from warmgraph.torch import _gate

    given = Given()
    weight, calls = given.net.linear.weight, len(host.entries[0].calls)
    at, found, moved, may_end = weight.data_ptr(), [], threading.Event(), threading.Event()

    def move() -> None:
        kept = weight.data
        with _gate.moving():
            weight.data = torch.zeros(4, 4)
            moved.set()
            may_end.wait(5)
            found.append(len(host.entries[0].calls))
            weight.data = kept

    thread = threading.Thread(target=move)
    thread.start()
    moved.wait(5)
    threading.Timer(0.1, may_end.set).start()
    given.call()
    thread.join()
    assert found == [calls] and len(host.entries[0].calls) == calls + 1 and at in host.entries[0].calls[-1][1]
    assert reads.of(given.call) == 0


def test_a_later_call_that_was_begun_before_its_weights_moved_is_begun_anew(monkeypatch, reads):
    import threading

    from warmgraph.torch import _gate

    given, calls = Given(), len(host.entries[0].calls)
    weight, threads = given.net.linear.weight, []
    at = weight.data_ptr()

    def move() -> None:
        kept = weight.data
        with _gate.moving():
            weight.data = torch.zeros(4, 4)
            given.moved.set()
            given.may_end.wait(5)
            weight.data = kept

    def is_same() -> bool:  # Python code among what a later call looks at, in which another thread gets its turn
        if not threads:
            threads.append(threading.Thread(target=move))
            threads[0].start()
            given.moved.wait(5)
            threading.Timer(0.1, given.may_end.set).start()
        return True

    given.moved, given.may_end = threading.Event(), threading.Event()
    _torchs(given).steady.clear()
    monkeypatch.setattr(_call.Surroundings, "looks", _with(_call.Surroundings.looks, is_same))
    given.call()
    assert reads.of(given.call) == 1 and threads
    threads[0].join()
    assert len(host.entries[0].calls) == calls + 2 and all(at in states for _, states in host.entries[0].calls[-2:])


def _with(looks: Any, is_same: Callable[[], bool]) -> Any:
    def more(*given: Any) -> Any:
        found = looks(*given)
        return found._replace(rest=[*found.rest, is_same])

    return more


def _torchs(given: Given) -> Any:
    return given.net.step._shared.torchs


def test_an_object_whose_attributes_are_in_another_dictionary_is_read_again(reads):
    given = Given()
    dropout = given.net.norm[1]
    assert reads.of(given.call) == 0
    dropout.__dict__ = {**vars(dropout), "p": 0.25}
    assert reads.of(given.call) > 0
