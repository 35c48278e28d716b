"""cache_compile for functions of PyTorch's tensors. On a hit, the call binds addresses and launches the graph. On a miss, the function runs
and answers the call, is captured twice, and the capture is stored."""
from __future__ import annotations

import collections
import contextlib
import functools
import logging
import threading
import types
from typing import Any, Callable, Mapping

import torch

from warmgraph import errors
from warmgraph.calls import _refusals
from warmgraph.calls._cached_function import CachedFunction
from warmgraph.calls._side_effects import ValueChange, difference
from warmgraph.calls._steady_calls import NOT_ALIKE, Tests
from warmgraph.core.binding import _fork
from warmgraph.core.cache import _cache
from warmgraph.core.cache._pools import pool_of
from warmgraph.reading import _plain_values, _reached_code
from warmgraph.reading._walker import Walker
from warmgraph.torch.read import _call_reader, _custom_operators, _installed_code, _modules
from warmgraph.torch.read._tensor_readers import TensorPlace
from warmgraph.torch.record import _compiler, _counted_numbers, _mega_cache, _operators, _recording
from warmgraph.torch.replay import (
    _borrowed_results, _bound_call, _counters, _declarations, _entry, _fact_lists, _garbage_collection, _launching, _modes, _moved_tensors, _outputs,
    _pausing, _preload, _refused_calls, _regions, _steady_torch_call, _surrounding_work,
)
from warmgraph.torch.replay._bound_call import BoundCall, TorchVariant
from warmgraph.torch.replay._regions import Region
from warmgraph.torch.replay._torch_call import Surroundings, TorchCall, common_device

_log = logging.getLogger("warmgraph")
_lock = threading.RLock()


_MOST_TRIES = 4
_MOST_OBJECTS = 16  # the most objects whose surroundings are kept
_MOST_LISTED = 256  # the most entries of the folder that are searched for counters
_MOST_COUNTED = 64  # the most entries with counters that are known


