"""Functions with a cache: they are recorded in one process and replayed in the next, on a real device."""
from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pathlib
import pickle
import textwrap
import threading

import numpy
import pytest

import warmgraph
from conftest import COUNT, REPOSITORY, at_once
from warmgraph import Config, InvalidArgument, MissForbidden, Scalar, Tensor, cache_compile, like
from warmgraph.arrays._array_arguments import expect_apart
from warmgraph.core.binding import _frameworks
from warmgraph.core.binding._library import Library

GRID, BLOCK = COUNT // 16, 16


def floats(first: float = 0) -> numpy.ndarray:
    return numpy.arange(first, first + COUNT, dtype=numpy.float32)


def entries(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.glob("*/*/*/*.wg"))


# --- Cold and warm calls, each in its own process

CALL = "y = scale(x, 2.0)\nprint(scale.report().outcome, y.tolist() == (2 * x).tolist(), scale(x, 3.0)[1])\n"


def test_a_second_process_replays(process):
    assert process(CALL).lines() == ["recorded True 3.0"]
    assert process(CALL, WARMGRAPH_POLICY="require_hit").lines() == ["replayed True 3.0"]


def test_a_hit_does_not_call_the_function(process):
    script = """
        CALLS = []

        @wg.cache_compile(outputs=lambda x: wg.like(x), config=wg.Config(model="toy"))
        def double(x):
            globals()["CALLS"].append(1)  # not named: no guard sees it
            y = wg.empty_like(x)
            program.launch("scale", 4, 16, x, y, np.float32(2))
            return y

        double(x)
        print(double.report().outcome, len(CALLS), double(x)[3], len(CALLS))
    """
    (cold,), (warm,) = process(script).lines(), process(script).lines()
    assert cold.split()[0] == "recorded" and int(cold.split()[1]) >= 3
    assert warm == "replayed 0 6.0 0"


def test_other_code_is_recorded_anew(process):
    changed = """
        @wg.cache_compile(outputs=lambda x, factor: wg.like(x), scalars={"factor": wg.Scalar("f32", -100, 100)}, config=wg.Config(model="toy"))
        def scale(x, factor):
            y = wg.empty_like(x)
            program.launch("scale", 2, 32, x, y, factor)
            return y
    """
    assert process(CALL).lines()[0].startswith("recorded")
    assert process(textwrap.dedent(changed) + CALL).lines()[0].startswith("recorded")
    assert process("\n\n# other lines\n" + CALL).lines()[0].startswith("replayed")


def test_a_damaged_entry_costs_time_only(process, folder):
    assert process(CALL).lines() == ["recorded True 3.0"]
    (entry,) = entries(folder)
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 0xFF
    entry.write_bytes(data)
    done = process(CALL)
    assert done.lines() == ["recorded True 3.0"] and "quarantined" in done.err
    assert process(CALL).lines() == ["replayed True 3.0"]


def test_policies_are_obeyed(process, folder):
    missed = process("""
        try:
            scale(x, 2.0)
        except wg.MissForbidden as error:
            print(error.code, error.name, "require_hit" in str(error))
    """, WARMGRAPH_POLICY="require_hit")
    assert missed.lines() == ["4 miss_forbidden True"]
    assert process(CALL, WARMGRAPH_POLICY="read_only").lines() == ["eager True 3.0"]
    assert process(CALL, WARMGRAPH_POLICY="off").lines() == ["eager True 3.0"]
    assert entries(folder) == []
    assert process(CALL).lines() == ["recorded True 3.0"]
    assert process(CALL, WARMGRAPH_POLICY="read_only").lines() == ["replayed True 3.0"]
    assert process(CALL, WARMGRAPH_POLICY="refresh").lines()[0].startswith("recorded")


