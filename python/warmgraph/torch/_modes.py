"""What of PyTorch's own state decides which kernels a function launches."""
from __future__ import annotations

import functools
import os
from typing import Any, Callable, Iterator

import torch

from . import _code


def _ask(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except (AttributeError, RuntimeError):  # another version, or old and new settings of precision mixed
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
    "transformer fast path": torch.backends.mha.get_fastpath_enabled,
    "default device": lambda: torch._C._len_torch_function_stack() and torch.get_default_device(),
}
_PRECISIONS = (("generic", "all"), ("cuda", "all"), ("cuda", "matmul"), ("cuda", "conv"), ("cuda", "rnn"))
_ENVIRONMENT = ("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")


_CALLS = tuple(_QUESTIONS.values())
# By (name, answer): what gives that answer where the question does, and only there, and is asked sooner.
_QUICKER: dict[tuple[str, Any], Callable[[], Any]] = {
    ("autocast", False): functools.partial(torch.is_autocast_enabled, "cuda"),
    ("default device", 0): torch._C._len_torch_function_stack,
}


@functools.cache
def settle(index: int) -> None:
    """PyTorch orders its attention kernels for the device when the first of them is chosen: the order would be another one in a process that
    calls a function before, and in one that calls it after. Nothing is launched. Before the first modes() of a process."""
    try:
        one = torch.empty(1, 1, 1, 64, dtype=torch.float16, device=f"cuda:{index}")
        torch._fused_sdp_choice(one, one, one)
    except Exception:  # another version's
        pass


def changed(before: tuple[Any, ...]) -> str:
    """Which of them are others now, in words; "" where none is."""
    names = [*_QUESTIONS, "precisions"]
    return ", ".join(f"{name} was {was!r} and is {now!r}" for name, was, now in zip(names, before, modes()) if was != now)


def modes() -> tuple[Any, ...]:
    """On every call."""
    try:
        return (*[question() for question in _CALLS], None)
    except (AttributeError, RuntimeError):
        found = [_ask(question) for question in _CALLS]
    # The questions of precision fail where a program uses the newer settings.
    return (*found, _ask(_precisions))


def same_as(before: tuple[Any, ...]) -> Callable[[], bool]:
    """Whether modes() gives `before` now: one expression for all questions, since each later call asks them."""
    if len(before) != len(_CALLS) + 1 or before[-1] is not None:
        return lambda: modes() == before
    names: dict[str, Any] = {"modes": modes, "before": before}
    tests = []
    for i, (name, question, answer) in enumerate(zip(_QUESTIONS, _CALLS, before)):
        names[f"q{i}"] = _QUICKER.get((name, answer), question)
        names[f"a{i}"], test = _test_of(answer)
        tests.append(test.format(f"q{i}()", f"a{i}"))
    lines = ["def same():", "    try:", f"        return {' and '.join(tests)}", "    except (AttributeError, RuntimeError):",
             "        return modes() == before"]
    exec(compile("\n".join(lines), "<modes of a call>", "exec"), names)
    return names["same"]  # type: ignore[no-any-return]


def _test_of(answer: Any) -> tuple[Any, str]:
    """(what is compared, how). Enumerators of PyTorch's C++ are new objects each time, and quicker as numbers."""
    if answer is None or isinstance(answer, (bool, torch.dtype)):
        return answer, "{0} is {1}"
    if type(answer).__module__ == "torch._C" and hasattr(type(answer), "__members__"):
        return int(answer), "int({0}) == {1}"
    return answer, "{0} == {1}"


def _precisions() -> str:
    return " ".join(torch._C._get_fp32_precision_getter(*one) for one in _PRECISIONS)


_hooks = torch.nn.modules.module
_dispatch_modes, _function_modes = torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack
_is_tracing, _interpreters = torch._C._is_tracing, torch._C._functorch.peek_interpreter_stack


def is_inside() -> bool:
    """The caller's own modes, tracers and global hooks see each operator: a replay would have none."""
    return bool(_dispatch_modes() or _hooks._global_forward_hooks or _hooks._global_forward_pre_hooks or _is_tracing()
                or _interpreters() is not None  # vmap, grad
                or (_function_modes() and _has_own_function_mode()))


def _has_own_function_mode() -> bool:
    return any(not isinstance(torch._C._get_function_stack_at(i), torch.utils._device.DeviceContext)
               for i in range(torch._C._len_torch_function_stack()))


@functools.cache
def _cudnn_version() -> str:
    return str(_ask(torch.backends.cudnn.version))


def ask_ahead() -> Iterator[None]:
    """What facts() says of the installation, which takes a millisecond to find out, in pieces. In any thread."""
    _cudnn_version()
    yield
    _code.version_of("triton")


def facts(now: tuple[Any, ...], packages: Any, how: str) -> dict[str, str]:
    """Guards. `now`: what modes() gave. `how` it is compiled, "" where it is not."""
    found = {f"torch.{name}": str(value) for name, value in zip((*_QUESTIONS, "precisions"), now)}
    found["torch.version"] = torch.__version__
    found["torch.git"] = str(torch.version.git_version)
    found["torch.cuda"] = str(torch.version.cuda)
    found["torch.cudnn"] = _cudnn_version()
    found["torch.compiled"] = how or "False"
    found["python"] = _code.python_version()
    for name in _ENVIRONMENT:
        found[f"torch.env.{name}"] = os.environ.get(name, "(unset)")
    for package in sorted(packages) + (["triton"] if how else []):
        if package != "torch":
            found[f"package.{package}"] = _code.version_of(package)
    return found
