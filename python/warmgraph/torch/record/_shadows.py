"""Addresses for a second capture that need no memory: ranges that map one small piece of memory many times.

A capture reads no memory, so the ranges may share memory. No kernel may run on them.
"""
from __future__ import annotations

import ctypes
import secrets
from typing import Any, Sequence

import torch

from warmgraph import errors
from warmgraph.torch.read import _libraries

_PINNED, _ON_DEVICE, _READ_WRITE, _MINIMUM = 1, 1, 3, 0
_LEAST_CHUNK, _LARGEST_CHUNK = 2 << 20, 256 << 20  # bytes of the smallest and the largest piece of memory
_MAPPINGS = 64  # the approximate number of mappings that one shadow needs; each takes 25 us
_HIGH = 1 << 44  # the shadows' addresses begin here: a processor rarely uses addresses from here to 2^46 (backends/cuda/NOTES.md)
_WISHES = 32  # attempts to get a range at a chosen address; driver 580 grants nearly all multiples of 32 MiB, and no others
_HALVES = 1 << 32  # bytes with the same upper half of their addresses
_BEHIND_MULTIPLE = 32 << 20  # the least distance of memory from a multiple of _HALVES, and that of memory that the driver puts there later
_LOW = 512  # a shadow's address is equal to the original address modulo this number, so the alignment is the same


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _Properties(ctypes.Structure):
    """The driver's structure CUmemAllocationProp."""

    _fields_ = [("type", ctypes.c_int32), ("handle_types", ctypes.c_int32), ("location", _Location), ("metadata", ctypes.c_void_p),
                ("flags", ctypes.c_uint8 * 8)]


