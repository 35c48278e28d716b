"""The results of a function's answer, and the memory contents before it. A captured graph that starts from these contents must give the
same results; if it does not, the function behaves differently under capture."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Container, Iterable, Iterator, NamedTuple, Sequence

import torch

from warmgraph import errors
from warmgraph.torch.read import _tensors
from warmgraph.torch.record import _constants, _operators
from warmgraph.torch.replay._regions import Region, storage_key

_MOST_UNASKED = 256 << 20  # the most bytes of memory that are copied before it is known whether the function writes them
_MOST_OF_ROOM = 8  # a copy goes to the host if it needs more than 1 / 8 of the device's free memory
# The tolerance for results, relative to the largest value, when the capture requested the same kernels: a library may round differently in
# a capture.
_ROUNDING = {torch.float32: 2e-3, torch.complex64: 2e-3, torch.float16: 2e-2, torch.bfloat16: 2e-2, torch.complex32: 2e-2}
# The tolerance when a function chose other operators because its stream captures, as PyTorch's own graph would. Transformers' models build an
# attention mask in a capture, and outside leave it out if it is all ones. Results of such implementations are nearer than those of a mistake.
_OTHER_OPERATORS = {torch.float32: 1e-5, torch.complex64: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2, torch.complex32: 4e-3}
_CURE = "do not ask in the function whether the stream is capturing, nor which stream is current; or pass the value that decides it as an argument"


class Start:
    """Copies of the call's memory from before the first write, by storage."""

    def __init__(self, regions: Sequence[Region]) -> None:
        self._regions = {int(one.storage.data_ptr()): one for one in regions}
        self._copies: dict[int, Any] = {}
        self._written: set[int] = set()  # storages that a shown operator wrote
        self._left: dict[int, Any] = {}  # copies of the memory after the answer
        self.problem = ""  # why a copy could not be made
        self.asked = _operators.OperatorTexts()
        self.reads = _constants.HostReads(self.asked)

    def keep(self, region: Region) -> None:
        """Copies the region's current memory, unless there is a copy already."""
        key = int(region.storage.data_ptr())
        if key in self._copies or self.problem:
            return
        try:
            self._copies[key] = _copy_of(region.storage)
        except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError
            self.problem = f"{region.name} is written, but there is no memory to save its previous contents ({type(error).__name__})"

    def keep_some(self, regions: Sequence[Region], names: Container[str], also_small: bool) -> None:
        """Copies the regions with these names. also_small: the call's operators are not shown, so small regions that the call may write are
        copied, too."""
        left = _MOST_UNASKED if also_small else 0
        for region in regions:
            nbytes = int(region.storage.nbytes())
            is_asked = region.name in names
            if is_asked or nbytes <= left and not all(isinstance(place.tensor, torch.nn.Parameter) for place in region.places):
                self.keep(region)
                left -= 0 if is_asked else nbytes

    def shown(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """For _operators.shown_to: copies the memory that the operator is about to write, and notes the operator's text. Raises nothing, so
        that the answer is not disturbed."""
        try:
            self.asked(func, args, kwargs)
            for tensor in _operators.written(func, args, kwargs):
                region = self._regions.get(storage_key(tensor)) if _has_memory(tensor) else None
                if region is not None:
                    self._written.add(int(region.storage.data_ptr()))
                    self.keep(region)
        except Exception as error:
            self.problem = self.problem or f"the arguments of {func} cannot be read: {type(error).__name__}: {error}"

    def was_written(self, region: Region) -> bool:
        """Whether an operator that was shown wrote the region. The versions of tensors do not tell: operators on lists of tensors
        (torch._foreach_add_, torch._fused_adamw_) leave them."""
        return int(region.storage.data_ptr()) in self._written

    def has(self, region: Region) -> bool:
        return int(region.storage.data_ptr()) in self._copies

    def end(self) -> None:
        """Copies the memory as it is after the answer."""
        self._left = {key: _copy_of(self._regions[key].storage) for key in self._copies}

    def nbytes(self) -> int:
        """The device memory that the copies take."""
        copies = (*self._copies.values(), *self._left.values())
        return sum(int(one.nbytes()) for one in copies if one.device.type == _tensors.DEVICE_TYPE)

    @contextlib.contextmanager
    def there(self) -> Iterator[None]:
        """Inside the block the memory has its contents from before the answer. At the end of the block, its contents after the answer are
        restored."""
        for key, copy in self._copies.items():
            self._regions[key].storage.copy_(copy)
        try:
            yield
        finally:
            for key, copy in self._left.items():
                self._regions[key].storage.copy_(copy)
            _settle(one.storage.device for one in self._regions.values())  # waits first, because other streams may still read the memory

    def left(self) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
        """Returns (path, contents after the answer, contents now) for each tensor in memory that the answer wrote."""
        found = []
        for key, copy in self._left.items():
            for place in self._regions[key].places:
                tensor = place.tensor.detach()
                was = _tensors.view_of(copy, tensor.dtype, _tensors.start_in_storage(tensor), tensor.size(), tensor.stride(), copy.device)
                found.append((place.path, was, tensor))
        return found


def _settle(devices: Iterable[torch.device]) -> None:
    """Waits for the devices' work."""
    for device in {one for one in devices if one.type == "cuda"}:
        torch.cuda.synchronize(device)


def _has_memory(tensor: torch.Tensor) -> bool:
    return type(tensor) in _tensors.PLAIN_TYPES and tensor.layout == torch.strided and tensor.numel() > 0


def _copy_of(storage: Any) -> Any:
    if storage.device.type == "cuda" and storage.nbytes() * _MOST_OF_ROOM > torch.cuda.mem_get_info(storage.device)[0]:
        return storage.cpu()
    return storage.clone()


class CaptureDiffers(errors.NotRecordable):
    """The function behaves differently under capture."""


class ResultPair(NamedTuple):
    """A result. `answer`: the tensor that the function returned; `found`: the tensor that each run of the graph writes."""

    name: str
    answer: torch.Tensor
    found: torch.Tensor


class AnswerJudge:
    """Compares the runs of a captured graph with the answer. Each run starts from the memory contents that the answer started from."""

    def __init__(self, given: Sequence[ResultPair], difference: Callable[[], str] | None, has_asked: bool = False) -> None:
        """difference: describes how the operators of the capture differ from those of the answer, or returns "" when they are the same.
        None: the operators are not known. has_asked: the function asked whether its stream is capturing, and got the truth."""
        self._difference, self._has_asked = difference, has_asked
        self._runs, self._is_same_at_once = 0, True
        self._apart = list(given)  # results that no run has reproduced
        self._outcomes: list[list[torch.Tensor]] = [[] for _ in given]  # for each of these results, its distinct values in the runs

    def nbytes(self) -> int:
        """The memory that the runs' results take."""
        return sum(one.nbytes for outcomes in self._outcomes for one in outcomes)

    def after_run(self) -> None:
        """Call this after each run, with the results in the graph's memory."""
        self._runs += 1
        left = []
        for one, outcomes in zip(self._apart, self._outcomes):
            if _is_same(one.answer, one.found):
                continue
            now = _flat(one.found)
            if not any(_is_same(now, before) for before in outcomes):
                outcomes.append(now.clone())
            left.append((one, outcomes))
        if self._runs == 1:
            self._is_same_at_once = not left
        self._apart, self._outcomes = [one for one, _ in left], [outcomes for _, outcomes in left]
        _settle(one.found.device for one in self._apart)  # waits for the copies before the next run writes there

    def agreement(self) -> str:
        """Call this after the last run. Returns "bitwise", "within its spread" or "within rounding". Raises Differs if the results do not
        agree."""
        if not self._apart:
            return "bitwise" if self._is_same_at_once else "within its spread"
        if all(_is_real(one.answer) for one in self._apart):
            if all(_is_near(one, outcomes) for one, outcomes in zip(self._apart, self._outcomes)):
                return "within its spread"
            if self._difference is not None and self._difference() == "" and all(_is_within(_ROUNDING, one) for one in self._apart):
                return "within rounding"
            if self._has_asked and all(_is_within(_OTHER_OPERATORS, one) for one in self._apart):
                return "within rounding, with the operators that it chooses in a capture"
        raise CaptureDiffers(_text(self._apart[0], self._difference() if self._difference is not None else ""))


def _text(one: ResultPair, difference: str) -> str:
    answer, found = _flat(one.answer), _flat(one.found.to(one.answer.device))
    different = (_wide(answer) != _wide(found)).nonzero()
    at = int(different[0]) if len(different) else 0
    numbers = f"element {at} was {answer[at].item()} in the call itself and is {found[at].item()} in the graph, {len(different)} of {answer.numel()} differ"
    largest = f" by up to {_largest(_wide(answer) - _wide(found)):.3g}, the largest value is {_largest(_wide(answer)):.3g}" if _is_real(answer) else ""
    return f"the function behaves differently under capture: {one.name} ({numbers}{largest}){f'; {difference}' if difference else ''}. {_CURE[0].upper()}{_CURE[1:]}"


# --- Comparing numbers


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    whole = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return torch.view_as_real(whole).reshape(-1) if whole.is_complex() else whole


def _is_real(tensor: torch.Tensor) -> bool:
    """Whether values of this type are compared with a tolerance."""
    return tensor.is_floating_point() or tensor.is_complex()


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """Converts to a wider type that holds all values and can compute with them."""
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor.to(torch.int64)


def _largest(values: torch.Tensor) -> float:
    """The largest absolute value among the finite values."""
    return float(torch.nan_to_num(values.double().abs(), 0.0, 0.0, 0.0).max()) if values.numel() else 0.0


def _is_same(answer: torch.Tensor, found: torch.Tensor) -> bool:
    """Whether all bytes of both tensors are equal."""
    return torch.equal(_flat(answer).view(torch.uint8), _flat(found).to(answer.device).view(torch.uint8))


def _has_same_specials(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether both tensors have NaN and infinities at the same places."""
    return torch.equal(torch.nan_to_num(one, 1.0, 2.0, 3.0)[~one.isfinite()], torch.nan_to_num(other, 1.0, 2.0, 3.0)[~one.isfinite()]) \
        and torch.equal(one.isfinite(), other.isfinite())


def _is_within(tolerances: dict[torch.dtype, float], one: ResultPair) -> bool:
    """Whether the largest difference is within the tolerance for the type, relative to the largest value."""
    tolerance = tolerances.get(one.answer.dtype)
    answer, found = _wide(_flat(one.answer)), _wide(_flat(one.found.to(one.answer.device)))
    return tolerance is not None and _has_same_specials(answer, found) and _largest(answer - found) <= tolerance * _largest(answer)


class _Departure(NamedTuple):
    """How far a result is outside the envelope of other results: the number of elements outside it, and the largest distance."""

    elements: int
    farthest: float


def _departure(candidate: torch.Tensor, others: Sequence[torch.Tensor], eps: float) -> _Departure:
    """Compares `candidate` with the envelope (minimum and maximum of each element) of `others`. A distance of one rounding does not count."""
    low = torch.stack(list(others)).amin(0)
    high = torch.stack(list(others)).amax(0)
    beyond = torch.maximum(low - candidate, candidate - high)
    beyond = torch.where(beyond > eps * candidate.abs(), beyond, torch.zeros_like(beyond))
    return _Departure(int((beyond > 0).sum()), float(beyond.max()) if beyond.numel() else 0.0)


def _is_near(one: ResultPair, outcomes: Sequence[torch.Tensor]) -> bool:
    """Whether the answer is close to the envelope of the graph's runs. Compared with the run that leaves the envelope of the other runs
    most, it may have twice as many elements outside, at twice the distance (for the rule see capture/src/verify/spread.hpp: of nine
    equal runs, each is equally often the farthest)."""
    answer, eps = _wide(_flat(one.answer)), torch.finfo(outcomes[0].dtype).eps
    wide = [_wide(each).to(answer.device) for each in outcomes]
    if len(wide) < 2 or not all(_has_same_specials(answer, each) for each in wide):
        return False
    answer, wide = torch.nan_to_num(answer, 0.0, 0.0, 0.0), [torch.nan_to_num(each, 0.0, 0.0, 0.0) for each in wide]
    own = [_departure(each, [other for other in wide if other is not each], eps) for each in wide]
    found = _departure(answer, wide, eps)
    return found.elements <= 2 * max(each.elements for each in own) and found.farthest <= 2 * max(each.farthest for each in own)
