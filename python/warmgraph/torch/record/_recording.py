"""Handles a miss: answers the call, captures it twice, and stores the graph."""
from __future__ import annotations

import contextlib
import dataclasses
import enum
import gc
import logging
import threading
from typing import Any, Callable, Iterator, Protocol, Sequence, TypeVar

import torch

from warmgraph import errors
from warmgraph.calls._cached_function import CachedFunction
from warmgraph.core.cache._pools import pool_of
from warmgraph.torch.read import _installed_code, _tensors, _triton_tuners
from warmgraph.torch.record import (_answers, _cached_results, _call_sites, _capture, _capture_advice, _constants, _copies, _counted_numbers, _generators,
                                    _host_numbers, _host_tensors, _operator_trail, _operators, _stray_work)
from warmgraph.torch.record._shadows import Shadows
from warmgraph.torch.replay import _bound_call, _counters, _declarations, _entry, _host_draws, _launching, _outputs
from warmgraph.torch.replay._regions import Region, storage_key
from warmgraph.torch.replay._torch_call import TorchCall

_log = logging.getLogger("warmgraph")
_MOST_TRIES = 3
_T = TypeVar("_T")
lock = threading.RLock()  # allows one recording at a time, because captures, generators and swapped tensors belong to the process


class CaptureWritten(Exception):
    """The folder had no capture of another process, so this process's capture was written for the next process. `graph`: the capture, whose
    replays write `result`; None when PyTorch must capture again with the caller's random numbers."""

    def __init__(self, folder: str, graph: _capture.Capture | None, result: Any) -> None:
        super().__init__(f"its capture was written to {folder}; the next process proves it with its own capture")
        self.graph, self.result = graph, result


class RecordNextTime(Exception):
    """The next call must be recorded instead. The reason: this answer made an object that exists from now on, or showed memory that must be
    copied before a call."""


class Chance(enum.Enum):
    """Random coincidences that refuse a recording. After one of them, new captures may be accepted."""

    neighbours = "two ranges moved together"
    number = "a stale or small number looks like an address of live memory"
    pool = "the captures' pools were given memory in different ways"


def chance_of(refusal: errors.Error) -> Chance | None:
    text = str(refusal)
    if isinstance(refusal, errors.InvalidArgument):
        return Chance.pool if "has no scratch" in text else None
    if "follows no region" in text or "lies in no declared region" in text:
        return Chance.number
    return Chance.neighbours if "moved by different distances" in text else None


class RecordableFunction(Protocol):
    """The functions that a recording needs from the recorded function (_torch_function.TorchFunction)."""

    captures: str | None
    is_shown_none: bool
    writes: set[str]

    @property
    def is_compiled(self) -> bool: ...
    @property
    def is_compiled_already(self) -> bool: ...
    def may_be_shown(self, call: TorchCall) -> bool: ...
    def run(self, wrapped: CachedFunction, owner: Any, arguments: dict[str, Any]) -> Any: ...
    def in_place(self, call: TorchCall) -> tuple[list[torch.Tensor], list[Any]]: ...