def test_no_compile_records_with_what_was_compiled(process):
    other = """
        @wg.cache_compile(outputs=lambda x, factor: wg.like(x), scalars={"factor": wg.Scalar("f32", -100, 100)}, config=wg.Config(model="toy"))
        def scale(x, factor):
            y = wg.empty_like(x)
            program.launch("scale", 4, 16, x, y, factor)
            return y
    """
    refused = process("""
        try:
            scale(x, 2.0)
        except wg.MissForbidden as error:
            print(error.name, "policy no_compile" in str(error))
    """, WARMGRAPH_POLICY="no_compile")
    assert refused.lines() == ["miss_forbidden True"]
    assert process(CALL).lines() == ["recorded True 3.0"]
    counts = "\nprint([(k['entries'].made, k['compiled'].hits, k['compiled'].made) for k in (s.kinds for s in wg.stats())])\n"
    served = process(textwrap.dedent(other) + CALL + counts, WARMGRAPH_POLICY="no_compile")
    assert served.lines() == ["recorded True 3.0", "[(1, 1, 0)]"]


def test_a_folder_that_is_none_costs_the_benefit_only(process, folder):
    folder.mkdir()
    (folder / "somebody").write_text("else's")
    done = process(CALL + "print(wg.explain(scale))")
    assert done.lines()[0] == "eager True 3.0" and "caching is off" in done.out and "CACHEDIR.TAG" in done.err


def test_processes_at_once(process, folder):
    results: list = []
    at_once(lambda: results.append(process(CALL).lines()[0]), *[()] * 3)
    assert all(line.endswith("True 3.0") for line in results) and len(results) == 3
    assert len(entries(folder)) == 1


def test_a_forked_child_is_told_and_not_hung(process):
    done = process("""
        import os
        scale(x, 2.0)
        array = device.array(x)
        child = os.fork()
        if child == 0:
            said = []
            for use in (lambda: scale(x, 2.0), array.numpy, lambda: wg.Device("opencl"), lambda: program.launch("add", 1, 1, array, array)):
                try:
                    use()
                    said.append("worked")
                except wg.Unsupported as error:
                    said.append("fork" in str(error))
            print(said, flush=True)
            sys.exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), scale(x, 2.0)[1], flush=True)
    """)
    assert done.lines() == ["[True, True, True, True]", "0 2.0"]


def test_a_child_that_was_forked_before_the_first_device_works(process):
    done = process("""
        import os
        import warmgraph as wg
        child = os.fork()
        os.write(1, (wg.Device("opencl").id + "\\n").encode())  # in one piece: both write at once
        if child:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """, bare=True)
    assert done.lines() == ["opencl:0", "opencl:0", "0"]


def test_the_sample_runs_cold_and_warm(process, folder):
    script = f"import runpy, sys\nsys.argv = ['layers.py']\nrunpy.run_path({str(REPOSITORY / 'samples/python/layers.py')!r}, run_name='__main__')\n"
    cold, warm = process(script, bare=True).lines()[0].split(), process(script, bare=True).lines()[0].split()
    assert cold[:2] == warm[:2] and (cold[2], warm[2]) == ("recorded", "replayed")
    assert float(cold[1].rstrip(",")) > 0


# --- results

def test_results_are_the_functions_own(scale, device):
    x = floats()
    for factor in (2.0, -3.5, 100.0):
        numpy.testing.assert_array_equal(scale(x, factor), x * numpy.float32(factor))
    assert scale.report().outcome == "recorded"
    result = scale(device.array(x), 4.0)  # the result is on the device, because an argument is
    assert isinstance(result, warmgraph.Array)
    numpy.testing.assert_array_equal(result.numpy(), x * 4)
    with pytest.raises(InvalidArgument, match="factor"):
        scale(x, 101.0)
    with pytest.raises(TypeError):
        scale(x)


def test_later_results_do_not_overwrite_earlier_ones(scale, device):
    x = device.array(floats())
    results = [scale(x, float(factor)) for factor in range(5)]
    for factor, result in enumerate(results):
        numpy.testing.assert_array_equal(result.numpy(), floats() * factor)


def test_arguments_are_written_where_they_are(program, device):
    @cache_compile(config=Config(model="toy"))
    def add(total, x):
        program.launch("add", GRID, BLOCK, total, x)

    total, x = floats(), floats(5)
    for round_ in range(1, 4):
        assert add(total, x) is None
        numpy.testing.assert_array_equal(total, floats() + round_ * x)
    strided = numpy.zeros(2 * COUNT, numpy.float32)[::2]
    add(strided, x)
    numpy.testing.assert_array_equal(strided, x)
    there = device.zeros(COUNT, "f32")
    add(there, x)
    numpy.testing.assert_array_equal(there.numpy(), x)
    x.flags.writeable = False
    add(total, x)
    add.reset()


