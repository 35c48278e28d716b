"""PyTorch's libraries and the driver, for what they export and PyTorch does not say in Python."""
from __future__ import annotations

import ctypes
import functools
import os

import torch


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """OSError where this PyTorch has none of this name."""
    return ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", name))


@functools.cache
def driver() -> ctypes.CDLL:
    """NVIDIA's, which this process has loaded: PyTorch runs on it."""
    return ctypes.CDLL("libcuda.so.1")
