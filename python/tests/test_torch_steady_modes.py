"""Each later call checks PyTorch's modes and settings, and the observers of operators."""
from __future__ import annotations

from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

import torch_on_the_host as host  # noqa: E402
from later_calls import Given, forgotten, on_the_host, reads  # noqa: E402, F401  fixtures
from warmgraph.torch.replay import _modes  # noqa: E402


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
OF_LATER_VERSIONS = {  # settings that exist in PyTorch 2.15
    "flash attention 4": ("_set_sdp_use_fa4", "_get_fa4_sdp_enabled", True),
    "matmul grouped": ("_set_cublaslt_prefer_grouped_gemm", "_get_cublaslt_prefer_grouped_gemm", True),
    "cudnn depthwise": ("_set_cudnn_depthwise_kernel", "_get_cudnn_depthwise_kernel", "native"),
    "native operators": ("_set_native_aot_enabled", "_get_native_aot_enabled", False),
    "native operators masked": ("_set_native_aot_unconditional_masked", "_get_native_aot_unconditional_masked", True),
    "layout of gradients": ("_set_grad_layout_enforcement_enabled", "_is_grad_layout_enforcement_enabled", False),
}
SETTINGS.update({name: (getattr(torch._C, change), getattr(torch._C, ask), value) for name, (change, ask, value) in OF_LATER_VERSIONS.items()
                 if hasattr(torch._C, change)})
# Settings that choose no kernel on a CUDA device, or that the package checks in another way (dispatch and function modes, tracing,
# gradients).
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
    """A new setting that decides which kernels run must be read in _modes.py and named in GUARDS; any other setting belongs in NO_SETTINGS."""
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
    """In some versions of PyTorch the native function is missing or returns another form. Then the package asks PyTorch's Python function."""
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
    given.net.requires_grad_(False)  # a tracer does not accept constants that require gradients
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
    "forward-mode gradients": _with_mode(torch.autograd.forward_ad.dual_level),
    "vmap": lambda given: torch.func.vmap(lambda x: (given.call(), x)[1])(torch.zeros(2)),
}


@pytest.mark.parametrize("what", WATCHED)
def test_who_watches_operators_sees_them_in_a_later_call(what, reads):
    given = Given()
    assert reads.of(given.call) == 0
    calls = len(host.entries[0].calls)
    WATCHED[what](given)
    if what != "tracing":  # tracing has itself checked the modes and changed the weights
        assert len(host.entries[0].calls) == calls and reads.of(given.call) == 0 and len(host.entries[0].calls) == calls + 1


@pytest.mark.skipif(_modes._FLASH not in _modes._QUESTIONS, reason="this PyTorch has no other implementations of attention")
def test_another_implementation_of_attention_is_another_call(reads, monkeypatch):
    """Registers another kernel for a PyTorch operator. No setting in torch._C shows this."""
    given = Given()
    assert reads.of(given.call) == 0
    monkeypatch.setattr(torch.nn.attention._registry, "_FLASH_ATTENTION_ACTIVE", ("FA4", None))
    assert torch.nn.attention.current_flash_attention_impl() == "FA4" == _modes._QUESTIONS[_modes._FLASH]()
    entries = len(host.entries)
    assert reads.of(given.call) == 1 and len(host.entries) == entries + 1


def test_precisions_of_which_pytorch_does_not_say_how_they_mix_are_another_call(reads):
    """PyTorch's own function raises here, so the package reads the setting without Python."""
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
    """If the native function is missing, the package asks Python. With both ways it must see each change."""
    functions = {name: one for name, one in _modes._FUNCTIONS.items() if name != "device"}  # "device" is a CUDA function
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
    """PyTorch's queries raise when old and new precision settings are mixed."""
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