def test_overlapping_host_arrays_are_refused(program):
    @cache_compile(config=Config(model="toy"))
    def add(total, x):
        program.launch("add", 1, 16, total, x)

    memory = floats()
    with pytest.raises(InvalidArgument, match="total and x overlap in host memory"):
        add(memory[:16], memory[8:24])
    add(memory[:16], memory[16:32])
    add(memory[:16], memory[:16].copy())
    with pytest.raises(InvalidArgument, match="total and x overlap in host memory"):
        add(memory[32:48][::-1], memory[:33][::-2][:16])
    add(memory[1::2][:16], memory[32:48])
    memory.flags.writeable = False
    readable = [memory[:16], memory[8:24]]
    expect_apart([("a", readable[0]), ("b", readable[1]), ("c", memory[:0])])


def test_two_thousand_arrays(program, device):
    @cache_compile(config=Config(model="toy"))
    def add_all(arrays, more):
        for array in arrays:
            program.launch("add", 1, 4, array, more)

    more = numpy.ones(4, numpy.float32)
    for on_device, count in ((False, 200), (True, 2000)):
        arrays = [numpy.full(4, i, numpy.float32) for i in range(count)]
        given = [device.array(array) for array in arrays] if on_device else arrays
        add_all(given, more)
        assert add_all.report().outcome == "recorded"
        assert all((array.numpy() if on_device else array)[3] == i + 1 for i, array in enumerate(given))
        add_all(given, more)
        assert all((array.numpy() if on_device else array)[3] == i + 2 for i, array in enumerate(given))
    add_all.reset()


def test_overlapping_device_arrays_are_replayed_as_they_lie(program, device):
    @cache_compile(config=Config(model="toy"))
    def add(total, x):
        program.launch("add", 2, 16, total, x)

    memory = device.array(floats())
    for first, second in [((0, 32), (32, 64)), ((0, 32), (0, 32)), ((32, 64), (0, 32))]:
        for _ in range(2):
            before = memory.numpy()
            add(memory[slice(*first)], memory[slice(*second)])
            before[slice(*first)] += before[slice(*second)]
            numpy.testing.assert_array_equal(memory.numpy(), before)
    add.reset()


def test_structures_go_in_and_come_out(program):
    @dataclasses.dataclass
    class Meta:
        x: object
        more: list

    def outputs(meta, *rest, **named):
        return {"sum": [like(meta.x), like(meta.x)], "same": meta.more[0], "none": None}

    @cache_compile(outputs=outputs, config=Config(model="toy"))
    def both(meta, *rest, **named):
        results = []
        for factor in (rest[0], named["factor"]):
            y = warmgraph.empty_like(meta.x)
            program.launch("scale", GRID, BLOCK, meta.x, y, numpy.float32(factor))
            results.append(y)
        program.launch("add", GRID, BLOCK, meta.more[0], meta.x)
        return {"sum": results, "same": meta.more[0], "none": None}

    for _ in range(2):
        meta = Meta(floats(), [floats(1)])
        result = both(meta, 2.0, factor=3.0)
        numpy.testing.assert_array_equal(result["sum"][0], floats() * 2)
        numpy.testing.assert_array_equal(result["sum"][1], floats() * 3)
        assert result["same"] is meta.more[0] and result["none"] is None
        numpy.testing.assert_array_equal(meta.more[0], floats(1) + floats())
    assert both.report().outcome == "recorded"
    both.reset()


def test_streams_copies_and_fills(program):
    @cache_compile(outputs=lambda x: like(x), config=Config(model="toy"))
    def sums(x):
        left, right = warmgraph.empty_like(x), warmgraph.empty_like(x)
        with warmgraph.forked():
            warmgraph.fill(left, 5)
        warmgraph.copy(right, x)
        program.launch("add", GRID, BLOCK, left, right)
        return left

    for first in range(3):
        numpy.testing.assert_array_equal(sums(floats(first)), floats(first) + 5)
    sums.reset()


def test_no_elements_and_no_outputs(program):
    @cache_compile(outputs=lambda x: like(x), config=Config(model="toy"), device="opencl")
    def nothing(x):
        return warmgraph.empty_like(x)

    assert nothing(numpy.empty((0, 3), numpy.float32)).shape == (0, 3)
    nothing.reset()


