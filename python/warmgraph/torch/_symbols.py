"""PyTorch's libraries, for what they export and Python does not ask quickly."""
from __future__ import annotations

import ctypes
import functools
import os

import torch


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """OSError where this PyTorch has none of this name."""
    return ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", name))
