"""Tests device arrays against NumPy's arrays, and the use of other libraries' memory."""
from __future__ import annotations

import ctypes

import numpy
import pytest
from hypothesis import given, settings, strategies as st

import warmgraph
from warmgraph import InvalidArgument, dtypes
from warmgraph.arrays import _foreign_arrays
from warmgraph.core.binding import _library


@pytest.mark.parametrize("dtype", [name for name in dtypes.CODES if name != "bf16"])
def test_contents_go_there_and_back(device, dtype):
    values = (numpy.arange(24) % 2).astype(dtypes.numpy_dtype(dtype)).reshape(2, 3, 4)
    array = device.array(values)
    assert (array.dtype, array.shape, array.nbytes) == (dtype, (2, 3, 4), values.nbytes)
    numpy.testing.assert_array_equal(array.numpy(), values)
    array.write(1 - values.astype(numpy.int64))
    numpy.testing.assert_array_equal(array.numpy(), (1 - values.astype(numpy.int64)).astype(values.dtype))


@st.composite
def shapes_and_keys(draw):
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    key = [draw(st.integers(-size, size - 1) | st.builds(slice, st.integers(-6, 6), st.integers(-6, 6), st.integers(1, 3)) if size else
                st.just(slice(None))) for size in shape]
    return shape, tuple(key[:draw(st.integers(0, len(key)))])


@given(shapes_and_keys())
@settings(deadline=None)
def test_views_are_numpys(case):
    shape, key = case
    device = warmgraph.Device("opencl")
    values = numpy.arange(numpy.prod(shape), dtype=numpy.int32).reshape(shape)
    view, expected = device.array(values)[key], values[key]
    numpy.testing.assert_array_equal(view.numpy(), expected)
    assert view.shape == expected.shape
    if expected.size:
        assert [stride * 4 for stride, size in zip(view.strides, view.shape) if size > 1] == \
            [stride for stride, size in zip(expected.strides, expected.shape) if size > 1]
    assert view.extent <= values.nbytes


def test_arrays_without_dimensions(device):
    array = device.array(numpy.float32(3))
    assert array.shape == () and array.numpy() == 3 and array.nbytes == 4
    with pytest.raises(TypeError):
        len(array)


def test_views_share_memory(device):
    array = device.zeros((4, 4), "f32")
    array[1].write(numpy.ones(4))
    array[2:, ][1].write(numpy.full(4, 2))
    assert array.numpy().sum(axis=1).tolist() == [0, 4, 0, 8]
    assert array.reshape(2, -1).shape == (2, 8) and array[..., 1].shape == (4,)


def test_wrong_views_and_shapes_say_what_is_wrong(device):
    array = device.zeros((4, 4), "f32")
    for wrong, kind in [(lambda: array[4], IndexError), (lambda: array[::-1], IndexError), (lambda: array[0, 0, 0], IndexError),
                        (lambda: array.reshape(3), InvalidArgument), (lambda: array[:, 1].reshape(4, 1), InvalidArgument),
                        (lambda: array.write(numpy.zeros(4)), InvalidArgument), (lambda: array[:, 1].write(numpy.zeros(4)), InvalidArgument),
                        (lambda: device.empty(-1, "f32"), InvalidArgument), (lambda: device.array(numpy.zeros(2, complex)), InvalidArgument),
                        (lambda: device.array(numpy.zeros(2, ">f4")), InvalidArgument)]:
        with pytest.raises(kind):
            wrong()


def test_memory_is_given_back(device, monkeypatch):
    lib, freed = _library.library(), []
    destroy = lib.wg_buffer_destroy
    monkeypatch.setattr(lib, "wg_buffer_destroy", lambda buffer: (freed.append(buffer), destroy(buffer)))
    for _ in range(20):
        device.empty(1 << 20, "u8")
    device.empty(1, "u8")
    assert len(freed) >= 20
    with pytest.raises(warmgraph.Error):
        device.empty(1 << 60, "u8")


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "float16"])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[1:, ::2], lambda x: x.T])
def test_dlpack_says_where_memory_is(dtype, view):
    values = view(numpy.zeros((4, 6), dtype))
    found = _foreign_arrays.of_dlpack(values)
    assert (found.device, found.pointer, found.shape) == (_foreign_arrays.HOST, values.ctypes.data, values.shape)
    assert found.dtype == dtypes.canonical(dtype)
    strides = found.strides or tuple(stride // values.itemsize for stride in values.strides)
    assert strides == tuple(stride // values.itemsize for stride in values.strides)


class OnCuda:
    def __init__(self, **more):
        self.__dict__["given"] = {"shape": (2, 3), "typestr": "<f4", "data": (0x7F0000001000, False), "version": 3, **more}

    @property
    def __cuda_array_interface__(self):
        return self.given


def test_cuda_array_interface_says_where_memory_is():
    found = _foreign_arrays.of_cuda_array_interface(OnCuda(strides=(4, 8)))
    assert (found.pointer, found.shape, found.dtype, found.strides) == (0x7F0000001000, (2, 3), "f32", (1, 2))
    assert _foreign_arrays.of_cuda_array_interface(OnCuda()).strides is None
    with pytest.raises(InvalidArgument, match="not multiples of 4 bytes"):
        _foreign_arrays.of_cuda_array_interface(OnCuda(strides=(6, 2)))


def test_memory_of_another_device_is_refused(device):
    with pytest.raises(InvalidArgument, match="cannot be viewed on opencl:0: copy it"):
        device.view(OnCuda())
    with pytest.raises(InvalidArgument, match="neither"):
        device.view(3)


def test_kernels_take_numbers_that_have_a_size(device, program):
    x, y = device.array(numpy.arange(64, dtype=numpy.float32)), device.zeros(64, "f32")
    for factor in (numpy.float32(2), ctypes.c_float(2)):
        program.launch("scale", 4, 16, x, y, factor)
        numpy.testing.assert_array_equal(y.numpy(), 2 * x.numpy())
    for wrong, message in [(2.0, "a number that has a size"), (x.numpy(), "copy host arrays first")]:
        with pytest.raises(InvalidArgument, match=message):
            program.launch("scale", 4, 16, x, y, wrong)
    with pytest.raises(InvalidArgument, match="sizes of at least 1"):
        program.launch("scale", 0, 16, x, y, numpy.float32(2))
    with pytest.raises(InvalidArgument, match="its kernels: scale, add"):
        program.launch("no_such_kernel", 4, 16, x)


def test_a_compile_error_has_the_log(device):
    broken = device.program("broken", "__kernel void k(__global float* x) { x[0] = nothing; }")
    with pytest.raises(warmgraph.CompileFailed, match="nothing"):
        broken.launch("k", 1, 1, device.zeros(1, "f32"))


def test_what_is_closed_says_so():
    device = warmgraph.Device("opencl")
    program = device.program("p", "__kernel void k(__global float* x) { x[0] = 1; }")
    array = device.zeros(1, "f32")
    program.close()
    with pytest.raises(InvalidArgument, match="this program is closed"):
        program.launch("k", 1, 1, array)
    device.close()
    device.close()
    with pytest.raises(InvalidArgument, match="this device is closed"):
        array.numpy()
    with pytest.raises(warmgraph.NotFound, match="opencl:0"):
        warmgraph.Device("opencl:none of this name")
