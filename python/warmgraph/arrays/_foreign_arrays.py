"""Reads other libraries' memory on a device through `__cuda_array_interface__` (version 2 and 3) or DLPack (version 0 and 1)."""
from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

from warmgraph import dtypes, errors

HOST, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # values of DLPack's DLDeviceType
_CODES = {0: "i", 1: "u", 2: "f", 4: "bf", 6: "bool"}  # values of DLPack's DLDataTypeCode


@dataclasses.dataclass(frozen=True)
class ForeignArray:
    """The address and layout of another library's array. `strides` are in elements."""

    device: int
    ordinal: int
    pointer: int
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None
    keep: Any


class _DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("ordinal", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype", _DLDataType), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


def of_cuda_array_interface(value: Any) -> ForeignArray:
    given = value.__cuda_array_interface__
    import numpy

    kind = numpy.dtype(given["typestr"])
    strides = given.get("strides")
    if strides is not None and any(stride % kind.itemsize for stride in strides):
        raise errors.InvalidArgument(f"strides {strides} are not multiples of {kind.itemsize} bytes")
    return ForeignArray(CUDA, 0, int(given["data"][0]), tuple(given["shape"]), dtypes.canonical(kind),
                   None if strides is None else tuple(stride // kind.itemsize for stride in strides), value)


def of_dlpack(value: Any) -> ForeignArray:
    """Reads a DLPack capsule without consuming it. The capsule frees its memory itself when it is garbage."""
    capsule = value.__dlpack__()
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    if api.PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        managed = _DLManagedTensorVersioned.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise errors.Unsupported(f"a DLPack capsule of version {managed.major}, expected 0 or 1")
        tensor = managed.tensor
    else:
        tensor = DLTensor.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor"))
    name = _CODES.get(tensor.dtype.code)
    if name is None or tensor.dtype.lanes != 1:
        raise errors.InvalidArgument(f"a DLPack element type with code {tensor.dtype.code} and {tensor.dtype.lanes} lanes is not supported")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    return ForeignArray(tensor.device, tensor.ordinal, (tensor.data or 0) + tensor.byte_offset, shape,
                   dtypes.canonical(name if name == "bool" else f"{name}{tensor.dtype.bits}"), strides, (value, capsule))


def foreign_of(value: Any) -> ForeignArray:
    if hasattr(type(value), "__cuda_array_interface__"):
        return of_cuda_array_interface(value)
    if hasattr(type(value), "__dlpack__"):
        return of_dlpack(value)
    raise errors.InvalidArgument(f"a {type(value).__name__} has neither __cuda_array_interface__ nor __dlpack__")