class _Access(ctypes.Structure):
    """The driver's structure CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", ctypes.c_int32)]


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_libraries.driver(), name)(*arguments)
    if status == 2:
        raise errors.OutOfMemory(f"{name}: out of device memory for capture addresses")
    if status != 0:
        raise errors.DriverFailed(f"{name} gave {status}")


class _Range:
    """A range of addresses in a form that torch.as_tensor accepts."""

    def __init__(self, pointer: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": (pointer, False), "version": 3}


class Shadows:
    """Reserves and maps the shadows. `storages`: for each range (pointer, bytes) a storage at a new address. The distances from the
    originals all differ. Requires a current CUDA context of `device`; making a tensor on the device makes a context."""

    def __init__(self, device: torch.device, ranges: Sequence[tuple[int, int]]) -> None:
        self._device = device.index or 0
        self._chunks: dict[int, ctypes.c_uint64] = {}
        self._mapped: list[tuple[int, int]] = []
        self._reserved, self._size = 0, 0
        self.storages: list[Any] = []
        self.pointers: list[int] = []
        with torch.cuda.device(device):
            self._unit = self._granularity()
            try:
                self._make(ranges)
            except BaseException:
                self.close()
                raise

    def _make(self, ranges: Sequence[tuple[int, int]]) -> None:
        chunks = [self._chunk(self._rounded(nbytes + _LOW)) for _, nbytes in ranges]
        # A mapping is as large as its chunk: the driver refuses to map a part of one (error 801 on an H200).
        whole = [(nbytes + _LOW + chunk - 1) // chunk * chunk for (_, nbytes), (chunk, _) in zip(ranges, chunks)]
        # As much again for ranges that are moved behind a multiple of 4 GiB.
        self._size = 2 * sum(whole) + 16 * self._unit * (len(ranges) + 1) + 2 * _HALVES
        self._reserved = self._reserve()
        distances: set[int] = set()
        at = self._reserved + self._unit
        for count, ((pointer, nbytes), size, (chunk, handle)) in enumerate(zip(ranges, whole, chunks)):
            low = pointer % _LOW
            at = self._apart(at, size)
            # Words of a small number and an old upper half of an address move by multiples of _HALVES, and must not look like addresses here.
            while at + low - pointer in distances or (at + low - pointer) % _HALVES == 0:
                at += self._unit
            distances.add(at + low - pointer)
            self._map(at, size, chunk, handle)
            self.pointers.append(at + low)
            self.storages.append(torch.as_tensor(_Range(at + low, nbytes), device=f"cuda:{self._device}").untyped_storage())
            at += size + self._unit * (1 + count % 7)

    def _apart(self, start: int, size: int) -> int:
        """Moves a range that would contain a multiple of 4 GiB behind it. Parameters of kernels contain small numbers beside old upper halves of
        addresses, and so such a word is not an address in the range."""
        multiple = (start + _HALVES - 1) // _HALVES * _HALVES
        is_there = size <= _HALVES and multiple < start + size
        return multiple + _BEHIND_MULTIPLE if is_there else start

    def _reserve(self) -> int:
        """Reserves high addresses. Near the driver's own first addresses (0x302000000), two small neighbouring numbers could look like an
        address."""
        random = secrets.SystemRandom()
        for _ in range(_WISHES):
            wish = random.randrange(_HIGH, 4 * _HIGH - self._size, _HALVES) + _BEHIND_MULTIPLE
            start = self._reserve_at(wish)
            if start >= _HIGH:
                return start
            _libraries.driver().cuMemAddressFree(ctypes.c_uint64(start), ctypes.c_size_t(self._size))
        return self._reserve_at(0)

    def _reserve_at(self, wish: int) -> int:
        start = ctypes.c_uint64()
        _call("cuMemAddressReserve", ctypes.byref(start), ctypes.c_size_t(self._size), ctypes.c_size_t(0), ctypes.c_uint64(wish), ctypes.c_uint64(0))
        return start.value

    def _rounded(self, nbytes: int) -> int:
        return (nbytes + self._unit - 1) // self._unit * self._unit

    def _properties(self) -> _Properties:
        return _Properties(_PINNED, 0, _Location(_ON_DEVICE, self._device), None)

    def _granularity(self) -> int:
        unit = ctypes.c_size_t()
        properties = self._properties()
        _call("cuMemGetAllocationGranularity", ctypes.byref(unit), ctypes.byref(properties), _MINIMUM)
        return max(unit.value, 4096)

    def _chunk(self, wanted: int) -> tuple[int, ctypes.c_uint64]:
        """Makes a piece of memory of at most `wanted` bytes. Returns (bytes, handle)."""
        size = self._rounded(min(max(1 << max(wanted // _MAPPINGS, 1).bit_length() - 1, _LEAST_CHUNK), _LARGEST_CHUNK))
        while size not in self._chunks:
            handle, properties = ctypes.c_uint64(), self._properties()
            try:
                _call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(properties), ctypes.c_uint64(0))
            except errors.OutOfMemory:
                if size <= self._unit:
                    raise
                size = self._rounded(size // 2)
                continue
            self._chunks[size] = handle
        return size, self._chunks[size]

    def _map(self, start: int, size: int, chunk: int, handle: ctypes.c_uint64) -> None:
        for at in range(start, start + size, chunk):
            _call("cuMemMap", ctypes.c_uint64(at), ctypes.c_size_t(chunk), ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
            self._mapped.append((at, chunk))
        access = _Access(_Location(_ON_DEVICE, self._device), _READ_WRITE)
        _call("cuMemSetAccess", ctypes.c_uint64(start), ctypes.c_size_t(size), ctypes.byref(access), ctypes.c_size_t(1))

    @property
    def nbytes(self) -> int:
        """The device memory that the shadows take."""
        return sum(self._chunks)

    def close(self) -> None:
        """Frees the addresses, which must no longer be used."""
        self.storages.clear()
        cuda = _libraries.driver()
        for start, size in self._mapped:
            cuda.cuMemUnmap(ctypes.c_uint64(start), ctypes.c_size_t(size))
        for handle in self._chunks.values():
            cuda.cuMemRelease(handle)
        if self._reserved:
            cuda.cuMemAddressFree(ctypes.c_uint64(self._reserved), ctypes.c_size_t(self._size))
        self._mapped, self._reserved = [], 0
        self._chunks.clear()