class Recording:
    """Answers and records one call."""

    may_draw_on_host = True  # whether the function may draw random numbers on the host that it does not read

    def __init__(self, function: RecordableFunction, wrapped: CachedFunction, call: TorchCall) -> None:
        self._function, self._wrapped, self._call = function, wrapped, call
        self._result: Any = None
        self._draws = 0
        self._generators = _generators.CallGenerators(call)
        self._drawn = self._generators.of_device
        self._tuners = _triton_tuners.Tuners(call.objects().items())
        self._before = [(version_of(place.tensor), storage_key(place.tensor)) for place in call.places]
        self._start = _answers.Start(call.regions)
        self._is_shown = False  # whether the answer's operators were shown
        self._as_answered = "no"  # "yes": in a capture, _capture.asked returns what it returned in the answer
        self._numbers = _host_numbers.HostNumbers(self._start.reads)  # runs the answer's operators, if they are shown
        self._numbers_in_capture: _host_numbers.HostNumbers | None = None  # the same for the last capture
        self._host_draws: Sequence[_host_draws.HostDraw] = ()  # draws that a replay repeats
        self._copies = _host_tensors.HostCopies()  # the host tensors that the answer copies to the device
        self._twins: _host_tensors.Twins | None = None
        self._asked_in_answer = False  # whether the function asked if its stream is capturing
        self._is_hiding_tried = False  # whether a capture was hidden from the function
        self._has_asked = False  # whether a capture asked if its stream is capturing
        self._captured_call: tuple[Any, dict[str, Any]] = (call.owner, call.arguments)  # the (object, arguments) of the newest capture
        self._trail: _operator_trail.OperatorTrail | None = None  # of the newest capture
        self._namespaces = _cached_results.Namespaces()  # of the answer
        self._cached: _cached_results.CachedResults | None = None  # made after the answer, if the function's operators are shown
        self._counted: _counted_numbers.CountedNumbers | None = None  # numbers that the answer advanced
        self._declared: Callable[[_counters.Counters], _entry.Declaration] | None = None  # the declaration of an entry with these counters
        self._asked_first = _operators.OperatorTexts()  # the operators of the newest first capture

    def answer(self) -> Any:
        """The call's own result, computed on the caller's memory. No internal error may occur here."""
        with torch.no_grad():
            self._result = self._answer()
        return self._result

    def _answer(self) -> Any:
        """Runs the function. Before it writes memory, the earlier contents are copied: if its operators are shown, when an operator writes;
        if not, small regions and regions that an earlier call wrote are copied first. Autocast's cache is cleared, so that the answer converts
        the current weights, as the captures and replays do."""
        torch.clear_autocast_cache()
        self._host_state = torch.get_rng_state()
        self._is_shown = self._function.may_be_shown(self._call)
        self._start.keep_some(self._call.regions, self._function.writes, also_small=not self._is_shown)
        shown = _host_tensors.shown(_operators.shown_to(self._start.shown, self._copies.shown, self._namespaces, run=self._numbers))
        asking = _capture.asked("no") if self._is_shown else contextlib.nullcontext(list[str]())
        with shown if self._is_shown else contextlib.nullcontext(), asking as asks:
            try:
                return self._function.run(self._wrapped, self._call.owner, self._call.arguments)
            finally:
                self._asked_in_answer = bool(asks)

    def expect_same_written(self, versions: Sequence[int | None]) -> None:
        """Raises Differs if a capture wrote tensors that the answer did not write. `versions`: the tensors' versions before the capture."""
        left_alone = {int(one.storage.data_ptr()) for one in self._call.regions if not one.is_written}
        for place, before in zip(self._call.places, versions):
            if before != version_of(place.tensor) and storage_key(place.tensor) in left_alone:
                raise _answers.CaptureDiffers(f"the function behaves differently under capture: it writes {place.path}, which the call itself did not write")

    def _notice(self) -> None:
        """Notes which memory the answer wrote, and how many random numbers it drew."""
        call = self._call
        tuned = self._tuners.tuned()
        if tuned:
            raise RecordNextTime(f"the Triton kernel {tuned} tuned itself: the next call is recorded")
        self._drawn = self._generators.drawn()
        self._draws = self._drawn.count
        if self.may_draw_on_host and self._numbers.draws and not self._numbers.is_any_left():
            self._host_draws = _host_draws.leading_from(self._host_state, self._numbers.draws) or ()
        for place, (_, key) in zip(call.places, self._before):
            if storage_key(place.tensor) != key:
                raise errors.NotRecordable(f"{place.path} lies in other memory after the call, but a replay writes to the memory from before: write "
                                           "into it (copy_)")
        written = {id(place.tensor) for place, (before, _) in zip(call.places, self._before)
                   if before is None or before != version_of(place.tensor) or place.is_optimized and not self._is_shown}
        for region in call.regions:
            region.is_written = self._start.was_written(region) or any(id(place.tensor) in written for place in region.places)
        self._expect_kept(call.regions)

    def _expect_kept(self, regions: Sequence[Region]) -> None:
        """Raises an error if the earlier contents of memory that the answer wrote are not known."""
        if self._start.problem:
            raise errors.NotRecordable(self._start.problem)
        counted = {id(place.tensor) for place, (before, _) in zip(self._call.places, self._before) if before is not None}
        missing = [one.name for one in regions if one.is_written and not self._start.has(one) and any(id(place.tensor) in counted for place in one.places)]
        if missing:
            self._function.writes.update(missing)
            raise RecordNextTime(f"it writes {missing[0]}, whose previous contents are saved from the next call on: that call is recorded")
        self._start.end()

    def count(self, counted: _counted_numbers.CountedNumbers, declared: Callable[[_counters.Counters], _entry.Declaration]) -> None:
        """Lets a replay advance numbers that the answer advanced. declared: makes the declaration of an entry with such counters."""
        if not self._is_shown:
            raise errors.NotRecordable(f"each call changes {counted.text()}, and it runs compiled code, so that nothing proves where the number goes: keep it "
                                       "in device memory, or change it outside")
        self._counted, self._declared = counted, declared

    def adopted(self, given: _entry.Declaration) -> tuple[_entry.Entry, _outputs.Metadata, torch.Tensor | None]:
        """Stores the recording, and returns (entry, metadata, the generator's words). If storing fails, raises an error with the reason,
        after it has restored the caller's objects. REQUIRES: `lock`, so that no tensor is moved away for another recording."""
        call = self._call
        self._notice()
        described = _outputs.described(self._result, call.objects(), call.regions, takes_parts=True)
        text = _outputs.to_text(described, call.regions, self._draws, call.around.objects, self._host_draws, self._drawn.path)
        metadata = _outputs.from_text(text)
        why = _outputs.why_not_rebuilt(metadata, call.object)
        if why:
            raise errors.NotRecordable(why)
        torch.cuda.synchronize(call.device)
        with self.twins(), self._start.there():  # from these contents, the library runs the captured graph and the restored graph
            return self.as_answered_too(lambda: self._adopted_within(given, described, metadata, text))

    @contextlib.contextmanager
    def twins(self) -> Iterator[None]:
        """Inside the block, captures copy from twins of the answer's host tensors."""
        twins: _host_tensors.Twins | None
        self._twins = twins = _host_tensors.Twins(self._copies, self._call.device)
        try:
            yield
        except CaptureWritten as written:
            if written.graph is not None:  # the process replays this graph from now on
                written.graph.keep, twins = (written.graph.keep, twins), None
            raise
        finally:
            self._twins = None
            if twins is not None:
                torch.cuda.synchronize(self._call.device)
                twins.close()

    def as_answered_too(self, adopt: Callable[[], _T]) -> _T:
        """Handles a function that behaves differently when its stream captures: captures it so that it believes that its stream does not
        capture, as in the answer. The capture is compared with the answer as before. If the function asked during the answer, this is tried
        first, unless the answer waited for the device, which a capture cannot do."""
        if self._asked_in_answer and not self._is_hiding_tried and not self._has_waited():
            try:
                return self._hidden(adopt)
            except (CaptureWritten, RecordNextTime):
                raise
            except Exception as error:
                _log.info("'%s' is captured again, now without hiding it: %s", self._wrapped._name(), error)
        try:
            return self._with_cached(adopt)
        except _answers.CaptureDiffers as differs:
            if not self._has_asked or self._is_hiding_tried:
                raise
            _log.info("'%s' is captured again, with the capture hidden from it: %s", self._wrapped._name(), differs)
            try:
                return self._hidden(adopt)
            except Exception as error:
                _log.info("the second attempt to capture '%s' failed: %s", self._wrapped._name(), error)
                raise differs from None

    def _has_waited(self) -> bool:
        """Whether the answer waited for the device, as a capture cannot."""
        return self._start.reads.varies or any(map(_capture_advice.waits, self._start.asked.texts))

    def _hidden(self, adopt: Callable[[], _T]) -> _T:
        """Calls `adopt`. The captures inside are hidden from the function."""
        self._as_answered, self._is_hiding_tried = "yes", True
        try:
            return self._with_cached(adopt)
        finally:
            self._as_answered = "no"

    def _with_cached(self, adopt: Callable[[], _T]) -> _T:
        """Calls `adopt`. If a capture was wrong to compute a cached function's result, calls it again, and that capture uses the kept result."""
        while True:
            try:
                return adopt()
            except _cached_results.UsedAsKept as kept:
                _log.info("'%s' is captured again: %s", self._wrapped._name(), kept)

    def _adopted_within(self, given: _entry.Declaration, described: _outputs.ResultDescription, metadata: _outputs.Metadata,
                        text: str) -> tuple[_entry.Entry, _outputs.Metadata, torch.Tensor | None]:
        call = self._call
        first = FirstCapture(self, described)
        try:
            if self._function.captures is not None:
                paired = self._paired(self._function.captures, given, metadata, text, first)
                if paired is not None:
                    return paired
            for tried in range(1, _MOST_TRIES + 1):
                second = SecondCapture(self, described, first.outputs)
                try:
                    return self._adopt(given, metadata, text, first, second)
                except (errors.NotRecordable, errors.InvalidArgument) as error:
                    chance = chance_of(error)
                    if chance is None or tried == _MOST_TRIES:
                        raise
                    _log.info("'%s' is captured again (%s): %s", self._wrapped._name(), chance.value, error)
                    if chance is not Chance.neighbours:
                        first.close()
                        gc.collect()  # less live memory, so that fewer numbers look like addresses
                        first = FirstCapture(self, described)
                finally:
                    second.close()
        finally:
            first.close()
            torch.cuda.synchronize(call.device)
        raise AssertionError("unreachable")

    def _judge(self, first: FirstCapture) -> _answers.AnswerJudge | None:
        """Makes the judge of the capture. Starting from the same memory as the answer, the graph must give the answer's results."""
        results = [_answers.ResultPair(one.name, answer, found) for one, answer, found in zip(first.described.outputs, first.described.fresh, first.outputs)]
        return self.judge_of(results, (lambda: self._difference(first)) if self._is_shown else None)

    def judge_of(self, results: Sequence[_answers.ResultPair], difference: Callable[[], str] | None) -> _answers.AnswerJudge:
        """A judge for `results` and for the memory that the answer wrote in place, which `results` does not have."""
        given = [*results, *(_answers.ResultPair(path, was, now) for path, was, now in self._start.left())]
        asked_truly = self._has_asked and self._as_answered == "no"
        return _answers.AnswerJudge([one for one in given if one.answer.numel()], difference, asked_truly)

    def _difference(self, first: FirstCapture) -> str:
        trail = first.capture.trail
        return self._start.asked.difference(first.asked, lambda number: trail.text_of_operator(number, self._roots()) if trail is not None else "")

    def _paired(self, folder: str, given: _entry.Declaration, metadata: _outputs.Metadata, text: str,
                first: FirstCapture) -> tuple[_entry.Entry, _outputs.Metadata, torch.Tensor | None] | None:
        """Stores the graph with the help of another process's capture. Returns None if that capture proves nothing; then this process must
        make a second capture on other memory."""
        try:
            return self._adopt(given, metadata, text, first, folder)
        except errors.NotFound as nothing:
            _log.info("'%s': %s", given.name, nothing)
        except (errors.NotRecordable, errors.VerificationFailed, errors.PermissionDenied, errors.IoFailed) as error:
            _log.info("'%s' is captured again at other addresses: %s", given.name, error)
            return None
        # A capture that is written for another process was not compared with the answer: only the store may run a graph, because it first
        # checks that the graph touches only declared memory. So at least the operators must be the same.
        difference = "" if self._function.is_compiled else self._difference(first) if self._is_shown else "its operators are not known"
        if difference:
            _log.info("the capture of '%s' is not written for other processes, because it may do other work than the call itself (%s)", given.name, difference)
            return None
        try:
            self._write(folder, given, metadata, text, first)
        except (errors.PermissionDenied, errors.IoFailed, errors.NoSpace) as error:
            _log.warning("the capture of '%s' is not written for other processes: %s", given.name, error)
            return None
        if metadata.draws:
            raise CaptureWritten(folder, None, None)
        first.is_given_away, first.capture.trail = True, None
        raise CaptureWritten(folder, first.capture, _outputs.rebuilt(metadata.tree, first.outputs, self._call.object))

    def _write(self, folder: str, given: _entry.Declaration, metadata: _outputs.Metadata, text: str, first: FirstCapture) -> None:
        full = _declarations.completed(given, metadata, first.capture.words, text, first.outputs)
        pool = pool_of(self._wrapped._where())
        cache = pool.take(given.name)
        try:
            _entry.write_capture(cache, _launching.device_of(self._call.device.index or 0), full, _described_capture(first, *_names_and_sizes(full)), folder)
        finally:
            pool.give_back(cache, given.name)

    def _adopt(self, given: _entry.Declaration, metadata: _outputs.Metadata, text: str, first: FirstCapture,
               second: SecondCapture | str) -> tuple[_entry.Entry, _outputs.Metadata, torch.Tensor | None]:
        """Stores the graph. `second`: a folder with captures of other processes, or this process's second capture."""
        if self._counted is not None and self._declared is not None:
            counters = self._counted.counters()
            given, metadata, text = self._declared(counters), dataclasses.replace(metadata, counters=counters), _outputs.with_counters(text, counters)
        full = _declarations.completed(given, metadata, first.capture.words, text, first.outputs)
        names, sizes = _names_and_sizes(full)
        captures = (_described_capture(first, names, sizes),
                    second if isinstance(second, str) else _described_capture(second, names, sizes, self._counted.distance if self._counted is not None else 0))
        device = _launching.device_of(self._call.device.index or 0)
        judge = self._judge(first)
        _capture.set_words(first.capture, self._call.device, self._drawn.seed, self._drawn.offset)
        torch.cuda.synchronize(self._call.device)
        pool = pool_of(self._wrapped._where())
        with self.naming_operators(first.capture):
            entry = pool.make_function(given.name, lambda cache, destroyed: _entry.Entry(cache, device, full, captures, destroyed, judge))
        held = first.nbytes() + (0 if isinstance(second, str) else second.nbytes())
        held += self._twins.nbytes() if self._twins is not None else 0
        entry.recording_bytes = self._start.nbytes() + held + (judge.nbytes() if judge is not None else 0)
        return entry, metadata, _bound_call.words_of_generator(self._call.device) if metadata.draws else None

    # --- Capturing

    def capture(self, owner: Any, arguments: dict[str, Any], described: _outputs.ResultDescription, outputs: Sequence[torch.Tensor],
                objects: dict[str, Any], regions: Sequence[Region], asked: _operators.OperatorTexts | None = None,
                never_runs: bool = False) -> _capture.Capture:
        """Captures the function, followed by copies of its results to `outputs`. asked: receives the operators that the function requests.
        never_runs: the graph is only read."""
        self._captured_call = (owner, arguments)
        shows: list[_operators.Show] = [asked] if asked is not None else []
        if asked is not None:
            self._asked_first = asked
        elif self._counted is not None:
            shows = [self._counted.expect_same(self._asked_first)]
        counted = self._counted.counted_in if self._counted is not None else lambda arguments, is_second: contextlib.nullcontext()

        def work() -> None:
            with torch.no_grad():
                with counted(arguments, never_runs), self.over(*shows, is_whole=asked is not None):
                    result = self._function.run(self._wrapped, owner, arguments)
                if self._counted is not None:
                    self._counted.expect_not_in(result)
                now = _outputs.described(result, objects, regions, takes_parts=True)
                if now.tree != described.tree or now.outputs != described.outputs:
                    raise _answers.CaptureDiffers(f"it returns something else at its second call: {now.tree}, but {described.tree} at the first")
                for output, fresh in zip(outputs, now.fresh):
                    if fresh.numel():
                        output.copy_(fresh)

        return self.captured(work, self._draws != 0, never_runs)

    def over(self, *shows: _operators.Show, is_whole: bool = True) -> Any:
        """A context for work inside a capture. It shows the operators to the observers. is_whole: whether refusals of nodes will name the
        operators of this capture."""
        if not self._is_shown and (self._function.is_compiled or _operators.compiled_graphs()):
            return contextlib.nullcontext()
        device = self._call.device
        innermost: _operators.Run = _capture.cleared
        if self._twins is not None:
            self._twins.takes_spares = is_whole  # not in the second capture, whose host tensors must be those of the first
            innermost = self._twins.run(innermost)
        self._trail = trail = _operator_trail.OperatorTrail(_constants.enqueued_in(device), innermost, is_whole=is_whole)
        run: _operators.Run = trail.around
        if self._is_shown:
            run = _constants.ConstantTracker(self._start.reads, trail.enqueued, trail)
        if self._host_draws:
            run = self._numbers_in_capture = _host_numbers.HostNumbers(run, notes_uses=True)
        cached = [self._cached.shown] if self._cached is not None else []
        mode = _operators.shown_to(trail.shown, *_capture.watch(device), *cached, *shows, run=run)
        return _host_tensors.shown(mode) if self._is_shown else mode

    @_call_sites.outermost
    def _watched(self, work: Callable[[], None]) -> None:
        with _stray_work.refused(self._call.device):
            work()

    def captured(self, work: Callable[[], None], draws: bool, never_runs: bool = False) -> _capture.Capture:
        """Captures `work`. Raises NotRecordable when the host did something else than enqueue work. The text of an error names the place
        in the function that failed."""
        self._trail = None
        try:
            found = self._captured_and_checked(work, draws, never_runs)
        except Exception as error:
            explained = _operator_trail.explained(error, self._trail, self._roots())
            if explained is error:
                raise
            raise explained from error
        if self._twins is not None:
            self._twins.fill()
        if self._trail is not None:
            found.trail, self._trail.graph = self._trail, found.native
        return found

    def _roots(self) -> list[tuple[str, torch.nn.Module]]:
        """(path, module) of the modules that the function reaches."""
        owner, arguments = self._captured_call
        around = [*_installed_code.values_of(self._call.around.reached), self._call.owner]
        named = [("", owner), *arguments.items(), *self._call.arguments.items(), *(("", one) for one in around)]
        return [(path, one) for path, one in named if isinstance(one, torch.nn.Module)]

    @contextlib.contextmanager
    def naming_operators(self, capture: _capture.Capture) -> Iterator[None]:
        """Names the operator that enqueued a node of the capture in the errors of the library about that node."""
        try:
            yield
        except errors.Error as error:
            if self._cached is not None:
                self._cached.explain(error)
            _operator_trail.name_operator(error, capture.trail, _capture.node_positions, self._roots())
            raise

    def _captured_and_checked(self, work: Callable[[], None], draws: bool, never_runs: bool) -> _capture.Capture:
        compiled_before = _operators.compiled_graphs()
        elsewhere = contextlib.closing(_capture.Addresses(self._call.device.index or 0)) if self._function.captures is not None else contextlib.nullcontext()
        # Not for compiled code, because it guards on the function that `asked` replaces.
        asking = _capture.asked(self._as_answered) if self._is_shown else contextlib.nullcontext(list[str]())
        if self._is_shown and self._cached is None:
            self._cached = _cached_results.CachedResults(self._call.device, self._namespaces)
        again = self._cached.computed_again() if self._cached is not None else contextlib.nullcontext()
        with elsewhere, _capture.uncached_autocast(), _capture.host_random(self._host_draws) as drawn, asking as asks, again:
            try:
                captured = _capture.captured(self._call.device, lambda: self._watched(work), self._drawn.generator if draws else None, never_runs)
            except Exception as error:
                self._expect_unread([], error)
                if self._cached is not None and self._cached.has_failed:
                    raise _cached_results.UsedAsKept(self._cached.text()) from error
                raise
            finally:
                self._has_asked = self._has_asked or bool(asks)
        try:
            self._expect_unread(drawn)
            if self._cached is not None:
                self._cached.expect_right()
        except errors.NotRecordable:
            captured.close()
            raise
        if _operators.compiled_graphs() != compiled_before:
            captured.close()
            if self._is_shown:  # the function calls code that PyTorch compiles: show no operators from the next call on
                self._function.is_shown_none = True
                raise RecordNextTime("PyTorch compiles a function that it calls: its operators are not watched from the next call on, and that call is recorded")
            raise errors.NotRecordable("PyTorch compiled it again during the capture, because a value that it depends on changed "
                                       "(TORCH_LOGS=recompiles says which)")
        return captured


    def _expect_unread(self, drawn: Sequence[str], error: Exception | None = None) -> None:
        """Raises NotRecordable if the last capture drew random numbers on the host in another way than the answer, or read or kept some. drawn:
        the generators that it used in another way. error: the error that ended the capture, which then may be a consequence."""
        numbers, self._numbers_in_capture = self._numbers_in_capture, None
        uses = numbers.uses if numbers is not None else []
        if not drawn and self._host_draws and error is None:
            assert numbers is not None
            drawn = ["torch"] if numbers.draws != self._numbers.draws or numbers.is_any_left() else []
        if drawn or uses:
            reads = f" and reads them ({uses[0]})" if uses else ""
            raise errors.NotRecordable(f"it draws random numbers on the host ({', '.join(drawn) or 'torch'}){reads}, which a replay would not draw: "
                                       "pass them as tensors, or draw them on the device") from error