class TorchFunction:
    """The state that a wrapper has after the first call with PyTorch's tensors. A class's objects share it when they call one wrapped
    method."""

    captures: str | None = None  # the folder through which processes share captures; None: not shared
    may_give_up = True  # whether calls that are always refused may run without being checked each time
    may_count = True  # whether a replay may advance numbers in the arguments
    is_shown_none = False  # true if operators must not be shown to observers, because PyTorch compiles code that the function calls

    def __init__(self, wrapped: CachedFunction) -> None:
        function = wrapped._function
        assert function is not None
        self._is_compiled_function = hasattr(function, "_torchdynamo_orig_callable")
        self._module = wrapped.module
        self.how = wrapped.options.compile
        self._plain = function.__func__ if isinstance(function, types.MethodType) else function
        # If the caller compiled a method: the method's object. The compiled code always uses this object.
        self.held = None if self._plain is not function else getattr(_reached_code.compiled_from(function), "__self__", None)
        self._compiled: Callable[..., Any] | None = None
        self._traces = _compiler.Traces()
        self.reached = _installed_code.TorchReachedCode(self._plain)
        self._around: collections.OrderedDict[int, Surroundings] = collections.OrderedDict()
        self._quick: dict[Any, TorchVariant] = {}
        self._frozen, self._known = wrapped._shared.frozen, wrapped._shared.known
        self._tries: collections.Counter[Any] = collections.Counter()  # by key: attempts to make tests for later calls with this key
        self.steady: dict[int, list[_steady_torch_call.SteadyTorchCall]] = wrapped._shared.steady
        self._made_in = _fork.generation()
        self._is_begun = False
        self._served = self._refusals = self._put_off = 0  # how many calls were recorded or replayed, refused, and delayed to the next call
        self._keeps_grad = False  # whether the last refused call ran with gradients
        self._in_a_row: collections.Counter[int] = collections.Counter()  # refused calls in a row, by the id of the wrapper's object
        self._shapes: set[Any] = set()  # shapes of the calls that were not refused
        self._given_up: dict[int, _refused_calls.RefusedCalls] = wrapped._shared.given_up
        self._counted: list[_counters.Counters] = []  # of the entries that are known
        self._has_listed = False  # whether the folder's entries were searched for counters
        self.writes: set[str] = set()  # names of the regions that an answer wrote before their contents were copied

    @property
    def is_compiled_already(self) -> bool:
        """Whether the caller compiled the function. A module may be compiled at any time (`module.compile()`)."""
        return self._is_compiled_function or self._module is not None and _modules.is_compiled(self._module)

    @property
    def is_compiled(self) -> bool:
        return self.is_compiled_already or self.how is not False

    def _how_compiled(self) -> str:
        if not self.is_compiled:
            return ""
        if self.is_compiled_already:
            return f"True {_plain_values.shortened(_modules.how_compiled(self._plain if self._module is None else self._module), 1000)}".strip()
        return f"True {_plain_values.shortened(_modules.text_of_options(self.how), 1000)}" if isinstance(self.how, dict) else "True"

    def may_be_shown(self, call: TorchCall) -> bool:
        """Whether the call's operators may be shown to observers during the answer. They may not if the call runs compiled code: that code
        would then run uncompiled."""
        if self.is_compiled or self.is_shown_none or call.walker.compiled_via or not _operators.LEAVES_COMPILED_CODE:
            return False
        values = [*call.objects().values(), *_installed_code.values_of(call.around.reached)]
        return not any("_torchdynamo_orig_callable" in getattr(one, "__dict__", ()) for one in values)

    # --- Running

    def run(self, wrapped: CachedFunction, owner: Any, arguments: dict[str, Any]) -> Any:
        """Runs the function itself, compiled if the options say so, on this object and these arguments."""
        function = self._callable()
        target = function if owner is None or self.held is not None else functools.partial(function, owner)
        with _surrounding_work.running, _garbage_collection.later.not_now, self._traced(function):
            return self._invoked(wrapped, target, arguments)

    def _traced(self, function: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
        """Collects the traces that PyTorch compiles while `function` runs. Also used for calls that are not recorded, because a later call
        may run the code that is compiled now."""
        if not self.is_compiled:
            return contextlib.nullcontext()
        return self._traces.noticed(self._module if self._module is not None and self.is_compiled_already else function)

    def _frames(self, wrapped: CachedFunction, call: TorchCall) -> list[_compiler.Frame]:
        """The frames that PyTorch may have traced for a call. These are the frames of the function itself."""
        args, kwargs = wrapped._called(lambda *args, **kwargs: (args, kwargs), call.arguments)
        compiled = _reached_code.compiled_from(self._plain)
        if self._module is not None and self.is_compiled_already:
            return _compiler.frames_of(_modules.traced_of(self._module), args, kwargs)
        function = compiled if compiled is not None else self._plain
        if call.owner is not None and not isinstance(function, types.MethodType):
            function = types.MethodType(function, call.owner)
        return _compiler.frames_of([function], args, kwargs)

    def _invoked(self, wrapped: CachedFunction, target: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        return wrapped._called(target, arguments)

    def in_place(self, call: TorchCall) -> tuple[list[torch.Tensor], list[Any]]:
        """For the second capture: the tensors that must be moved themselves, because they are in no copy, and the objects that must not be
        copied."""
        if "argument" in call.walker.compiled_via or call.walker.optimizers:  # a copy of an optimizer lacks gradients and hooks
            return [place.tensor for place in call.places], [call.owner, *call.arguments.values()]
        if self.held is not None or "self" in call.walker.compiled_via:
            return [place.tensor for place in call.places if place.via != "argument"], [call.owner]
        return [place.tensor for place in call.places if place.via == "elsewhere"], []

    def _callable(self) -> Callable[..., Any]:
        if self.is_compiled_already or self.how is False:
            return self._plain
        if self._compiled is None:
            options = {"fullgraph": True, **(self.how if isinstance(self.how, dict) else {})}
            self._compiled = torch.compile(self._plain, **options)
        return self._compiled

    def as_it_is(self, wrapped: CachedFunction, owner: Any, arguments: dict[str, Any], keeps_grad: bool = False) -> Any:
        with contextlib.nullcontext() if keeps_grad else torch.no_grad():
            return self.run(wrapped, owner, arguments)

    # --- A call

    def again(self, owner: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the result of the call if it is like an earlier call, else NOT_ALIKE. owner: the id of the wrapper's object."""
        known = self.steady.get(owner, [])
        with _moved_tensors.using:  # while tensors are moved away, no call is like an earlier one
            for one in list(known):
                result = one.call(args, kwargs)
                if result is not NOT_ALIKE:
                    self._known.put_first(owner, one)
                    return result
        return NOT_ALIKE

    def _place_of(self, owner: int) -> int:
        """The key in `steady` for the calls of an object with this id. A compiled method's own object is not the wrapper's object."""
        return id(None) if self.held is not None and owner == id(self.held) else owner

    def __call__(self, wrapped: CachedFunction, owner: Any, arguments: dict[str, Any], args: tuple[Any, ...] = (),
                 kwargs: Mapping[str, Any] = types.MappingProxyType({})) -> Any:
        if _surrounding_work.is_inside():
            return self._inside(wrapped, owner, arguments)
        _fork.expect_same(self._made_in, f"'{wrapped._name()}'")
        if not self._is_begun:
            self._is_begun = True
            self.begin(wrapped)
        refusals, served = self._refusals + self._put_off, self._served
        with _moved_tensors.using, _garbage_collection.later:
            result = self._answer(wrapped, owner if owner is not None else self.held, arguments, args, kwargs)
        if self.may_give_up:
            self._weigh(wrapped, owner, args, kwargs, self._refusals + self._put_off != refusals, self._served != served)
        return result

    def _weigh(self, wrapped: CachedFunction, owner: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], was_refused: bool, was_served: bool) -> None:
        """Decides whether calls like this one are given up, or are tried again. was_refused: the call was refused, or recording it was
        delayed to the next call."""
        at, given_up = wrapped._object, self._given_up
        if was_served:
            self._in_a_row.pop(at, None)
            given_up.pop(at, None)
            _refused_calls.note_shapes(self._shapes, args, kwargs)
        if was_served or not was_refused:
            return
        self._in_a_row[at] += 1
        if self._in_a_row[at] < _refused_calls.FROM:
            return
        one = given_up.get(at)
        if one is None:
            while len(given_up) >= _MOST_OBJECTS:
                given_up.pop(next(iter(given_up)), None)
            why, function = wrapped._shared.last_refusal, _reached_code.function_of(self._plain)
            one = given_up[at] = _refused_calls.RefusedCalls(
                functools.partial(self._run_as_given, owner), lambda: getattr(function, "__code__", None),
                lambda: _refusals.note(wrapped, why, _launching.current_device), self._keeps_grad)
        one.add(args, kwargs)
        one.spare(self._shapes)

    def _run_as_given(self, owner: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Like run(), but with the arguments in the form in which the caller gave them."""
        function = self._callable()
        target = function if owner is None or self.held is not None else functools.partial(function, owner)
        with _surrounding_work.running, _garbage_collection.later.not_now, self._traced(function):
            return target(*args, **kwargs)

    def begin(self, wrapped: CachedFunction) -> None:
        """Starts loading device code while the model is read. The call's entry is not known yet, so this loads the entries of the last
        calls, which are mostly the same."""
        if torch.cuda.is_initialized() and not _preload.was_begun(wrapped, index := torch.cuda.current_device()):
            _preload.begin(wrapped, index)

    def _answer(self, wrapped: CachedFunction, owner: Any, arguments: dict[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        try:
            call, key, variant = self._read(owner, arguments)
        except Exception as error:
            return self._failed(wrapped, owner, arguments, error)
        given = [place for place in call.walker.places if place.via == "argument" and place.tensor.requires_grad
                 and not any(one.has(place) for one in call.walker.optimizers)]
        if given and torch.is_grad_enabled():
            return self._refuse(wrapped, owner, arguments,
                                f"{given[0].path} requires grad: call it under torch.no_grad(), or detach it", keeps_grad=True)
        if variant is None:
            return self._first(wrapped, call)
        bound = BoundCall(call, variant)
        try:
            bound.launch()
        except errors.MissForbidden:  # an input has another alignment, or overlaps others differently: this is handled like a first call
            self._around.pop(id(owner), None)
            return self._answer(wrapped, owner, arguments, args, kwargs)
        except _launching.NOT_LAUNCHED as error:
            return self._failed(wrapped, owner, arguments, error)
        self._served += 1
        self._expect_more(wrapped, key, bound, args, kwargs)
        return bound.result()

    def _expect_more(self, wrapped: CachedFunction, key: Any, bound: BoundCall, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Makes tests for later calls that are like this one. Gives up after some attempts."""
        if bound.variant.metadata.counters:  # each call changes what the tests would compare
            return
        self._tries[key] += 1
        steady = _steady_torch_call.steady_of(bound, args, kwargs, wrapped._signature, self._expect_outside) if self._tries[key] <= _MOST_TRIES else None
        if steady is not None and self._is_as_read(key, bound):
            self._known.put_first(self._place_of(id(bound.call.owner)), steady)

    def _is_as_read(self, key: Any, bound: BoundCall) -> bool:
        """Whether the current state is still the state that was read. Another thread may have moved weights or changed arguments during the
        launch; then the current state must not be used to recognise later calls."""
        with _lock:
            call = bound.call
            if not call.around.is_same():
                return False
            now, key_now = self._read_quickly(call.owner, call.arguments, call.around)
            pointers = [region.pointer for region in now.states]
            return bool(key_now == key and pointers == bound.states[:len(pointers)])

    def _expect_outside(self, tests: Tests, asks_stream: bool) -> list[tuple[Any, str]]:
        return _surrounding_work.expect_outside(tests, asks_stream)

    def _inside(self, wrapped: CachedFunction, owner: Any, arguments: dict[str, Any]) -> Any:
        """Runs the function when another run, capture or compilation calls it."""
        with _surrounding_work.first_run_allowed():
            return wrapped._called(self._plain if owner is None else functools.partial(self._plain, owner), arguments)

    def freeze(self, owner: Any) -> None:
        around = self._around.get(id(owner if owner is not None else self.held))
        if around is not None and around.is_same():
            around.freeze()

    def reset(self) -> None:
        self._quick.clear()
        self._tries.clear()
        self._around.clear()
        self.steady.clear()
        self._known.forget_refused()
        self._in_a_row.clear()
        self._shapes.clear()
        self._given_up.clear()

    def _read(self, owner: Any, arguments: dict[str, Any]) -> tuple[TorchCall, Any, TorchVariant | None]:
        """Returns (the call, its key among the used variants, the variant). The last two are None when everything had to be read."""
        with _lock:
            around = self._around.get(id(owner))
            if around is not None and around.is_same():
                call, key = self._read_quickly(owner, arguments, around)
                variant = self._quick.get(key)
                if variant is not None:
                    return call, key, variant
            return self._read_all(owner, arguments), None, None

    def _read_quickly(self, owner: Any, arguments: dict[str, Any], around: Surroundings) -> tuple[TorchCall, Any]:
        walker = _call_reader.read_arguments(around.reached, arguments)
        inputs, modes = _regions.regions_of(walker.places), _modes.modes()
        call = TorchCall(arguments, owner, walker, around, inputs + around.regions, common_device(walker.places + around.places), modes, walker)
        return call, self._key(call)

    def _key(self, call: TorchCall) -> Any:
        """The key of a call: its arguments, memory that they share with other tensors, and modes. None if the key would not suffice."""
        read, around, storages = call.of_arguments, call.around, call.around.storages()
        places = [place for place in read.places if place.via == "argument"]
        own = set(storages)
        shares = any(place.tensor.numel() and _regions.storage_key(place.tensor) in own for place in places)
        if shares or len(own) != len(storages) or not around.are_storages_apart():
            return None
        return _counters.key_of(self._counted, read.found.facts), self._rest_of_key(call, places)

    def _rest_of_key(self, call: TorchCall, places: list[TensorPlace]) -> Any:
        shared = tuple((path, id(value)) for path, value in call.of_arguments.objects.items() if id(value) in call.around.ids)
        # Functions and classes count by identity: the surroundings hold their closures and keep them alive.
        code = (*map(id, call.of_arguments.functions.values()), *map(id, call.of_arguments.classes))
        return (call.around.serial, shared, code, tuple(_regions.facts_of(_regions.regions_of(places)).items()), call.modes, call.device.index)

    def _read_all(self, owner: Any, arguments: dict[str, Any]) -> TorchCall:
        walker, reached = self._walked_anew(owner, arguments)
        regions = _regions.regions_of_walk(walker)
        around, before = Surroundings(walker, reached, regions), self._around.get(id(owner))
        if before is not None and before.stands_for(around):
            return self._call_of(owner, arguments, walker, before, regions)
        if id(owner) in self._frozen or owner is self.held and id(None) in self._frozen:
            around.freeze()
        self._around[id(owner)] = around  # this also keeps the object alive
        self.steady.pop(self._place_of(id(owner)), None)
        self._around.move_to_end(id(owner))
        while len(self._around) > _MOST_OBJECTS:
            self.steady.pop(self._place_of(self._around.popitem(last=False)[0]), None)
        return self._call_of(owner, arguments, walker, around, regions)

    @staticmethod
    def _call_of(owner: Any, arguments: dict[str, Any], walker: Walker, around: Surroundings, regions: list[Region]) -> TorchCall:
        device = common_device(walker.places)
        _modes.settle(device.index or 0)
        return TorchCall(arguments, owner, walker, around, regions, device, _modes.modes(), walker.of_arguments)

    def _walked_anew(self, owner: Any, arguments: dict[str, Any]) -> tuple[Walker, _installed_code.TorchReachedCode]:
        if not self.reached.is_current():
            self.reached = _installed_code.TorchReachedCode(self._plain)
        return self._walked(owner, arguments)

    def _walked(self, owner: Any, arguments: dict[str, Any]) -> tuple[Walker, _installed_code.TorchReachedCode]:
        return _call_reader.read(self.reached, arguments, owner, _custom_operators.operators_of(self.reached))

    def version(self, wrapped: CachedFunction, call: TorchCall) -> str:
        return wrapped.options.version or f"torch {call.around.reached.digest()}"

    def facts(self, call: TorchCall) -> dict[str, str]:
        """All facts of an entry except those about its inputs and states, which the library compares."""
        return {**_modes.facts(call.modes, call.around.reached.packages, self._how_compiled()), **call.walker.found.facts, **_regions.facts_of(call.regions, call.walker.parts)}

    # --- The first call of a variant

    def _first(self, wrapped: CachedFunction, call: TorchCall) -> Any:
        shared, policy = wrapped._shared, wrapped.policy
        try:
            values = self.facts(call)
            why = self._known.why_refused(values)
            may_load = policy != "off" and why is None
            given, key, variant = self._found(wrapped, call, values, may_load)
            if variant is None and may_load and self._lists_counters(wrapped, call):
                given, key, variant = self._found(wrapped, call, values, may_load)
        except Exception as error:
            return self._failed(wrapped, call.owner, call.arguments, error)
        if variant is None and why is not None:
            return self._refuse(wrapped, call.owner, call.arguments, why)
        if variant is not None:
            try:
                result = self._replay(call, variant)
            except errors.MissForbidden as miss:  # an input has another alignment, or overlaps others differently
                _log.info("'%s': %s", given.name, miss)
            except _launching.NOT_LAUNCHED as error:
                return self._failed(wrapped, call.owner, call.arguments, error)
            else:
                self._keep_if_possible(wrapped, call, key, variant)
                return result
        if policy == "require_hit":
            raise errors.MissForbidden(self._why_missing(wrapped, call, given))
        with _mega_cache.around(wrapped, call.device, policy) if self.is_compiled else contextlib.nullcontext():
            if policy in ("read_only", "off"):
                return self.as_it_is(wrapped, call.owner, call.arguments)
            return self._record(wrapped, call, given, key, values)

    def _found(self, wrapped: CachedFunction, call: TorchCall, values: dict[str, str], may_load: bool) -> tuple[_entry.Declaration, Any, TorchVariant | None]:
        """(the declaration of the call's entry, its key, the variant if it is known or stored)."""
        ways = [self._declared(wrapped, call, _counters.masked(one, values)) for one in (*_counters.fitting(self._counted, values), ())]
        for given, key in ways:
            with wrapped._shared.lock:
                variant = self._known.variant(key)
            if variant is not None:
                return given, key, variant
        for given, key in ways if may_load else ():
            variant = self._load(wrapped, call, given)
            if variant is not None:
                return given, key, variant
        return *ways[-1], None

    def _declared(self, wrapped: CachedFunction, call: TorchCall, facts: dict[str, str]) -> tuple[_entry.Declaration, Any]:
        given = self._declaration(wrapped, call, facts)
        return given, (call.device.index, given.version, tuple(facts.items()))

    def _lists_counters(self, wrapped: CachedFunction, call: TorchCall) -> bool:
        """Searches the folder, once, for entries with counters. True: there is one that fits the call's numbers, and it was not known."""
        numbers = map(_counters.number_of, call.of_arguments.found.facts.values())
        if self._has_listed or not self.may_count or all(one is None for one in numbers):
            return False
        self._has_listed = True
        device = _launching.device_of(call.device.index or 0)
        texts = _cache.stored_metadata(pool_of(wrapped._where()).caches[0], device, wrapped._name(), _MOST_LISTED)
        self._counted += [one for one in _counters.stored_in(texts, _outputs.from_text) if one not in self._counted]
        return bool(_counters.fitting(self._counted, call.of_arguments.found.facts))

    def _keep_if_possible(self, wrapped: CachedFunction, call: TorchCall, key: Any, variant: TorchVariant) -> None:
        self._served += 1
        try:
            self._keep(wrapped, call, key, variant)
        except Exception:  # the caller gets the result in any case
            _log.debug("the next call of '%s' is not prepared", wrapped._name(), exc_info=True)

    def _keep(self, wrapped: CachedFunction, call: TorchCall, key: Any, variant: TorchVariant) -> None:
        shared = wrapped._shared
        with shared.lock:
            self._known.last, shared.refused_report = variant, None
            if self._known.keep(key, wrapped.options.config.max_variants, lambda: variant):
                self._quick.clear()
        if len(self._quick) > 4096:
            self._quick.clear()
            self._tries.clear()
        quick = self._quick_key(call)
        if quick is not None:
            self._quick[quick] = variant

    def _quick_key(self, call: TorchCall) -> Any:
        """The key that the next call like this one will have."""
        return self._key(call)

    def _declaration(self, wrapped: CachedFunction, call: TorchCall, facts: dict[str, str]) -> _entry.Declaration:
        return _entry.Declaration(wrapped._name(), _declarations.decls(call.inputs), [], _declarations.decls(call.states), _fact_lists.listed(facts, call.walker),
                                  wrapped.options.config.environment, self.version(wrapped, call), "", wrapped.options.config.strict)

    def _load(self, wrapped: CachedFunction, call: TorchCall, given: _entry.Declaration) -> TorchVariant | None:
        device = _launching.device_of(call.device.index or 0)
        try:
            pool = pool_of(wrapped._where())
        except errors.InvalidArgument as error:
            raise _WrongOptions from error
        # The declaration for the look-up lacks the outputs, the generator's words and the access to states. The entry's metadata has them.
        text = _entry.found(pool.caches[0], device, given)
        if text is None:
            return None
        try:
            metadata = _outputs.from_text(text)
        except errors.Error as error:
            _log.warning("'%s' is recorded again: %s", given.name, error)
            return None
        missing = _outputs.missing_class(metadata.tree)
        if missing:
            _log.warning("'%s' is not replayed: %s", given.name, missing)
            return None
        words = _bound_call.words_of_generator(call.device) if metadata.draws else None
        why = _outputs.why_not_rebuilt(metadata, call.object)
        if why:
            _log.warning("'%s' is recorded again: %s", given.name, why)
            return None
        full = _declarations.completed(given, metadata, _bound_call.word_pointers(words))
        entry = pool.make_function(given.name, lambda cache, destroyed: _entry.Entry(cache, device, full, None, destroyed))
        return TorchVariant(entry, metadata, words, _borrowed(wrapped, metadata, call.device))

    def _why_missing(self, wrapped: CachedFunction, call: TorchCall, given: _entry.Declaration) -> str:
        """The library's reason why a call has no entry. The call's outputs are not known, so the reason always names them, too."""
        device = _launching.device_of(call.device.index or 0)
        try:
            entry = pool_of(wrapped._where()).make_function(
                given.name, lambda cache, destroyed: _entry.Entry(cache, device, given, None, destroyed))
            entry(device.stream, [one.pointer for one in call.inputs], [one.pointer for one in call.states])
        except errors.Error as error:
            return str(error)
        return f"'{given.name}' has no entry for this call, and the policy is require_hit: record it first with policy read_write"

    # --- Replay

    def _replay(self, call: TorchCall, variant: TorchVariant) -> Any:
        bound = BoundCall(call, variant)
        bound.launch()
        return bound.result()

    # --- A miss

    def _record(self, wrapped: CachedFunction, call: TorchCall, given: _entry.Declaration, key: Any, facts: dict[str, str]) -> Any:
        with _pausing.recording():
            return self._answer_and_record(wrapped, call, given, key, facts)

    def _answer_and_record(self, wrapped: CachedFunction, call: TorchCall, given: _entry.Declaration, key: Any, facts: dict[str, str]) -> Any:
        try:
            recording = self._new_recording(wrapped, call)
        except Exception as error:
            return self._failed(wrapped, call.owner, call.arguments, error)
        result = recording.answer()
        try:
            variant = self._adopted(wrapped, call, given, recording)
        except _recording.RecordNextTime as change:
            self._keeps_grad = False
            if self._in_a_row[wrapped._object] + 1 >= _refused_calls.FROM:  # such a call changes each time, e.g. because a cache grows
                self._note(wrapped, str(change), None)
            else:
                _log.info("'%s' is recorded at its next call: %s", given.name, change)
                wrapped._shared.last_refusal = str(change)
                self._put_off += 1
        except Exception as error:  # the caller gets the result in any case
            why = _reason(error)
            self._known.refuse(facts, why)
            self._keeps_grad = False
            self._note(wrapped, why, error)
        else:
            counters = variant.metadata.counters
            if counters:
                self._counted = [one for one in self._counted if one != counters][1 - _MOST_COUNTED:] + [counters]
                key = self._declared(wrapped, call, _counters.masked(counters, facts))[1]
            self._keep_if_possible(wrapped, call, key, variant)
        return result

    def _new_recording(self, wrapped: CachedFunction, call: TorchCall) -> _recording.Recording:
        return _recording.Recording(self, wrapped, call)

    def _adopted(self, wrapped: CachedFunction, call: TorchCall, given: _entry.Declaration, recording: _recording.Recording) -> TorchVariant:
        """Stores the recording of a call that was answered, and returns the variant."""
        with _moved_tensors.paused(), _recording.lock:
            moved = self._expect_unchanged(wrapped, call, given.name)
            if moved:
                values = call.of_arguments.found.facts
                numbers = {path: _counters.number_of(values[path]) or 0 for path in moved}
                recording.count(_counted_numbers.CountedNumbers(numbers, moved), lambda counters: self._declaration(
                    wrapped, call, _counters.masked(counters, self.facts(call))))
            try:
                entry, metadata, words = recording.adopted(given)
            except errors.NotRecordable as error:
                self._expect_again(call, moved, error)
                raise
            return TorchVariant(entry, metadata, words, _borrowed(wrapped, metadata, call.device))

    def _expect_unchanged(self, wrapped: CachedFunction, call: TorchCall, name: str) -> dict[str, int]:
        """Raises an error if the answer changed a plain value, because a replay would not change it. Returns how far it advanced numbers that a
        replay may advance, by path."""
        now, _ = self._walked(call.owner, call.arguments)
        change = difference(call.walker.found.facts, now.found.facts)
        moved: dict[str, int] = {}
        if change is not None and self.may_count and not self.is_compiled:
            moved = _counters.advanced(call.walker.found.facts, now.found.facts, call.of_arguments.found.facts)
            change = change if not moved else None
        if change is None and self.is_compiled:
            of = id(call.owner), self.version(wrapped, call)
            self._traces.expect_compared(now, self._frames(wrapped, call), of, wrapped.options.config.environment)
        if change is None:
            other = next((place.path for place, after in zip(call.walker.places, now.places) if place.tensor is not after.tensor), None)
            if other is not None:
                raise errors.NotRecordable(f"{other} is another tensor after the call, but a replay only writes into memory: write into the existing "
                                           "tensor (copy_)")
            setting = _modes.changed(call.modes)
            if setting:
                raise _recording.RecordNextTime(f"it changed a setting of PyTorch ({setting}), which a replay would not change: change it outside")
            return moved
        is_structure = change.was is None or change.now is None or change.was.startswith("tensor") or change.now.startswith("tensor")
        if is_structure or not self._known.is_changed_again(call.owner, change):
            raise _recording.RecordNextTime(f"{change}: the next call that changes nothing is recorded")
        raise errors.NotRecordable(f"{change}: a replay would not change it. Keep it in device memory, or change it outside")

    def _expect_again(self, call: TorchCall, moved: dict[str, int], error: errors.NotRecordable) -> None:
        """Raises RecordNextTime if numbers are the reason of a refusal, and perhaps only this call changed them."""
        for path, by in moved.items() if _counted_numbers.is_reason_of(error) else ():
            was = call.of_arguments.found.facts[path]
            if not self._known.is_changed_again(call.owner, ValueChange(path, was, f"int {(_counters.number_of(was) or 0) + by}")):
                raise _recording.RecordNextTime(f"{error}. The next call that changes nothing is recorded") from error

    def _failed(self, wrapped: CachedFunction, owner: Any, arguments: dict[str, Any], error: Exception) -> Any:
        """Handles an internal failure: the caller gets the function's own result. But an error that only the caller can fix is raised."""
        if isinstance(error, _WrongOptions) and error.__cause__ is not None:
            raise error.__cause__ from None
        if isinstance(error, errors.MissForbidden):
            raise error
        return self._refuse(wrapped, owner, arguments, _reason(error))

    def _refuse(self, wrapped: CachedFunction, owner: Any, arguments: dict[str, Any], why: str, keeps_grad: bool = False) -> Any:
        if wrapped.policy == "require_hit":
            raise errors.MissForbidden(f"'{wrapped._name()}' cannot be replayed, and the policy is require_hit: {why}")
        self._note(wrapped, why, None)
        self._keeps_grad = keeps_grad
        return self.as_it_is(wrapped, owner, arguments, keeps_grad)

    def _note(self, wrapped: CachedFunction, why: str, error: Exception | None) -> None:
        wrapped._shared.last_refusal = why
        self._refusals += 1
        _refusals.note(wrapped, why, _launching.current_device, is_counted=getattr(error, "is_counted", False))
        if why not in wrapped._shared.refused:
            wrapped._shared.refused.add(why)
            _log.warning("cannot record '%s': %s", wrapped._name(), why)
            if error is not None and not isinstance(error, errors.Error):
                _log.debug("'%s': where it failed", wrapped._name(), exc_info=error)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, errors.NotRecordable) else f"{type(error).__name__}: {error}"


class _WrongOptions(Exception):
    """The cache refuses the options of cache_compile. The error is this exception's cause."""


def _borrowed(wrapped: CachedFunction, metadata: _outputs.Metadata, device: torch.device) -> _borrowed_results.BorrowedResults | None:
    if not wrapped.options.borrow or not metadata.outputs:
        return None
    if not _borrowed_results.is_possible():
        if "borrow" not in wrapped._shared.refused:
            wrapped._shared.refused.add("borrow")
            _log.warning("results of '%s' are not borrowed: PyTorch %s cannot mark a result as stale", wrapped._name(), torch.__version__)
        return None
    return _borrowed_results.BorrowedResults(wrapped._name(), metadata.outputs, device)
