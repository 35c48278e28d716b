"""Functions are served without their code: with the metadata of an entry, states by name, and a choice among entries."""
from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

import warmgraph as wg
from conftest import COUNT, KERNELS, PRELUDE
from warmgraph import errors

TORCH = "warmgraph.torch"
RECORD = """
class Model:
    def __init__(self):
        self.program = program
        self.weights = device.array(np.arange(64), "f32")
        self.total = device.zeros(64, "f32")
        self.step = wg.cache_compile(self.forward, outputs=lambda x, factor: {"y": wg.like(x), "n": wg.Tensor(x.shape, "i32")},
                                     scalars={"factor": wg.Scalar("f32", -100, 100)}, read_only=["self.weights"],
                                     config=wg.Config(model="toy"), name="step")
    def forward(self, x, factor):
        y, n = wg.empty_like(x), wg.empty(x.shape, "i32")
        self.program.launch("add", 4, 16, self.total, x)
        self.program.launch("add", 4, 16, self.total, self.weights)
        self.program.launch("scale", 4, 16, self.total, y, factor)
        wg.fill(n, 7)
        return {"y": y, "n": n}
model = Model()
model.step(x, 2.0)
print(model.step.report().outcome)
"""
SERVE = f"""
import sys
class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("no torch here")
sys.meta_path.insert(0, Forbidden())
import numpy as np
import warmgraph as wg
x = np.arange({COUNT}, dtype=np.float32)
device = wg.Device("opencl")
"""


@pytest.fixture
def recorded(process):
    assert process(RECORD).lines() == ["recorded"]


def server(device: wg.Device, weights: Any = None, **options: Any) -> wg.Server:
    return wg.Server("toy", device=device, weights=weights, **options)


def given(device: wg.Device) -> dict[str, Any]:
    return {"self.weights": np.full(COUNT, 10, np.float32), "self.total": device.zeros(COUNT, "f32")}


X = np.arange(COUNT, dtype=np.float32)


def test_a_process_without_the_code_serves_what_another_recorded(recorded, process):
    ended = process(SERVE + """
served = wg.Server("toy", device=device, weights={"self.weights": np.full(64, 10, np.float32), "self.total": device.zeros(64, "f32")})
step = served.function("step")
for round in (1, 2):
    got = step(x=x, factor=3.0)
    assert sorted(got) == ["return.n", "return.y"], got
    assert (got["return.y"] == round * (x + 10) * 3).all() and (got["return.n"] == 7).all()
assert (served.state("self.total").numpy() == 2 * (x + 10)).all()
print(step.report().outcome, "torch" in sys.modules)
""", bare=True)
    assert ended.lines() == ["replayed False"]


def test_an_entry_tells_what_it_takes_and_gives(recorded, device):
    step = server(device).function("step")
    assert step.inputs == {"x": wg.Tensor(COUNT, "f32")}
    assert step.outputs == {"return.y": wg.Tensor(COUNT, "f32"), "return.n": wg.Tensor(COUNT, "i32")}
    assert step.states == {"self.weights": wg.Tensor(COUNT, "f32"), "self.total": wg.Tensor(COUNT, "f32")}
    (entry,) = step.entries
    assert entry.scalars == {"factor": wg.Scalar("f32", -100, 100)}
    assert {state.name: state.is_read_only for state in entry.states} == {"self.weights": True, "self.total": False}
    assert "program.kernels" in entry.recorded_code and entry.recorded.startswith("20") and not entry.misfit


def test_device_arrays_are_not_copied_and_outputs_may_be_the_callers(recorded, device):
    step = server(device, given(device)).function("step")
    out = device.empty(COUNT, "f32")
    got = step({"x": device.array(X), "factor": np.float32(2)}, out={"return.y": out})
    assert got["return.y"]._address == out._address and isinstance(got["return.n"], wg.Array)
    assert (out.numpy() == (X + 10) * 2).all()
    again = step(x=device.array(X), factor=2.0)
    assert again["return.y"]._address != out._address and (again["return.y"].numpy() == (X + 10) * 4).all()


