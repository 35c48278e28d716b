"""Reads PyTorch's global state that decides which kernels a function launches."""
from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
from typing import Any, Callable, NamedTuple, Sequence

import torch

from warmgraph.calls._steady_calls import Tests
from warmgraph.torch.read import _installed_code, _libraries


def _ask(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except (AttributeError, RuntimeError):  # another version of PyTorch, or the program has mixed old and new precision settings
        return "unknown"


def _c(name: str) -> Callable[..., Any]:
    return getattr(torch._C, name, lambda *_: "unknown")


_attention_order = _c("_get_sdp_priority_order")
_QUESTIONS: dict[str, Callable[[], Any]] = {
    "inference mode": torch.is_inference_mode_enabled,
    "autocast": lambda: torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda"),
    "autocast cache": torch.is_autocast_cache_enabled,
    "default dtype": torch.get_default_dtype,
    "matmul precision": torch._C._get_float32_matmul_precision,
    "matmul tf32": torch._C._get_cublas_allow_tf32,
    "matmul fp16 reduction": torch._C._get_cublas_allow_fp16_reduced_precision_reduction,
    "matmul bf16 reduction": torch._C._get_cublas_allow_bf16_reduced_precision_reduction,
    "cudnn": torch._C._get_cudnn_enabled,
    "cudnn tf32": torch._C._get_cudnn_allow_tf32,
    "cudnn benchmark": torch._C._get_cudnn_benchmark,
    "cudnn deterministic": torch._C._get_cudnn_deterministic,
    "deterministic": torch._C._get_deterministic_algorithms,
    "deterministic fill": torch._C._get_deterministic_fill_uninitialized_memory,
    "flash attention": torch._C._get_flash_sdp_enabled,
    "efficient attention": torch._C._get_mem_efficient_sdp_enabled,
    "math attention": torch._C._get_math_sdp_enabled,
    "cudnn attention": _c("_get_cudnn_sdp_enabled"),
    "attention order": lambda: tuple(_attention_order()),
    "preferred blas": _c("_get_blas_preferred_backend"),
    "preferred linalg": _c("_get_linalg_preferred_backend"),
    "matmul fp16 accumulation": _c("_get_cublas_allow_fp16_accumulation"),
    "deterministic warns": _c("_get_deterministic_algorithms_warn_only"),
    "flash attention 3": _c("_get_fa3_sdp_enabled"),
    "overrideable attention": _c("_get_overrideable_sdp_enabled"),
    "math attention reduction": _c("_get_math_sdp_allow_fp16_bf16_reduction"),
    "sm carveout": _c("_get_sm_carveout_experimental"),
    "transformer fast path": torch.backends.mha.get_fastpath_enabled,
    "default device": lambda: torch._C._len_torch_function_stack() and torch.get_default_device(),
}
# Settings of PyTorch 2.12 to 2.15. They are only read where they exist, so that the facts of older versions do not change.
_LATER = {
    "flash attention 4": "_get_fa4_sdp_enabled",
    "matmul grouped": "_get_cublaslt_prefer_grouped_gemm",
    "cudnn depthwise": "_get_cudnn_depthwise_kernel",
    "native operators": "_get_native_aot_enabled",
    "native operators masked": "_get_native_aot_unconditional_masked",
    "layout of gradients": "_is_grad_layout_enforcement_enabled",
}
_QUESTIONS.update({name: getattr(torch._C, function) for name, function in _LATER.items() if hasattr(torch._C, function)})
_FLASH = "flash attention's implementation"
_registry = sys.modules.get("torch.nn.attention._registry")  # exists since PyTorch 2.11
if hasattr(_registry, "_FLASH_ATTENTION_ACTIVE"):  # the kernels that are registered for PyTorch's operators
    _QUESTIONS[_FLASH] = lambda: getattr(_registry, "_FLASH_ATTENTION_ACTIVE") and getattr(_registry, "_FLASH_ATTENTION_ACTIVE")[0]
_PRECISIONS = (("generic", "all"), ("cuda", "all"), ("cuda", "matmul"), ("cuda", "conv"), ("cuda", "rnn"))
_ENVIRONMENT = ("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")


_CALLS = tuple(_QUESTIONS.values())
# For a question and its answer: a faster question that has the same answer, and the argument of that question.
_QUICKER: dict[tuple[str, Any], tuple[Any, ...]] = {
    ("autocast", False): (torch.is_autocast_enabled,),  # asked without an argument, which means "cuda", the default
    ("default device", 0): (torch._C._len_torch_function_stack,),
}


@functools.cache
def settle(index: int) -> None:
    """Initialises PyTorch's order of attention kernels for the device. PyTorch does this when it first chooses such a kernel; without
    settle(), the order, which is a fact, would depend on whether the process has called such a kernel before. Launches nothing and takes
    no memory. Call it before a process's first modes()."""
    try:
        one = torch.empty(1, 1, 0, 64, dtype=torch.float16, device=f"cuda:{index}")
        torch._fused_sdp_choice(one, one, one)
    except Exception:  # another version of PyTorch may fail here
        pass


def changed(before: tuple[Any, ...]) -> str:
    """Describes the modes that have changed since `before`; "" when none has changed."""
    names = [*_QUESTIONS, "precisions"]
    return ", ".join(f"{name} was {was!r} and is {now!r}" for name, was, now in zip(names, before, modes()) if was != now)


def modes() -> tuple[Any, ...]:
    """The current modes. This function runs in every call."""
    try:
        return (*[question() for question in _CALLS], None)
    except (AttributeError, RuntimeError):
        found = [_ask(question) for question in _CALLS]
    # The questions about precision fail when a program uses the newer settings.
    return (*found, _ask(_precisions))


def expect(tests: Tests, before: tuple[Any, ...]) -> list[tuple[Any, str]]:
    """Adds tests that modes() still returns `before` at each later call. Returns (object, name) of the attributes that must not change."""
    if len(before) != len(_CALLS) + 1 or before[-1] is not None:
        tests.same(tests.answer(lambda: modes() == before), True)
        return []
    attributes = []
    for name, question, answer in zip(_QUESTIONS, _CALLS, before):
        is_own = question is _QUESTIONS[name]
        code = _code_behind(name) if name in _CODE and is_own else None
        if code is not None:
            tests.code(*code, int(answer))
        elif is_own and name == "default device" and answer == 0 and _expect_no_function_modes(tests):
            pass
        elif is_own and expect_code(tests, name, answer):
            pass
        elif name == "transformer fast path" and is_own and getattr(torch.backends.mha, "_is_fastpath_enabled", None) is answer:
            attributes.append((torch.backends.mha, "_is_fastpath_enabled"))
        elif name == _FLASH and is_own and question() == answer:
            attributes.append((sys.modules["torch.nn.attention._registry"], "_FLASH_ATTENTION_ACTIVE"))
        elif name == "attention order" and is_own:
            if not _expect_order(tests, answer):
                tests.equal(tests.answer(_attention_order), list(answer))
        else:
            _expect(tests, tests.answer(*_QUICKER.get((name, answer), (question,))), answer)
    return attributes


# The C++ function that gives the answer to a question (torch 2.11). A call takes a hundredth of the time of asking in Python, or a
# thousandth if the answer is an enumerator. None of these functions throws. Methods of at::Context return Python's answer as a number.
_CODE = {
    "cudnn": "userEnabledCuDNN", "cudnn benchmark": "benchmarkCuDNN", "cudnn deterministic": "deterministicCuDNN", "deterministic": "deterministicAlgorithms",
    "deterministic warns": "deterministicAlgorithmsWarnOnly", "deterministic fill": "deterministicFillUninitializedMemory",
    "flash attention": "userEnabledFlashSDP", "flash attention 3": "userEnabledFA3SDP", "efficient attention": "userEnabledMemEfficientSDP",
    "math attention": "userEnabledMathSDP", "cudnn attention": "userEnabledCuDNNSDP", "overrideable attention": "userEnabledOverrideableSDP",
    "math attention reduction": "allowFP16BF16ReductionMathSDP", "matmul fp16 accumulation": "allowFP16AccumulationCuBLAS",
    "preferred blas": "blasPreferredBackend", "preferred linalg": "linalgPreferredBackend",
}


class NativeFunction(NamedTuple):
    """A PyTorch function whose current answer must stay the same. `says`: with "same" it returns Python's answer as a number, with "more"
    an enumerator that tells at least as much as Python's answer. at: the index of the byte that is compared."""

    library: str
    symbol: str
    argument: int | None = 0  # the function's argument; None: at::globalContext()
    says: str = "same"
    at: int = 0


_CUDA = 1  # the number of "cuda" in c10::DeviceType
_FUNCTIONS = {
    "inference mode": NativeFunction("libc10.so", "_ZN3c1013InferenceMode10is_enabledEv"),
    "default dtype": NativeFunction("libc10.so", "_ZN3c1031get_default_dtype_as_scalartypeEv", says="more"),
    "autocast": NativeFunction("libtorch_cpu.so", "_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE", _CUDA),
    "autocast cache": NativeFunction("libtorch_cpu.so", "_ZN2at8autocast25is_autocast_cache_enabledEv"),
    "matmul precision": NativeFunction("libtorch_cpu.so", "_ZNK2at7Context22float32MatmulPrecisionEv", None, "more"),
    "matmul tf32": NativeFunction("libtorch_cpu.so", "_ZNK2at7Context15allowTF32CuBLASEv", None),
    "matmul fp16 reduction": NativeFunction("libtorch_cpu.so", "_ZNK2at7Context24allowFP16ReductionCuBLASEv", None, "more"),
    "matmul bf16 reduction": NativeFunction("libtorch_cpu.so", "_ZNK2at7Context24allowBF16ReductionCuBLASEv", None, "more"),
    "cudnn tf32": NativeFunction("libtorch_cpu.so", "_ZNK2at7Context14allowTF32CuDNNESt8optionalINS_9Float32OpEE", None),  # no operator
    "dispatch modes": NativeFunction("libc10.so", "_ZN3c104impl20TorchDispatchModeTLS13any_modes_setEb"),  # PyTorch's own modes count, too
    "function modes": NativeFunction("libtorch_cpu.so", "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv"),
    "many function modes": NativeFunction("libtorch_cpu.so", "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv", at=1),
    # The byte of the std::optional<int> that says whether it has a value.
    "sm carveout": NativeFunction("libtorch_cpu.so", "_ZNK2at7Context24_SMCarveout_EXPERIMENTALEv", None, at=4),
    "device": NativeFunction("libc10_cuda.so", "_ZN3c104cuda14current_deviceEv"),
}
_TRACING = "libtorch_cpu.so", "_ZN5torch3jit6tracer15getTracingStateEv"  # the function returns a std::shared_ptr
_INTERPRETERS = "libtorch_cpu.so", "_ZN2at9functorch20getDynamicLayerStackEv"  # the function returns a std::vector


@functools.cache
def _context() -> tuple[ctypes.CDLL, int]:
    """Returns the library with PyTorch's settings, and the address of the settings (at::globalContext())."""
    library = _libraries.library("libtorch_cpu.so")
    get = library["_ZN2at13globalContextEv"]
    get.restype = ctypes.c_void_p
    return library, get()


@functools.cache
def _code_behind(name: str) -> tuple[int, int] | None:
    """Returns a C function and its argument (a pointer); the function returns the answer as a number in a byte. None when this PyTorch has
    no such function."""
    try:
        library, at = _context()
        method = f"2at7Context{len(_CODE[name])}{_CODE[name]}Ev"
        function = next(library[symbol] for symbol in (f"_ZNK{method}", f"_ZN{method}") if hasattr(library, symbol))
        function.restype, function.argtypes = ctypes.c_uint8, [ctypes.c_void_p]
        is_it = function(at) == int(_QUESTIONS[name]())
        return (ctypes.cast(function, ctypes.c_void_p).value or 0, at) if is_it else None
    except (AttributeError, KeyError, OSError, StopIteration, TypeError, ValueError):
        return None


def expect_code(tests: Tests, name: str, answer: Any) -> bool:
    """Adds a test that the C++ function for this question still returns its current answer. Returns False if this PyTorch lacks the
    function, or if its answer tells less than the answer in Python."""
    one = _FUNCTIONS.get(name)
    function = _function(one.library, one.symbol) if one is not None else None
    if one is None or function is None or name == "autocast" and answer or name == "sm carveout" and answer is not None:
        return False
    try:
        argument = _context()[1] if one.argument is None else one.argument
    except (AttributeError, KeyError, OSError):
        return False
    now = function(argument, None) >> 8 * one.at & 0xFF
    if one.says == "same" and now != int(answer or 0):
        return False
    tests.code(ctypes.cast(function, ctypes.c_void_p).value or 0, argument, now, one.at)
    return True


_NO_NUMBER = 0xDEADBEEF  # a number that no enumerator has
_ORDER = "_ZN2at7Context16sDPPriorityOrderEv"  # the function returns a std::array of enumerators
# The most numbers that a test compares, and the length of the buffer. The buffer is long, because the function of another PyTorch might
# take it for PyTorch's settings.
_MOST_NUMBERS, _ROOM = 8, 1024


def _expect_order(tests: Tests, order: Sequence[int]) -> bool:
    """Adds a test that the C++ function for `_attention_order` returns these numbers. Returns False when this PyTorch's function does not
    return them."""
    function = _function("libtorch_cpu.so", _ORDER)
    if platform.machine() != "x86_64":  # on other machines the address of a large result is not an argument
        return False
    if function is None or len(order) > _MOST_NUMBERS or not all(0 <= one < 256 for one in order):
        return False
    try:
        at = _context()[1]
    except (AttributeError, KeyError, OSError):
        return False
    found = (ctypes.c_uint32 * _ROOM)(*[_NO_NUMBER] * _ROOM)
    function(ctypes.addressof(found), at)
    if list(found) != [*order, *[_NO_NUMBER] * (_ROOM - len(order))]:
        return False
    tests.code_numbers(ctypes.cast(function, ctypes.c_void_p).value or 0, at, order)
    return True


@functools.cache
def _function(library: str, symbol: str) -> Any:
    """A function in one of PyTorch's libraries. None when this PyTorch has no such function."""
    try:
        found = _libraries.library(library)[symbol]
    except (AttributeError, OSError):
        return None
    found.restype, found.argtypes = ctypes.c_uint64, [ctypes.c_void_p, ctypes.c_void_p]
    return found


def _address(where: tuple[str, str]) -> int:
    """The address of the function. 0 when this PyTorch has no such function."""
    function = _function(*where)
    return (ctypes.cast(function, ctypes.c_void_p).value or 0) if function is not None else 0


def _expect(tests: Tests, register: int, answer: Any) -> None:
    if answer is None or isinstance(answer, (bool, torch.dtype)):
        tests.same(register, answer)
    elif type(answer).__module__ == "torch._C" and hasattr(type(answer), "__members__"):
        tests.number(register, int(answer))  # each answer is a new C++ enumerator object, and its number is compared faster
    else:
        tests.equal(register, answer)


def _precisions() -> str:
    return " ".join(torch._C._get_fp32_precision_getter(*one) for one in _PRECISIONS)


_hooks, _forward_ad = torch.nn.modules.module, torch.autograd.forward_ad
_dispatch_modes, _function_modes = torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack
_is_tracing, _interpreters = torch._C._is_tracing, torch._C._functorch.peek_interpreter_stack


def is_inside() -> bool:
    """Whether modes, tracers or global hooks of the caller are active. They see each operator of the function, but a replay would show them
    none."""
    return bool(_dispatch_modes() or _hooks._global_forward_hooks or _hooks._global_forward_pre_hooks or _is_tracing()
                or _interpreters() is not None  # inside vmap or grad
                or _forward_ad._current_level >= 0  # inside forward-mode AD, tensors may have tangents
                or (_function_modes() and _has_own_function_mode()))


def expect_outside(tests: Tests) -> list[tuple[Any, str]]:
    """Adds tests that is_inside() is still false. Returns (object, name) of the attributes that must not change."""
    if not expect_code(tests, "dispatch modes", False):
        tests.number(tests.answer(_dispatch_modes), 0)
    tests.empty(_hooks._global_forward_hooks)
    tests.empty(_hooks._global_forward_pre_hooks)
    tracing, interpreters = _address(_TRACING), _address(_INTERPRETERS)
    if tracing:
        tests.code_is_null(tracing)
    else:
        tests.same(tests.answer(_is_tracing), False)
    if interpreters:
        tests.code_is_empty(interpreters)
    else:
        tests.same(tests.answer(_interpreters), None)
    if _function_modes():  # a mode is active now: test that it is PyTorch's own
        tests.same(tests.answer(_has_own_function_mode), False)
    return [(_hooks, "_global_forward_hooks"), (_hooks, "_global_forward_pre_hooks"), (_forward_ad, "_current_level")]


def _expect_no_function_modes(tests: Tests) -> bool:
    """Tests that there are no function modes. Two bytes of the number are compared: there are always fewer than 65,536 modes."""
    return expect_code(tests, "function modes", 0) and expect_code(tests, "many function modes", 0)


def _has_own_function_mode() -> bool:
    return any(not isinstance(torch._C._get_function_stack_at(i), torch.utils._device.DeviceContext)
               for i in range(torch._C._len_torch_function_stack()))


@functools.cache
def _cudnn_version() -> str:
    return str(_ask(torch.backends.cudnn.version))


def facts(now: tuple[Any, ...], packages: Any, how: str) -> dict[str, str]:
    """The modes as guards. `now`: the result of modes(). `how`: how the function is compiled, or ""."""
    found = {f"torch.{name}": str(value) for name, value in zip((*_QUESTIONS, "precisions"), now)}
    found["torch.version"] = torch.__version__
    found["torch.git"] = str(torch.version.git_version)
    found["torch.cuda"] = str(torch.version.cuda)
    found["torch.cudnn"] = _cudnn_version()
    found["torch.compiled"] = how or "False"
    found["python"] = _installed_code.python_version()
    for name in _ENVIRONMENT:
        found[f"torch.env.{name}"] = os.environ.get(name, "(unset)")
    for package in sorted(packages) + (["triton"] if how else []):
        if package != "torch":
            found[f"package.{package}"] = _installed_code.version_of(package)
    return found