def test_a_cached_function_inside_another_is_a_part_of_it(program, scale):
    @cache_compile(outputs=lambda x: like(x), config=Config(model="toy"))
    def twice(x):
        return scale(scale(x, numpy.float32(2)), numpy.float32(3))

    for first in (0, 1):
        numpy.testing.assert_array_equal(twice(floats(first)), floats(first) * 6)
    assert twice.report().outcome == "recorded"
    twice.reset()


# --- guards

def outcome_of(wrapped, *args, **kwargs):
    """The outcome of this call in a new process."""
    wrapped.reset()
    wrapped(*args, **kwargs)
    return wrapped.report().outcome


def test_what_differs_is_another_variant(program, device):
    @cache_compile(outputs=lambda x, stride, note: Tensor(16, "f32"), config=Config(model="toy"))
    def gather(x, stride=1, note="a"):
        y = warmgraph.empty(16, "f32")
        program.launch("gather", 1, 16, x, y, numpy.int32(stride * x.strides[0]))
        return y

    x = device.array(floats())
    calls = [(x,), (x, 2), (x, 2, "b"), (x[:32],), (x[::2],), (device.array(floats().astype("i4")),)]
    assert [outcome_of(gather, *call) for call in calls] == ["recorded"] * len(calls)
    assert [outcome_of(gather, *call) for call in calls] == ["replayed"] * len(calls)
    numpy.testing.assert_array_equal(gather(x[::2]).numpy(), floats()[::2][:16])
    assert outcome_of(gather, device.array(floats(7))) == "replayed"  # this array has another address
    gather.reset()


class Model:
    def __init__(self, program, device, factor=2.0):
        self.program, self.factor = program, factor
        self.total = device.zeros(COUNT, "f32")
        self.steps = 0
        self.cached = cache_compile(self.step)

    def step(self, x):
        y = warmgraph.empty_like(x)
        self.program.launch("scale", GRID, BLOCK, x, y, numpy.float32(self.factor))
        self.program.launch("add", GRID, BLOCK, self.total, y)

    @cache_compile
    def decorated(self, x):
        self.step(x)

    @cache_compile
    def counts(self, x):
        self.step(x)
        self.steps += 1


def test_objects_have_states_and_share_entries(program, device, folder):
    first, second, third = Model(program, device), Model(program, device), Model(program, device, 3.0)
    for model, factor in ((first, 2), (second, 2), (third, 3), (first, 2), (second, 2)):
        before = model.total.numpy()
        model.decorated(floats())
        numpy.testing.assert_array_equal(model.total.numpy(), before + factor * floats())
    assert len(entries(folder)) == 2  # two entries, because the third call has another factor
    assert first.decorated.report() is not None
    for model in (first, second):
        model.cached(floats())
    assert first.cached.report().outcome == "recorded" and second.cached.report().outcome == "replayed"
    first.total = device.array(floats(100))  # a state with a new address
    first.cached(floats())
    numpy.testing.assert_array_equal(first.total.numpy(), floats(100) + 2 * floats())
    Model.decorated.reset()


def test_what_the_answer_changes_is_refused_by_its_path(program, device, caplog):
    model = Model(program, device)
    for round_ in range(1, 4):
        model.counts(floats())
        numpy.testing.assert_array_equal(model.total.numpy(), round_ * 2 * floats())
    assert model.counts.report().outcome == "refused"
    assert "self.steps was 'int 1' before the call and is 'int 2' after it" in warmgraph.explain(model.counts)
    assert len(Model.counts._shared.known.variants) == 2 and model.steps == 3  # the function is refused once, and not for each value
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 2 and all("cannot record 'counts': self.steps was" in one for one in warnings)
    Model.counts.reset()