def test_functions_of_a_server_share_their_states(recorded, device, process):
    process(RECORD.replace('name="step"', 'name="other"')).lines()
    served = server(device, given(device))
    served.function("step")(x=X, factor=1.0)
    got = served.function("other")(x=X, factor=1.0)
    assert (got["return.y"] == 2 * (X + 10)).all()


def test_a_state_can_be_moved(recorded, device):
    served = server(device, given(device))
    step = served.function("step")
    step(x=X, factor=1.0)
    served.bind("self.total", device.array(np.full(COUNT, 1000), "f32"))
    assert (step(x=X, factor=1.0)["return.y"] == 1000 + X + 10).all()
    with pytest.raises(errors.InvalidArgument, match="did you mean 'self.total'"):
        served.bind("self.totals", device.zeros(COUNT, "f32"))
    with pytest.raises(errors.InvalidArgument, match=r"f32\[3\], expected f32\[64\]"):
        served.bind("self.total", device.zeros(3, "f32"))


@pytest.mark.parametrize(("inputs", "message"), [
    ({"x": X}, "'factor' is missing"),
    ({"x": X, "factor": 1.0, "y": X}, "it takes no 'y'"),
    ({"factors": 1.0, "x": X, "factor": 1.0}, "did you mean 'factor'"),
    ({"x": X[:32], "factor": 1.0}, r"x is f32\[32\], expected f32\[64\]"),
    ({"x": X.astype(np.float64), "factor": 1.0}, r"x is f64\[64\], expected f32\[64\]"),
    ({"x": 3.0, "factor": 1.0}, "x is a float, expected an array"),
    ({"x": X, "factor": X}, "factor is an array, expected a number"),
    ({"x": X, "factor": 101.0}, r"outside its declared range \[-100, 100\]"),
])
def test_a_call_that_the_entry_does_not_take_says_what_differs(recorded, device, inputs, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        server(device, given(device)).function("step")(inputs)


def test_device_arrays_lie_as_they_were_recorded(recorded, device):
    wide = device.array(np.zeros((COUNT, 2)), "f32")
    with pytest.raises(errors.InvalidArgument, match=r"strides \[2\] on the device, expected \[1\]"):
        server(device, given(device)).function("step")(x=wide[:, 0], factor=1.0)
    with pytest.raises(errors.InvalidArgument, match="has no output 'y', it has return"):
        server(device, given(device)).function("step")(x=X, factor=1.0, out={"y": wide})


@pytest.mark.parametrize("name", ["self.weights", "self.total"])
def test_a_state_that_nobody_gives_is_named(recorded, device, name):
    weights = given(device)
    del weights[name]
    with pytest.raises(errors.InvalidArgument, match=f"the state {name} f32.*is missing.*under the name '{name}'"):
        server(device, weights).function("step")(x=X, factor=1.0)


def test_weights_that_do_not_fit_are_refused(recorded, device):
    for wrong, message in ((np.zeros(3, np.float32), r"f32\[3\], expected f32\[64\]"), (np.zeros(COUNT), "is f64"), ("text", "is a str")):
        with pytest.raises(errors.InvalidArgument, match=message):
            server(device, {**given(device), "self.weights": wrong}).function("step")(x=X, factor=1.0)


def test_what_is_not_there_is_said(recorded, device, tmp_path):
    with pytest.raises(errors.NotFound, match="no entry of 'stop' of the model 'toy'"):
        server(device).function("stop")
    with pytest.raises(errors.NotFound, match="of the model 'another'"):
        wg.Server("another", device=device).function("step")
    with pytest.raises(errors.NotFound, match="policy off"):
        server(device, config=wg.Config(policy="off")).function("step")
    with pytest.raises(errors.InvalidArgument, match="model="):
        wg.Server(device=device)
    with pytest.raises(errors.InvalidArgument, match="__cuda_stream__"):
        server(device, given(device)).function("step")(x=X, factor=1.0, stream=3)


def test_a_stream_of_another_library_is_asked_for_its_handle(recorded, device):
    class Stream:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, 4096)

    class Later(Stream):
        __cuda_stream__ = (1, 4096)  # type: ignore[assignment]

    with pytest.raises(errors.Unsupported, match="opencl"):  # OpenCL has no such streams: the error proves that the stream is used
        server(device, given(device)).function("step")(x=X, factor=1.0, stream=Stream())
    with pytest.raises(errors.Unsupported, match="version 1, expected 0"):
        server(device, given(device)).function("step")(x=X, factor=1.0, stream=Later())


