"""What of PyTorch's own state decides which kernels a function launches."""
from __future__ import annotations

import os
from typing import Any, Callable

import torch

from . import _code


def _ask(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except (AttributeError, RuntimeError):  # another version, or old and new settings of precision mixed
        return "unknown"


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
    "cudnn attention": lambda: torch._C._get_cudnn_sdp_enabled(),
    "preferred blas": lambda: torch._C._get_blas_preferred_backend(),
}
_ENVIRONMENT = ("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")


_CALLS = tuple(_QUESTIONS.values())


def modes() -> tuple[Any, ...]:
    """On every call."""
    try:
        return tuple([question() for question in _CALLS])
    except (AttributeError, RuntimeError):
        return tuple([_ask(question) for question in _CALLS])


def facts(now: tuple[Any, ...], packages: Any, is_compiled: bool) -> dict[str, str]:
    """Guards. `now`: what modes() gave."""
    found = {f"torch.{name}": str(value) for name, value in zip(_QUESTIONS, now)}
    found["torch.version"] = torch.__version__
    found["torch.git"] = str(torch.version.git_version)
    found["torch.cuda"] = str(torch.version.cuda)
    found["torch.cudnn"] = str(_ask(torch.backends.cudnn.version))
    found["torch.compiled"] = str(is_compiled)
    found["python"] = _code.python_version()
    for name in _ENVIRONMENT:
        found[f"torch.env.{name}"] = os.environ.get(name, "(unset)")
    for package in sorted(packages) + (["triton"] if is_compiled else []):
        if package != "torch":
            found[f"package.{package}"] = _code.version_of(package)
    return found
