"""Loads PyTorch's libraries and the driver, for functions that PyTorch's Python interface does not offer."""
from __future__ import annotations

import ctypes
import functools
import os

import torch


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """One of PyTorch's libraries, by name. Raises OSError when this PyTorch does not have it."""
    return ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", name))


@functools.cache
def driver() -> ctypes.CDLL:
    """NVIDIA's driver library, which PyTorch has already loaded."""
    return ctypes.CDLL("libcuda.so.1")