def test_an_entry_of_another_driver_is_stale(recorded, device, monkeypatch):
    listed = wg.Cache.entries

    def misfit(self: Any, *arguments: Any) -> Any:
        return [{**one, "misfit": "driver.version 1 recorded, 2 now"} for one in listed(self, *arguments)]

    monkeypatch.setattr(wg.Cache, "entries", misfit)
    with pytest.raises(errors.Stale, match="driver.version 1 recorded, 2 now"):
        server(device).function("step")


SHAPES = """
def grown(x, amount=3):
    y = wg.empty_like(x)
    program.launch("scale", x.size // 16, 16, x, y, np.float32(amount))
    return y
cached = wg.cache_compile(grown, outputs=lambda x, amount: wg.like(x), config=wg.Config(model="toy"), name="grown")
"""


def test_entries_are_chosen_by_the_inputs_shapes(process, device):
    process(SHAPES + "cached(x); cached(x[:32])").lines()
    grown = server(device).function("grown")
    assert len(grown.entries) == 2
    assert (grown(x=X)["return"] == X * 3).all() and (grown(x=X[:32])["return"] == X[:32] * 3).all()
    with pytest.raises(errors.InvalidArgument, match=r"no entry of 'grown' takes these inputs: .*x is f32\[16\], expected f32\[32\]"):
        grown(x=X[:16])
    with pytest.raises(errors.InvalidArgument, match="2 entries of 'grown' differ in their inputs"):
        grown.inputs


def test_entries_that_differ_in_other_facts_are_chosen_by_name(process, device):
    process(SHAPES + "cached(x); cached(x, amount=4)").lines()
    served = server(device)
    with pytest.raises(errors.InvalidArgument, match="differ in amount"):
        served.function("grown")(x=X)
    results = {float(served.function("grown", entry.digest[:12])(x=X)["return"][1]) for entry in served.function("grown").entries}
    assert results == {3.0, 4.0}


def test_an_input_that_the_function_writes_is_written(process, device):
    process("""
@wg.cache_compile(config=wg.Config(model="toy"))
def accumulate(total, x):
    program.launch("add", 4, 16, total, x)
accumulate(np.zeros(64, np.float32), x)
""").lines()
    total = np.ones(COUNT, np.float32)
    assert server(device).function("accumulate")(total=total, x=X) == {}
    assert (total == X + 1).all()


def test_host_arrays_are_laid_out_as_recorded(process, device):
    process("""
@wg.cache_compile(outputs=wg.Tensor(64, "f32"), config=wg.Config(model="toy"))
def column(x):
    y = wg.empty(64, "f32")
    program.launch("gather", 4, 16, x, y, np.int32(2))
    return y
wide = device.array(np.arange(128).reshape(64, 2), "f32")
column(wide[:, 0])
""").lines()
    column = server(device).function("column")
    assert column.entries[0].inputs[0].strides == (2,)
    assert (column(x=X)["return"] == X).all()


# --- Metadata that PyTorch adds