def test_what_the_first_call_makes_is_there_at_the_next_which_is_recorded(program, device, folder):
    class Lazy:
        def __init__(self):
            self.total, self.most = device.array(floats()), 0

        @cache_compile(config=Config(model="toy"))
        def adds(self, x):
            self.most = max(self.most, len(x))
            program.launch("add", GRID, BLOCK, self.total, x)

    for _ in range(2):
        lazy, outcomes = Lazy(), []
        for _ in range(3):
            lazy.adds(floats())
            outcomes.append(lazy.adds.report().outcome)
        assert outcomes == ["refused", "recorded", "recorded"]  # outcomes of each variant's first call
        numpy.testing.assert_array_equal(lazy.total.numpy(), floats() + 3 * floats())
    assert len(entries(folder)) == 1
    Lazy.adds.reset()


def test_lists_that_the_function_changes_are_seen(program, device):
    @cache_compile(config=Config(model="toy"))
    def grows(x, seen):
        program.launch("add", GRID, BLOCK, x, x)
        seen.append(threading.Lock())

    seen = [device.array(floats())]
    grows(floats(), seen)
    assert len(seen) == 2 and grows.report().outcome == "refused" and "seen was 'list of 1'" in warmgraph.explain(grows)
    with pytest.raises(InvalidArgument, match="changes seen, from 'list of 1' to 'list of 2', but it was given a copy: pass device arrays"):
        grows(floats(), [floats()])
    grows.reset()


def test_memory_that_nobody_named_is_refused_by_the_cure(program, device):
    globals()["LOOSE"] = device.zeros(COUNT, "f32")

    @cache_compile(config=Config(model="toy"), version="1")
    def uses(x):
        program.launch("add", GRID, BLOCK, x, globals()["LOOSE"])

    x = floats()
    uses(x)  # this call is refused, and returns the function's own result
    assert "pass it, store it in an attribute" in warmgraph.explain(uses)
    numpy.testing.assert_array_equal(x, floats())
    uses.reset()


def test_what_cannot_be_compared_runs_as_it_is(program, caplog, monkeypatch):
    items = iter([1])

    @cache_compile(outputs=lambda guard, x: like(x), config=Config(model="toy"))
    def uncomparable(guard, x):
        y = warmgraph.empty_like(x)
        program.launch("scale", GRID, BLOCK, x, y, numpy.float32(2))
        return y

    for first in (0, 1):
        numpy.testing.assert_array_equal(uncomparable(items, floats(first)), 2 * floats(first))
    assert [record.getMessage() for record in caplog.records if "guard" in record.getMessage()] == [
        "cannot record 'uncomparable': guard is a builtins.list_iterator, which cannot be compared in another process: store the values that the function "
        "needs as plain values"]
    monkeypatch.setenv("WARMGRAPH_POLICY", "require_hit")
    with pytest.raises(MissForbidden, match="guard is a builtins.list_iterator"):
        uncomparable(items, floats())
    uncomparable.options.config.policy = "read_write"
    uncomparable(items, floats())
    uncomparable.options.config.policy = "require_hit"
    with pytest.raises(MissForbidden, match="guard is a builtins.list_iterator"):
        uncomparable(items, floats())


# --- errors

def test_an_exception_of_the_function_is_the_callers(program):
    class Mine(Exception):
        pass

    fail = {"now": True}

    @cache_compile(outputs=lambda x: like(x), config=Config(model="toy"), version="1")
    def raises(x):
        y = warmgraph.empty_like(x)
        program.launch("scale", GRID, BLOCK, x, y, numpy.float32(2))
        if fail["now"]:
            raise Mine("from within")
        return y

    for _ in range(2):
        with pytest.raises(Mine, match="from within"):
            raises(floats())
    fail["now"] = False
    numpy.testing.assert_array_equal(raises(floats()), 2 * floats())
    assert raises.report().outcome == "recorded"
    raises.reset()


def test_an_exception_in_a_capture_is_a_refusal(program):
    globals()["RUNS"] = []

    @cache_compile(outputs=lambda x: like(x), config=Config(model="toy"))
    def second_time(x):
        y = warmgraph.empty_like(x)
        program.launch("scale", GRID, BLOCK, x, y, numpy.float32(2))
        globals()["RUNS"].append(1)
        if len(globals()["RUNS"]) > 1:
            raise RuntimeError("not twice")
        return y

    numpy.testing.assert_array_equal(second_time(floats()), 2 * floats())
    assert second_time.report().outcome == "refused" and "not twice" in warmgraph.explain(second_time)
    second_time.reset()


