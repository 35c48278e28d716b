"""The library reads PyTorch's tensors through PyTorch's own C functions. DLPack must give the same results."""
from __future__ import annotations

import ctypes
import itertools
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

from hypothesis import given, strategies  # noqa: E402
from warmgraph.core.binding import _c  # noqa: E402
from warmgraph.core.binding._library import library  # noqa: E402
from warmgraph.reading import _native_snapshots  # noqa: E402
from warmgraph.torch.read import _native_tensors  # noqa: E402

EXCHANGE = _native_snapshots.exchange_of(torch.Tensor)
if EXCHANGE is None:
    pytest.skip("this PyTorch or Python has no table of DLPack's", allow_module_level=True)


def own() -> int:
    framework = _native_tensors.framework()
    assert framework is not None and framework.knows_grad, f"PyTorch {torch.__version__} is read through DLPack"
    return framework.read


def described(read: int, tensor: Any) -> Any:
    return _native_snapshots.Tensors(read, [tensor]).described()


def test_this_pytorch_is_read_by_its_own_functions():
    assert own() != EXCHANGE


@given(strategies.lists(strategies.integers(0, 3), max_size=7), strategies.randoms(use_true_random=False), strategies.sampled_from(sorted(_native_tensors._TYPES)))
def test_both_say_the_same(sizes, random, name):
    made = torch.zeros([2 * size for size in sizes], dtype=getattr(torch, name))
    for dimension, size in enumerate(sizes):
        made = made.narrow(dimension, random.randrange(size + 1), size)
    made = made.permute(random.sample(range(made.dim()), made.dim()))
    assert described(own(), made) == described(EXCHANGE, made)
    if made.numel():
        assert described(own(), made)[0][-1] == made.data_ptr()


def test_the_bytes_of_a_tensor_say_what_it_looks_like():
    assert _native_tensors.telling_bytes() in _native_tensors._BODIES
    for tensor, change in _native_tensors._changes():
        before = ctypes.string_at(tensor._cdata, _native_tensors.telling_bytes())
        change()
        assert ctypes.string_at(tensor._cdata, _native_tensors.telling_bytes()) != before, change


@pytest.mark.parametrize("change", [lambda: None, lambda: int("none"), lambda: torch.zeros(2) @ torch.zeros(3)])
def test_bytes_that_show_no_change_are_not_gone_by(monkeypatch, change):
    changes = _native_tensors._changes
    monkeypatch.setattr(_native_tensors, "_changes", lambda: [*changes(), (torch.zeros(2), change)])
    assert _native_tensors.telling_bytes.__wrapped__() == 0


class Sub(torch.Tensor):
    pass


@pytest.mark.parametrize("make", [lambda: torch.zeros(2).as_subclass(Sub), lambda: torch.nn.Buffer(torch.zeros(2)), lambda: torch.zeros(2, dtype=torch.uint8).view(torch.bool)])
def test_other_classes_are_read_too(make):
    made = make()
    assert described(own(), made) == described(EXCHANGE, made)


@pytest.mark.parametrize("make", [lambda: torch.zeros(2, 2).to_sparse(), lambda: torch.zeros(2, device="meta"), lambda: torch.zeros(2, dtype=torch.complex32),
                                  lambda: torch.zeros(2, dtype=torch.float8_e5m2), lambda: torch.quantize_per_tensor(torch.zeros(2), 1.0, 0, torch.qint8)])
def test_what_they_cannot_say_is_dlpacks_to_say(make, capfd):
    def said(read: int) -> Any:
        try:
            return described(read, make())[0][:-1]
        except Exception as error:
            return type(error)

    assert said(own()) == said(EXCHANGE)
    assert "Exception in" not in capfd.readouterr().err  # PyTorch's functions would print the errors that they raise


CHANGES: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda one: one.t_(), "viewed otherwise": lambda one: setattr(one, "data", one.data.view(8, 2)), "resized": lambda one: one.resize_(2, 4),
    "other memory": lambda one: setattr(one, "data", one.data.clone()), "set": lambda one: one.set_(torch.zeros(4, 4)), "another dimension": lambda one: one.unsqueeze_(0),
    "another type": lambda one: setattr(one, "data", one.data.view(torch.int32)),
    "swapped": lambda one: torch.utils.swap_tensors(one, torch.zeros(4, 4)),
    "swapped for a view": lambda one: torch.utils.swap_tensors(one, one.detach().t()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_tensor_that_is_changed_in_place_does_not_look_as_it_did(change):
    one = torch.randn(4, 4)
    looks = [_native_snapshots.Tensors(read, [one]) for read in (own(), EXCHANGE)]
    assert [look.are_there() for look in looks] == [True, True]
    CHANGES[change](one)
    assert [look.are_there() for look in looks] == [False, False]


@pytest.mark.parametrize("asks,is_leaf", list(itertools.product((False, True), repeat=2)))
def test_whether_a_tensor_requires_grad_is_known(asks, is_leaf):
    with torch.enable_grad():
        one = torch.zeros(2, requires_grad=asks)
        one = one if is_leaf else one * 2
    raw = _native_tensors._functions(EXCHANGE)
    assert bool(raw.requires_grad(one._cdata)) == one.requires_grad == asks


def refused(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> str:
    _native_tensors._own.cache_clear()
    try:
        with caplog.at_level("DEBUG", "warmgraph"):
            framework = _native_tensors.framework()
    finally:
        monkeypatch.undo()
        _native_tensors._own.cache_clear()
        own()  # the library uses this from now on
    assert framework is not None and framework.read == EXCHANGE and not framework.knows_grad
    return caplog.text


def test_a_pytorch_that_says_something_else_is_read_through_dlpack(monkeypatch, caplog):
    monkeypatch.setitem(_native_tensors._TYPES, "bfloat16", (2, 16))
    assert "DLPack reports" in refused(monkeypatch, caplog)


def test_a_pytorch_without_these_functions_is_read_through_dlpack(monkeypatch, caplog):
    monkeypatch.setattr(_native_tensors, "_FUNCTIONS", (*_native_tensors._FUNCTIONS, "get_nothing"))
    assert "through DLPack" in refused(monkeypatch, caplog)


def test_a_pytorch_that_keeps_its_tensors_elsewhere_is_read_through_dlpack(monkeypatch, caplog):
    def moved() -> int:
        raise ValueError("a tensor's own pointer is found 2 times")

    monkeypatch.setattr(_native_tensors, "_place_in_object", moved)
    assert "found 2 times" in refused(monkeypatch, caplog)


def test_objects_of_other_classes_are_never_read_as_tensors():
    found = (ctypes.c_uint8 * 64)()
    asked: list[Any] = []
    otherwise = _c.wg_dltensor_reader(lambda value, dltensor: asked.append(value) or 7)
    raw = _native_tensors._functions(EXCHANGE)
    raw.otherwise = otherwise
    held = library().with_lock()
    held.wg_use_torch_tensors(ctypes.byref(raw))
    try:
        for value in (object(), torch.zeros(2).as_subclass(Sub)):
            assert held.wg_read_torch_tensor(ctypes.c_void_p(id(value)), ctypes.byref(found)) == 7 and asked.pop() == id(value)
        assert held.wg_read_torch_tensor(ctypes.c_void_p(id(value := torch.zeros(2))), ctypes.byref(found)) == 0 and not asked
    finally:
        _native_tensors._own.cache_clear()
        own()