def with_metadata(device: wg.Device, program: wg.Program, metadata: str, name: str = "f") -> Any:
    """Records a function "kept += x, y = kept". Its state is one range of memory."""
    memory = device.zeros(COUNT, "f32")

    def body(run: Any) -> None:
        def region(name: str) -> wg.Array:
            at = run.address(name)
            array = wg.Array(device, None, (at.base, at.offset), (COUNT,), "f32")
            array._run = run
            return array

        program.launch("add", 4, 16, region("kept"), region("x"))
        wg.copy(region("y"), region("kept"))

    spec = wg.Spec({"x": wg.Tensor(COUNT, "f32")}, {"y": wg.Tensor(COUNT, "f32")}, {"kept": memory}, code=[program], version="1",
                   metadata=metadata)
    cache = wg.Cache("toy", dynamic=True)
    outcome = cache.wrap(name, device, spec, body)({"x": device.array(X), "y": device.empty(COUNT, "f32")})
    assert outcome == "recorded"


def torchs(**members: Any) -> str:
    return json.dumps({TORCH: 1, "result": {"output": 0}, "draws": 0, "outputs": [], "written": [], "aligned": {}, **members})


def test_a_state_is_given_by_the_names_of_the_tensors_in_it(device, program):
    parts = {"kept": [["a.weight", 0, "f32", [4, 8], [8, 1]], ["a.tied", 0, "f32", [4, 8], [8, 1]], ["b", 128, "f32", [8, 4], [1, 8]]]}
    with_metadata(device, program, torchs(aliases=parts))
    a, b = np.arange(32, dtype=np.float32).reshape(4, 8), np.arange(32, dtype=np.float32).reshape(8, 4) + 100
    expected = np.concatenate([a.ravel(), b.T.ravel()])
    for names in ({"a.weight": a, "b": b}, {"a.tied": a, "b": b, "unused": a}, {"kept": expected}, {"kept": device.array(expected)},
                  {"a.weight": device.array(a), "b": b}):
        served = server(device, names)
        assert (served.function("f")(x=np.zeros(COUNT, np.float32))["y"] == expected).all(), names
    assert (served.state("b").numpy() == b).all() and (served.state("a.tied").numpy() == a).all()
    with pytest.raises(errors.InvalidArgument, match=r"the state b f32\[8, 4\] is missing.*'b'"):
        server(device, {"a.weight": a}).function("f")(x=X)
    with pytest.raises(errors.InvalidArgument, match=r"state a.weight f32.*'a.tied' or 'a.weight'"):
        server(device, {"b": b}).function("f")(x=X)
    with pytest.raises(errors.InvalidArgument, match="a part of the state"):
        served.bind("b", device.zeros((8, 4), "f32"))


def test_contents_that_the_entry_carries_are_used_and_can_be_replaced(device, program):
    carried = base64.b64encode((X * 2).tobytes()).decode()
    with_metadata(device, program, torchs(contents={"kept": carried}))
    zeros = np.zeros(COUNT, np.float32)
    assert (server(device).function("f")(x=zeros)["y"] == X * 2).all()
    assert (server(device, {"kept": X}).function("f")(x=zeros)["y"] == X).all()


def test_a_state_that_the_function_writes_starts_as_zeros(device, program):
    with_metadata(device, program, torchs(written=["kept"]))
    f = server(device).function("f")
    assert [float(f(x=X)["y"][1]) for _ in range(3)] == [1.0, 2.0, 3.0]


def test_metadata_without_the_newer_members_is_read(device, program):
    with_metadata(device, program, torchs())
    with pytest.raises(errors.InvalidArgument, match="the state kept .*is missing"):
        server(device).function("f")(x=X)


def test_metadata_of_somebody_elses_is_left_alone(device, program):
    with_metadata(device, program, '{"notes": "mine"}')
    assert (server(device, {"kept": X}).function("f")(x=X)["y"] == 2 * X).all()


@pytest.mark.parametrize("metadata", [
    '{"warmgraph.torch": 1, "result"', torchs(written=3), torchs(aliases={"kept": [["a"]]}), torchs(aliases={"kept": [["a", -4, "f32", [1], [1]]]}),
    torchs(aliases={"kept": [["a", 0, "f32", [COUNT + 1], [1]]]}), torchs(aliases={"kept": [["a", 0, "f33", [1], [1]]]}),
    torchs(aliases=[1]), torchs(contents={"kept": "AAAA"}), torchs(contents={"kept": "?"}), torchs(contents={"kept": 7}), torchs(draws="x"),
])
def test_damaged_metadata_is_said(device, program, metadata):
    with_metadata(device, program, metadata)
    with pytest.raises((errors.Corrupt), match="record the function again"):
        server(device).function("f")