def test_reading_back_inside_the_function_is_refused(program, device):
    @cache_compile(outputs=lambda x: like(x), config=Config(model="toy"))
    def reads(x):
        return device.array(x.numpy())

    for first in (0, 1):
        numpy.testing.assert_array_equal(reads(device.array(floats(first))).numpy(), floats(first))
    assert "calls Array.numpy while it is captured" in warmgraph.explain(reads)
    reads.reset()


@pytest.mark.parametrize("outputs, text", [
    (None, "declares no outputs"), (Tensor(3, "f32"), "expected Tensor"), (Tensor(COUNT, "i32"), "expected Tensor"),
    ([Tensor(COUNT, "f32")], "as declared"),
])
def test_outputs_that_are_not_as_declared_are_errors(program, outputs, text):
    @cache_compile(outputs=outputs, config=Config(model="toy"))
    def wrong(x):
        y = warmgraph.empty_like(x)
        program.launch("scale", GRID, BLOCK, x, y, numpy.float32(2))
        return y

    with pytest.raises(InvalidArgument, match=text):
        wrong(floats())
    wrong.reset()


def test_scratch_ends_with_its_run(program, device):
    kept = globals()["KEPT"] = []

    @cache_compile(config=Config(model="toy"))
    def keeps(x):
        globals()["KEPT"].append(warmgraph.empty_like(x))
        program.launch("add", GRID, BLOCK, x, x)

    keeps(floats())
    with pytest.raises(InvalidArgument, match="scratch memory of a function's run that has ended"):
        program.launch("add", GRID, BLOCK, device.array(floats()), kept[0])
    with pytest.raises(InvalidArgument, match="works only in a function of cache_compile while it runs"):
        warmgraph.empty(3, "f32")
    keeps.reset()


def test_names_that_are_no_folders_are_refused(program):
    wrapped = cache_compile(lambda x: program.launch("add", GRID, BLOCK, x, x), name="a/b", config=Config(model="toy"))
    with pytest.raises(InvalidArgument, match="has '/'"):
        wrapped(floats())
    with pytest.raises(InvalidArgument, match="names no device"):
        cache_compile(lambda x: None)(floats())
    with pytest.raises(InvalidArgument, match="did you mean 'factor'"):
        cache_compile(lambda x, factor: None, scalars={"factr": Scalar("f32")}, device="opencl")(floats(), 1)


def test_a_closed_cache_says_so(device, folder):
    cache = warmgraph.Cache("toy")
    cache.close()
    for use in (lambda: cache.directory, cache.statistics, lambda: cache.clear()):
        with pytest.raises(InvalidArgument, match="this cache is closed"):
            use()


def test_threads_call_one_function(scale):
    wrong: list = []

    def work(first: int) -> None:
        try:
            for factor in range(1, 15):
                if not numpy.array_equal(scale(floats(first), float(factor)), floats(first) * numpy.float32(factor)):
                    wrong.append((first, factor))
        except BaseException as error:
            wrong.append(error)

    at_once(work, *((first,) for first in range(4)))
    assert wrong == []


def test_a_reset_frees_and_the_next_call_loads(scale, folder):
    scale(floats(), 2.0)
    scale.reset()
    assert scale.report() is None
    numpy.testing.assert_array_equal(scale(floats(), 2.0), 2 * floats())
    assert scale.report().outcome == "replayed"


def test_more_structures_than_are_kept(program):
    @cache_compile(outputs=lambda x, n: like(x), config=Config(model="toy", max_variants=2), version="1")
    def many(x, n):
        y = warmgraph.empty_like(x)
        program.launch("scale", GRID, BLOCK, x, y, numpy.float32(n))
        return y

    for n in (1, 2, 3, 1, 2, 3):
        numpy.testing.assert_array_equal(many(floats(), n), n * floats())
    assert len(many._shared.known.variants) == 2
    many.reset()


# --- copies of wrappers

def plain(x):
    return x


wrapped_plain = cache_compile(plain, name="named")


def test_wrappers_can_be_copied_and_pickled():
    class Holder:
        def __init__(self):
            self.cached = cache_compile(self.run, name="run")

        def run(self, x):
            return x

    for wrapper in (copy.deepcopy(Holder()).cached, pickle.loads(pickle.dumps(wrapped_plain)), pickle.loads(pickle.dumps(Holder().cached))):
        assert wrapper.options.name in ("run", "named") and "unbound" in repr(wrapper)
        with pytest.raises(InvalidArgument, match="wrap the method of the new object"):
            wrapper(1)
    assert copy.deepcopy(wrapped_plain)._function is plain


