"""PyTorch's libraries and the driver, for functions that PyTorch's Python does not offer."""
from __future__ import annotations

import ctypes
import functools
import os

import torch


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """Raises OSError when this PyTorch has no library with this name."""
    return ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", name))


@functools.cache
def driver() -> ctypes.CDLL:
    """NVIDIA's driver library; PyTorch has loaded it."""
    return ctypes.CDLL("libcuda.so.1")