class FirstCapture:
    """The capture on the caller's memory."""

    def __init__(self, recording: Recording, described: _outputs.ResultDescription) -> None:
        call = recording._call
        self.described, self.outputs = described, [one.allocate(call.device) for one in described.outputs]
        self.asked = _operators.OperatorTexts()
        versions = [version_of(place.tensor) for place in call.places]
        self.capture = recording.capture(call.owner, call.arguments, described, self.outputs, call.objects(), call.regions, self.asked)
        try:
            recording.expect_same_written(versions)
        except BaseException:
            self.capture.close()
            raise
        self.pointers = [one.pointer for one in call.inputs] + [one.data_ptr() for one in self.outputs if one.numel()]
        self.pointers += [one.pointer for one in call.states] + self.capture.words
        self.is_given_away = False  # whether another object replays this capture and must close it

    def nbytes(self) -> int:
        """The device memory that it takes."""
        return self.capture.nbytes + sum(one.nbytes for one in self.outputs)

    def close(self) -> None:
        if not self.is_given_away:
            self.capture.close()


class SecondCapture:
    """The capture on other memory: a copy of module and arguments, with each storage on a shadow."""

    def __init__(self, recording: Recording, described: _outputs.ResultDescription, outputs: Sequence[torch.Tensor]) -> None:
        call = recording._call
        storages = list({int(one.storage.data_ptr()): one.storage for one in call.regions}.items())
        ranges = [(pointer, storage.nbytes()) for pointer, storage in storages]
        ranges += [(one.data_ptr(), _tensors.extent(one)) for one in outputs if one.numel()]
        self._shadows = Shadows(call.device, ranges)
        try:
            self._capture(recording, described, [pointer for pointer, _ in storages])
        except BaseException:
            self._shadows.close()
            raise

    def _capture(self, recording: Recording, described: _outputs.ResultDescription, pointers: list[int]) -> None:
        call, function = recording._call, recording._function
        shadows = dict(zip(pointers, self._shadows.storages))
        moved = _copies.MovedTensors(call.places, shadows, call.objects())
        regions = [moved.region(one) for one in call.regions]
        rest = iter(self._shadows.storages[len(pointers):])
        outputs = [_tensors.view_of(next(rest), _tensors.dtype_of(one.dtype), 0, one.sizes, one.strides, call.device) if _extent(one)
                   else one.allocate(call.device) for one in described.outputs]
        swapped, shared = function.in_place(call)
        not_copied = [*shared, *recording._generators.own(), *recording._tuners.all()]
        (owner, arguments), memo = _copies.copied((call.owner, call.arguments), moved, not_copied)
        itself = {id(one) for one in (*swapped, *shared)}
        objects = {path: value if id(value) in itself else memo.get(id(value), value) for path, value in call.objects().items()}
        with _copies.swapped(swapped, moved):
            self.capture = recording.capture(owner, arguments, described, outputs, objects, regions, never_runs=True)
        self.capture.keep = (owner, arguments, moved)
        at = {pointer: shadow for pointer, shadow in zip(pointers, self._shadows.pointers)}
        where = {one.name: at[int(one.storage.data_ptr())] + one.start for one in call.regions}
        self.pointers = [where[one.name] for one in call.inputs] + self._shadows.pointers[len(pointers):]
        self.pointers += [where[one.name] for one in call.states] + self.capture.words

    def nbytes(self) -> int:
        """The device memory that it takes."""
        return self.capture.nbytes + self._shadows.nbytes

    def close(self) -> None:
        capture = getattr(self, "capture", None)
        if capture is not None:
            capture.close()
        self._shadows.close()


def _names_and_sizes(full: _entry.Declaration) -> tuple[list[str], list[int]]:
    declared = (*full.inputs, *full.outputs, *full.states)
    return [one.name for one in declared], [one.nbytes for one in declared]


def _described_capture(one: Any, names: list[str], sizes: list[int], distance: int = 0) -> _entry.CapturedGraph:
    return _entry.CapturedGraph(one.capture.native, list(zip(names, one.pointers, sizes)), one.capture.scratch, one.capture.free_blocks(), distance)


def _extent(output: _outputs.Output) -> int:
    like = torch.empty_strided(output.sizes, output.strides, dtype=_tensors.dtype_of(output.dtype), device="meta")
    return _tensors.extent(like)


def version_of(tensor: torch.Tensor) -> int | None:
    """How often a tensor was written; None when its writes are not counted."""
    return None if tensor.is_inference() else tensor._version
