"""Makes a copy of a graph that copies its results at the end. The original graph is not changed."""
from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Sequence

from warmgraph import errors
from warmgraph.torch.read import _libraries

_DEVICE_MEMORY = 2  # CU_MEMORYTYPE_DEVICE


class Copy(NamedTuple):
    source: int
    target: int
    nbytes: int


class _Side(ctypes.Structure):
    _fields_ = [("x", ctypes.c_size_t), ("y", ctypes.c_size_t), ("z", ctypes.c_size_t), ("level", ctypes.c_size_t), ("kind", ctypes.c_int),
                ("host", ctypes.c_void_p), ("device", ctypes.c_uint64), ("array", ctypes.c_void_p), ("reserved", ctypes.c_void_p),
                ("pitch", ctypes.c_size_t), ("height", ctypes.c_size_t)]


class _Memcpy3D(ctypes.Structure):
    """The structure CUDA_MEMCPY3D (https://docs.nvidia.com/cuda/cuda-driver-api/structCUDA__MEMCPY3D__v2.html)."""

    _fields_ = [("source", _Side), ("target", _Side), ("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]


class CopiedGraph:
    """`native`: a CUgraph with the nodes of another graph, followed by the copies of its results. It belongs to the current context."""

    def __init__(self, graph: int, copies: Sequence[Copy]) -> None:
        self._driver, handle = _libraries.driver(), ctypes.c_void_p()
        self._expect_ok("cuGraphClone", self._driver.cuGraphClone(ctypes.byref(handle), ctypes.c_void_p(graph)))
        self.native = handle.value or 0
        try:
            self._add(copies)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        native, self.native = self.native, 0
        if native:
            self._driver.cuGraphDestroy(ctypes.c_void_p(native))

    def _add(self, copies: Sequence[Copy]) -> None:
        last = self._last_nodes()
        context = ctypes.c_void_p()
        self._expect_ok("cuCtxGetCurrent", self._driver.cuCtxGetCurrent(ctypes.byref(context)))
        for one in copies:
            node = ctypes.c_void_p()
            sides = (_Side(kind=_DEVICE_MEMORY, device=at, pitch=one.nbytes, height=1) for at in (one.source, one.target))
            raw = _Memcpy3D(*sides, one.nbytes, 1, 1)
            self._expect_ok("cuGraphAddMemcpyNode", self._driver.cuGraphAddMemcpyNode(
                ctypes.byref(node), ctypes.c_void_p(self.native), last, ctypes.c_size_t(len(last)), ctypes.byref(raw), context))

    def _last_nodes(self) -> Any:
        """The nodes without successors."""
        count, handle = ctypes.c_size_t(), ctypes.c_void_p(self.native)
        self._expect_ok("cuGraphGetNodes", self._driver.cuGraphGetNodes(handle, None, ctypes.byref(count)))
        nodes = (ctypes.c_void_p * count.value)()
        self._expect_ok("cuGraphGetNodes", self._driver.cuGraphGetNodes(handle, nodes, ctypes.byref(count)))
        found = [one for one in nodes if self._count_of_dependent(one) == 0]
        return (ctypes.c_void_p * len(found))(*found)

    def _count_of_dependent(self, node: int | None) -> int:
        count, handle = ctypes.c_size_t(), ctypes.c_void_p(node)
        if hasattr(self._driver, "cuGraphNodeGetDependentNodes_v2"):  # the first version of the function fails for edges with data
            status = self._driver.cuGraphNodeGetDependentNodes_v2(handle, None, None, ctypes.byref(count))
        else:
            status = self._driver.cuGraphNodeGetDependentNodes(handle, None, ctypes.byref(count))
        self._expect_ok("cuGraphNodeGetDependentNodes", status)
        return count.value

    @staticmethod
    def _expect_ok(name: str, status: int) -> None:
        if status != 0:
            raise errors.NotRecordable(f"the graph cannot be copied: {name} failed with CUresult {status}")