def test_metadata_of_another_version_is_stale(device, program):
    with_metadata(device, program, torchs(**{TORCH: 2}))
    with pytest.raises(errors.Stale, match="version 2, expected 1"):
        server(device).function("f")


def test_states_of_no_dimensions_and_bfloat16_are_given(device):
    program = device.program("odd", "__kernel void odd(__global const ushort* half_, __global const long* n, __global long* y)"
                                    "{ y[0] = half_[1] + n[0]; }")
    states = {"half": device.empty((2, 2), "bf16"), "n": device.zeros((), "i64")}

    def body(run: Any) -> None:
        def region(name: str, dtype: str) -> wg.Array:
            at = run.address(name)
            array = wg.Array(device, None, (at.base, at.offset), (1,), dtype)
            array._run = run
            return array

        program.launch("odd", 1, 1, region("half", "bf16"), region("n", "i64"), region("y", "i64"))

    spec = wg.Spec({}, {"y": wg.Tensor(1, "i64")}, states, frozenset(states), code=[program], version="1")
    assert wg.Cache("toy", dynamic=True).wrap("f", device, spec, body)({"y": device.empty(1, "i64")}) == "recorded"
    bits = np.array([[1, 2], [3, 4]], np.uint16)
    for weights in ({"half": bits, "n": np.array(40)}, {"half": device.array(bits), "n": device.array(np.array([40]))}):
        served = server(device, weights)
        assert served.function("f")()["y"].numpy().tolist() == [42]
    assert served.function("f").states["half"] == wg.Tensor((2, 2), "bf16")
    with pytest.raises(errors.InvalidArgument, match=r"half is i16\[2, 2\], expected bf16\[2, 2\], its bits as u16"):
        server(device, {"half": bits.astype(np.int16), "n": np.array(40)}).function("f")()


def test_a_name_with_other_contents_is_another_state(device, program):
    """Two functions may close over different tensors with the same name."""
    for name, value in (("f", 2), ("g", 3)):
        with_metadata(device, program, torchs(contents={"kept": base64.b64encode((X * value).tobytes()).decode()}), name=name)
    served, zeros = server(device), np.zeros(COUNT, np.float32)
    assert (served.function("f")(x=zeros)["y"] == X * 2).all() and (served.function("g")(x=zeros)["y"] == X * 3).all()


def test_random_numbers_go_on_from_the_servers_seed(device, program):
    """The function copies the two words of the random-number generator, which the server sets before each call."""
    program = device.program("words", "__kernel void words(__global const long* s, __global const long* o, __global long* y)"
                                      "{ y[0] = s[0]; y[1] = o[0]; }")
    seed, offset = device.zeros(1, "i64"), device.zeros(1, "i64")

    def body(run: Any) -> None:
        def region(name: str, count: int) -> wg.Array:
            at = run.address(name)
            array = wg.Array(device, None, (at.base, at.offset), (count,), "i64")
            array._run = run
            return array

        program.launch("words", 1, 1, region("generator.seed", 1), region("generator.offset", 1), region("y", 2))

    spec = wg.Spec({}, {"y": wg.Tensor(2, "i64")}, {"generator.seed": seed, "generator.offset": offset},
                   frozenset(("generator.seed", "generator.offset")), code=[program], version="1", metadata=torchs(draws=12))
    assert wg.Cache("toy", dynamic=True).wrap("f", device, spec, body)({"y": device.empty(2, "i64")}) == "recorded"
    served = server(device, seed=(7 << 40) + 3)
    draws = [served.function("f")()["y"].numpy().tolist() for _ in range(3)]
    assert draws == [[(7 << 40) + 3, 0], [(7 << 40) + 3, 12], [(7 << 40) + 3, 24]] and served.offset == 36