def test_wrapping_reads_and_opens_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WARMGRAPH_CACHE_DIR")

    class Late:
        def __init__(self):
            self.cached = cache_compile(self.run, device="opencl")
            self.weights = None

        def run(self, x):
            return self.weights

    Late()
    assert os.listdir(tmp_path) == []
    assert wrapped_plain.__name__ == "plain" and wrapped_plain.__wrapped__ is plain


def test_a_bound_wrapper_is_described_as_its_method_is():
    class Step:
        def run(self, x: int, y: str = "b") -> None:
            """Runs a step."""

        cached = cache_compile(run, device="opencl")

    step = Step()
    for bound in (step.cached, copy.copy(step).cached):  # tested before any other access to the wrapper
        assert inspect.signature(bound) == inspect.signature(step.run)
        assert bound._object == id(bound._function.__self__)  # later calls are known by the id of the bound object
    assert (step.cached.__doc__, step.cached.__module__, step.cached.__name__) == ("Runs a step.", __name__, "run")
    assert step.cached.__wrapped__ is Step.run and step.cached.options is Step.cached.options and "run" in repr(step.cached)
    assert isinstance(step.cached, warmgraph.CachedFunction) and step.cached._object == id(step) != Step.cached._object
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        step.cached.nothing
    for unbound in (copy.deepcopy(step.cached), pickle.loads(pickle.dumps(step.cached))):
        with pytest.raises(InvalidArgument, match="belongs to no object"):
            unbound(1)


# --- queries

def test_folders_counters_and_reasons(scale, folder, tmp_path):
    scale(floats(), 2.0)
    scale(floats()[:32], 2.0)
    (found,) = warmgraph.stats(scale)
    entries_of = found.kinds["entries"]
    assert (found.folder, entries_of.misses, entries_of.made, entries_of.hits) == (str(folder), 2, 2, 0)
    assert entries_of.making_ms > 0 and entries_of.miss_reasons[0] == "scale: no entry" and len(entries_of.miss_reasons) == 2
    assert list(found.kinds) == ["entries", "compiled", "tuned", "profiles"] and found.kinds["tuned"] == warmgraph.KindStatistics()
    twice = found + found
    assert twice.kinds["entries"].made == 4 and twice.kinds["entries"].miss_reasons == entries_of.miss_reasons * 2
    assert found in warmgraph.stats()
    text = warmgraph.explain(scale)
    assert str(folder) in text and "recorded" in text and "input x" in text
    function_folder = entries(folder)[0].parent
    shown = warmgraph.readable_cache(function_folder, tmp_path / "shown.txt")
    assert "scale" in shown and (tmp_path / "shown.txt").read_text() == shown
    copied = tmp_path / "copy" / entries(folder)[0].relative_to(folder)
    copied.parent.mkdir(parents=True)
    copied.write_bytes(entries(folder)[0].read_bytes())
    assert "scale" in warmgraph.readable_cache(copied)
    with pytest.raises(warmgraph.NotFound):
        warmgraph.readable_cache(tmp_path / "nothing.wg")
    for no_function in ("/", "/tmp"):
        with pytest.raises(InvalidArgument, match="the folder of a function: give one that ends with <model>/<rank>/<function>"):
            warmgraph.readable_cache(no_function)
    (cleared,) = warmgraph.clear(scale)
    assert cleared == warmgraph.Cleared(str(folder), 2) and entries(folder) == []
    scale(floats(), 2.0)
    assert scale.report().outcome == "recorded"
    assert warmgraph.Cleared(str(folder), 1) in warmgraph.clear()


def test_a_kind_is_cleared_alone(folder: Any) -> None:
    cache = warmgraph.Cache("demo", cache_dir=folder)
    put = folder / "compiled" / "ab" / ("ab" + "0" * 62 + ".compiled")
    put.parent.mkdir(parents=True, mode=0o700)
    put.write_bytes(b"x")
    assert cache.clear(kind="tuned") == 0 and cache.clear(kind="entries") == 0 and put.exists()
    assert cache.clear(kind="compiled") == 1 and not put.exists()
    with pytest.raises(warmgraph.InvalidArgument, match="the kind 'images': expected entries, compiled, tuned"):
        cache.clear(kind="images")
    with pytest.raises(InvalidArgument, match="only entries belong to a function"):
        cache.clear("scale", kind="tuned")


def test_a_function_has_graphs_alone(folder: Any) -> None:
    @warmgraph.cache_compile(cache_dir=folder)
    def twice(x: Any) -> Any:
        return x

    with pytest.raises(warmgraph.InvalidArgument, match="kind is 'tuned', expected 'entries' with a function"):
        warmgraph.clear(twice, kind="tuned")


def test_the_cache_itself_serves_named_arrays(device, program, folder):
    cache = warmgraph.Cache("toy")
    spec = warmgraph.Spec({"x": Tensor(COUNT, "f32")}, {"y": Tensor(COUNT, "f32")}, code=[program], version="1")

    def body(run):
        program.launch("scale", GRID, BLOCK, run.tensor("x"), run.tensor("y"), numpy.float32(2))

    x, y = device.array(floats()), device.zeros(COUNT, "f32")
    function = cache.wrap("double", device, spec, body)
    assert [function({"x": x, "y": y}) for _ in range(2)] == ["recorded", "replayed"]
    numpy.testing.assert_array_equal(y.numpy(), 2 * floats())
    function.close()
    device.synchronize()
    loaded = warmgraph.Cache("toy").load("double", device, spec)
    y.write(numpy.zeros(COUNT))
    assert loaded({"x": x, "y": y}) == "replayed"
    numpy.testing.assert_array_equal(y.numpy(), 2 * floats())
    with pytest.raises(MissForbidden):
        loaded({"x": x[:32], "y": y})
    assert "hit" in cache.summary() and "double" in cache.readable("double") and cache.directory == str(folder)


def test_an_entry_is_found_by_inputs_and_facts_and_gives_its_metadata(device, program, folder):
    def spec(count=64, version="1", facts=None, **more):
        return warmgraph.Spec(inputs={"x": Tensor(count, "f32")}, code=[program], version=version, facts=facts or {"a": "1"}, **more)

    def body(run):
        program.launch("scale", 4, 16, run.tensor("x"), run.tensor("y"), numpy.float32(2))

    x, y = device.array(numpy.arange(64, dtype=numpy.float32)), device.zeros(64, "f32")
    with_outputs = spec(outputs={"y": Tensor(64, "f32")}, metadata="what y is")
    function = warmgraph.Cache("found").wrap("scale", device, with_outputs, body)
    assert function({"x": x, "y": y}) == "recorded"
    cache = warmgraph.Cache("found")

    def found(cache, spec, name="scale"):
        return [one["metadata"] for one in cache.entries(name, device, spec=spec, most=1)]

    assert found(cache, spec()) == ["what y is"]
    assert found(cache, spec(facts={"a": "2"})) == []
    assert found(cache, spec(version="2")) == []
    assert found(cache, spec(count=32)) == []
    assert found(cache, spec(), "other") == []
    (listed,) = cache.entries("scale", device)
    assert listed["outputs"][0]["name"] == "y" and cache.entries("scale", device, spec=spec()) == [listed]
    with pytest.raises(InvalidArgument, match="most is 0"):
        cache.entries("scale", device, most=0)
    with pytest.raises(InvalidArgument, match="version"):
        found(cache, spec(version=""))
    off = warmgraph.Cache("found", config=Config(policy="refresh"))
    assert found(off, spec()) == []


@pytest.mark.parametrize("framework, pauses", [(None, 1), (object(), 0)])
def test_a_cache_pauses_recording_by_itself_where_no_framework_does(folder, monkeypatch, framework, pauses):
    seen, made = [], Library.create

    def watched(self, name, *arguments):
        seen.extend(one._obj.pauses_recording for one in arguments if name == "wg_cache_open")
        return made(self, name, *arguments)

    monkeypatch.setattr(Library, "create", watched)
    monkeypatch.setattr(_frameworks, "registered", lambda: framework)
    warmgraph.Cache("toy")
    assert seen == [pauses]
