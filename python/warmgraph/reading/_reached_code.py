"""Finds the code that a function may run: its own, and that of the functions that it names, through globals, closures and classes. Never
reads source."""
from __future__ import annotations

import collections
import copy
import dis
import functools
import hashlib
import importlib
import importlib.util
import operator
import platform
import sys
import sysconfig
import types
from typing import Any, Callable, Iterable, Iterator, Mapping

from warmgraph.reading import _identity_checks
from warmgraph.reading._code_objects import code_digest, nested, read_code

PACKAGE = __name__.partition(".")[0]  # this package; reading continues in the function that its wrappers wrap
_MOST = 10_000  # the most functions that one function may name
_KEPT = 32  # the most larger sets (see with_met) that are kept for one function
_NOT_OF_A_CALL = {"__init__", "__new__", "__del__", "__reduce__", "__getstate__", "__setstate__", "__deepcopy__"}
_OF_ENUMERATIONS = {"_missing_"}
_OF_PYTHON = {*dir(object), *dir(type), "__weakref__", "__slots__", "__orig_bases__", "__parameters__", "__wrapped__", "__post_init__",
              "__dataclass_fields__", "__dataclass_params__", "__builtins__", "__loader__", "__spec__", "__cached__"}
_OF_AN_INSTANCE = {"__init__", "__new__"}
_INSTALLED = tuple(folder + "/" for folder in {sysconfig.get_paths()[name] for name in ("purelib", "platlib", "stdlib")})
_FOLLOWED = (types.FunctionType, types.BuiltinFunctionType, types.CodeType, type, staticmethod, classmethod, property,
             functools.cached_property)
_SINGLE_DISPATCH = functools.singledispatch


def function_of(callable_: Any) -> types.FunctionType | None:
    """The Python function that a method, a partial, or a wrapper of functools or this package finally calls. A Python function that wraps
    another one is returned itself."""
    for _ in range(100):
        if isinstance(callable_, types.FunctionType):
            compiled = compiled_from(callable_)
            if compiled is None:
                return callable_
            callable_ = compiled
        else:
            callable_ = below(callable_)
        if callable_ is None:
            return None
    return None


def compiled_from(function: Any) -> Any:
    """The function from which torch.compile made this one; None if torch.compile did not make it. For PyTorch's own functions (the forward
    of torch.nn.Sequential), Dynamo's wrapper around them is removed."""
    given = getattr(function, "__dict__", {}).get("_torchdynamo_orig_callable")
    while isinstance(given, types.FunctionType) and given.__code__.co_filename.endswith("torch/_dynamo/external_utils.py") and "__wrapped__" in given.__dict__:
        given = given.__dict__["__wrapped__"]
    return given


def held_by_compiled(function: Any) -> Any:
    """The method, partial or other object from which torch.compile made this function; None if it was made from a Python function. Following the
    code does not find such an object's values."""
    given = compiled_from(function)
    return None if isinstance(given, types.FunctionType) else given


def below(callable_: Any) -> Any:
    """The callable that a method, a partial or a wrapper calls; None for any other object."""
    if isinstance(callable_, types.MethodType):
        return callable_.__func__
    if isinstance(callable_, functools.partial):
        return callable_.func
    if isinstance(callable_, (functools.cached_property, functools.partialmethod)):
        return callable_.func
    if isinstance(callable_, functools.singledispatchmethod):
        return callable_.dispatcher
    if isinstance(callable_, (staticmethod, classmethod)) or type(callable_).__module__.split(".")[0] in ("functools", PACKAGE):
        return getattr(callable_, "__wrapped__", None)
    return None


class ReachedCode:
    """The function itself and the functions that it names, through globals, closures, and methods of the classes that it names. A call may
    find more code (functions as values, objects); then `with_met` makes a larger set."""

    def __init__(self, function: Callable[..., Any], classes: Mapping[type, bool] = types.MappingProxyType({}),
                 functions: Iterable[types.FunctionType] = ()) -> None:
        self.functions: list[types.FunctionType] = []  # the user's own functions; a library's functions count only by their digest
        self.globals: list[list[str]] = []  # for each function, the names of the globals that it uses
        self.names: set[str] = set()  # attribute names that occur in any of the functions
        self.modules: list[types.ModuleType] = []  # the user's own modules that functions import
        self._function = function
        self._root = function_of(function)  # the Python function; its closure counts even if the function is an installed package's
        self._package = (getattr(function_of(function), "__module__", None) or "").split(".")[0]
        self._seen: dict[int, Any] = {}
        self.wrappers: set[int] = set()  # ids of library functions that wrap the user's functions (@torch.no_grad()), or are wrapped
        self._classes: dict[type, bool] = {}
        self._added: dict[type, bool] = {}  # for each class, also of libraries: whether code constructs objects of it
        self._members: dict[type, set[str]] = {}  # names of the followed members of each user's class
        self._held: dict[type, tuple[list[str], list[Any]]] = {}  # names and values in each class when it was read
        self._digests: set[bytes] = set()
        self._digest = (-1, "")  # (number of digests, digest of all of them)
        self._references: list[tuple[Callable[[], Any], Any]] = []  # the followed values, each with a function that reads it again
        self._rest: list[tuple[Callable[[], Any], Any]] = []  # those references that are not items of a dictionary
        self._sorted = 0  # how many references were already sorted into `_rest`
        self._of_root = 0  # how many references at the beginning belong to the function itself
        self._larger: collections.OrderedDict[Any, ReachedCode] = collections.OrderedDict()
        self._visit([function])  # first, because the function must be the first in `functions`
        self._visit(functions)
        for kind, is_constructed in classes.items():
            self.add_class(kind, is_constructed)

    def add_class(self, kind: type, is_constructed: bool = False) -> None:
        """Adds the class's methods that code names, and those that Python calls itself. `is_constructed`: code makes objects of the class."""
        if self._added.get(kind, -1) >= is_constructed:
            return
        self._added[kind] = is_constructed
        order = " ".join(f"{one.__module__}.{one.__qualname__}" for one in kind.__mro__)  # this order decides which method is called
        self._digests.add(hashlib.sha256(f"order {order}".encode("utf-8", "surrogatepass")).digest())
        for one in (*kind.__mro__, *type.mro(type(kind))):
            if self.is_library(one.__module__, None) or (one in self._classes and self._classes[one] >= is_constructed):
                continue
            self._classes[one] = is_constructed
            self._hold(one)
            self._visit(self._methods(one))

    def with_met(self, classes: Mapping[type, bool], functions: Iterable[types.FunctionType]) -> ReachedCode:
        functions = list(functions)
        key = (tuple(classes.items()), tuple(map(id, functions)))
        found = self._larger.pop(key, None)
        if found is None or not found.is_current() or not found._has_same_classes():
            found = type(self)(self._function, classes, functions)
        self._larger[key] = found
        if len(self._larger) > _KEPT:
            self._larger.popitem(last=False)
        return found

    def around(self) -> SurroundingCode | None:
        """The code that any other function with this code object reaches, too. None if this function adds code of its own through its
        closure or attributes."""
        root = self._root
        if root is None or not self._of_root or self._brings_code(root) or id(root) in self.wrappers:
            return None
        return SurroundingCode(self, root)

    def take_over(self, around: SurroundingCode, classes: Mapping[type, bool]) -> bool:
        """Uses `around` for with_met(classes, ()), and returns True, if reading would find the same code. `around` must come from a
        function that found these classes."""
        root = self._root
        if root is None or not around.is_of(root) or self._brings_code(root) or not around.is_current():
            return False
        self._larger[tuple(classes.items()), ()] = around.read(self, root)
        return True

    def _copy(self) -> ReachedCode:
        """A copy. Nothing is read again for it."""
        other = copy.copy(self)
        other._rest, other._sorted, other._larger = [], 0, collections.OrderedDict()
        return other

    @staticmethod
    def _brings_code(function: types.FunctionType) -> bool:
        held = [_contents(cell) for cell in function.__closure__ or ()]
        return bool(function.__dict__) or any(isinstance(one, type) or function_of(one) is not None for one in held)

    def reads_as(self, other: ReachedCode) -> bool:
        """Whether a walk with `other` reads the same values."""
        return self.names == other.names and self.globals == other.globals and self.modules == other.modules \
            and self.wrappers == other.wrappers and list(map(id, self.functions)) == list(map(id, other.functions))

    def latest(self) -> ReachedCode:
        """The set that the last call used if it is current, else this set."""
        last = next(reversed(self._larger.values()), self)
        return last if last is self or last.is_current() else self

    def is_current(self) -> bool:
        """Whether all globals, closures, methods and code objects that were followed are still the same."""
        return all(_followed(look()) is value for look, value in self._references)

    def items(self) -> list[_identity_checks.Item]:
        """The dictionary items that `is_current` checks."""
        return [look for look, _ in self._references if isinstance(look, _identity_checks.Item)]

    def is_rest_current(self) -> bool:
        """The same as is_current() for the references that are not items of a dictionary."""
        if self._sorted != len(self._references):
            references = list(self._references)
            self._rest, self._sorted = [one for one in references if not isinstance(one[0], _identity_checks.Item)], len(references)
        for look, value in self._rest:
            now = look()
            if now is not value and _followed(now) is not value:
                return False
        return True

    def _hold(self, kind: type) -> None:
        self._held[kind] = [*kind.__dict__], [*kind.__dict__.values()]

    def _has_same_classes(self) -> bool:
        """Whether the methods of all classes that were read are unchanged. Other values in classes need no check here, because they are
        facts."""
        return all(_is_held(kind, names, values) for kind, (names, values) in self._held.items())

    def digest(self) -> str:
        """The digest of all this code. It is the same in every process that runs the same code with the same Python. It is cached by the
        number of digests, because digests are only added."""
        if self._digest[0] != len(self._digests):
            state = hashlib.sha256(f"{sys.implementation.name} {platform.python_version_tuple()[:2]}".encode())
            for one in sorted(self._digests):
                state.update(one)
            self._digest = len(self._digests), state.hexdigest()
        return self._digest[1]

    @property
    def attributes(self) -> set[str]:
        """The attribute names that the code uses, without Python's own names."""
        return self.names - _OF_PYTHON

    @property
    def code(self) -> types.CodeType | None:
        """The code object of the function itself."""
        return self._root.__code__ if self._root is not None else None

    @property
    def target(self) -> Any:
        """The callable that this set was made for."""
        return self._function

    def is_library(self, module: str | None, file: str | None) -> bool:
        """Whether code is not the user's own. It belongs to the standard library, to an installed package (except the function's own
        package), or to this package."""
        package = (module or "").split(".")[0]
        if package == self._package:
            return False
        if package in sys.stdlib_module_names or package == PACKAGE:
            return True
        file = file or file_of(module)
        return file is None or file.startswith(_INSTALLED)

    def _visit(self, found: Iterable[Any]) -> None:
        waiting = list(found)
        while waiting and len(self._seen) < _MOST:
            value = waiting.pop()
            if isinstance(value, type):
                if self._classes.get(value) is not True:
                    self.add_class(value, is_constructed=True)
                continue
            function = function_of(value)
            if function is None or id(function) in self._seen:
                continue
            self._seen[id(function)] = function
            self._digests.add(code_digest(function.__code__))
            is_wrapper = False
            if self._is_of_library(function):
                is_wrapper = self._wraps_users(function)
                if not is_wrapper and function is not self._root:
                    continue
                self.wrappers.add(id(function))
                waiting.append(function.__dict__.get("__wrapped__"))
            waiting += self._implementations(function)
            self.functions.append(function)
            self.globals.append([] if is_wrapper else read_code(function.__code__).globals)
            self._references += _of_function(function)
            waiting += self._named(function, self.globals[-1])
            if function is self._root:
                self._of_root = len(self._references)
            new = read_code(function.__code__).names - self.names
            if new:
                self.names |= new
                for kind in list(self._classes):
                    waiting += self._methods(kind, new)

    def _is_of_library(self, function: types.FunctionType) -> bool:
        return self.is_library(function.__module__, function.__code__.co_filename)

    def _wraps_users(self, function: types.FunctionType) -> bool:
        if any(not self._is_of_library(one) for one in map(function_of, _registry_of(function).values()) if one is not None):
            return True
        inner: types.FunctionType | None = function
        for _ in range(100):
            inner = function_of(inner.__dict__.get("__wrapped__"))
            if inner is None:
                return False
            if not self._is_of_library(inner):
                return True
        return False

    def _implementations(self, function: types.FunctionType) -> list[Any]:
        """The implementations that functools.singledispatch chooses by an argument's class. Registering another implementation changes the
        code."""
        known = tuple(_registry_of(function).items())
        for kind, implementation in implementations_of(function):
            self._note("singledispatch", kind, implementation)
        if known:
            self._references.append((functools.partial(_unless_registered, function, known), function.__code__))
        return [implementation for _, implementation in known]

    def _note(self, owner: str, name: str, value: Any) -> None:
        """Adds a digest of the owner, the name and the code. Without it, exchanging two functions would not change the set of digests."""
        function = function_of(value)
        if function is not None:
            self._digests.add(hashlib.sha256(f"{owner} {name} ".encode("utf-8", "surrogatepass") + code_digest(function.__code__)).digest())

    def _named(self, function: types.FunctionType, names: Iterable[str]) -> list[Any]:
        """Functions and classes that the function's code finds by name."""
        found = []
        code = code_digest(function.__code__).hex()
        for name in names:
            found.append(function.__globals__.get(name))
            self._note(code, name, found[-1])
            self._references.append((_identity_checks.Item(function.__globals__, name), _followed(found[-1])))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            found.append(_contents(cell))
            self._note(code, name, found[-1])
        self._references += _of_closure(function)
        self.modules += [one for one in _imported_in(function, self) if one not in self.modules]
        return found

    def _methods(self, kind: type, among: set[str] | None = None) -> list[Any]:
        """The class's methods that are called and were not followed yet. among: only methods with these names, which code has begun to use;
        None: all methods."""
        found: list[Any] = []
        held, followed = kind.__dict__, self._members.setdefault(kind, set())
        names = held.keys() if among is None else among & held.keys()
        if not names:
            return found
        owner = f"{kind.__module__}.{kind.__qualname__}"
        for name in sorted(names - followed):
            member = held[name]
            is_called = name in _OF_ENUMERATIONS or name.startswith("__") and (name not in _NOT_OF_A_CALL or (name in _OF_AN_INSTANCE and self._classes[kind]))
            if name == "__mro__" or not (name in self.names or is_called) or isinstance(member, type):
                continue
            followed.add(name)
            if isinstance(member, property):
                for what in ("fget", "fset", "fdel"):
                    if getattr(member, what) is not None:
                        found.append(getattr(member, what))
                        self._note(owner, f"{name} {what}", found[-1])
            else:
                found.append(member)
                self._note(owner, name, member)
            self._references.append((_identity_checks.Item(kind.__dict__, name), _followed(member)))
        return found


class SurroundingCode:
    """The code that a function reaches through globals and classes, without the function itself. Other functions with the same code object,
    like the graphs of a table, reach the same code. Keeps nothing from the function's closure."""

    def __init__(self, reached: ReachedCode, root: types.FunctionType) -> None:
        self.code, self._globals, self._module = root.__code__, root.__globals__, root.__module__
        names = len(reached.globals[0])
        kept = self._kept = reached._copy()
        kept._function = kept._root = None  # type: ignore[assignment]
        kept._seen = {key: value for key, value in reached._seen.items() if key != id(root)}
        kept.functions = [one for one in reached.functions if one is not root]
        kept._references = reached._references[2:2 + names] + reached._references[reached._of_root:]  # without the root's code and closure
        self._names = names

    def is_of(self, root: types.FunctionType) -> bool:
        return root.__code__ is self.code and root.__globals__ is self._globals and root.__module__ == self._module

    def is_current(self) -> bool:
        return self._kept.is_current() and self._kept._has_same_classes()

    def read(self, reached: ReachedCode, root: types.FunctionType) -> ReachedCode:
        """The set for `root`, the same as if `root` was read. `reached` is the set that `root` has so far."""
        found = self._kept._copy()
        found._function, found._root = reached._function, root
        found._seen = {**found._seen, id(root): root}
        found.functions = [root, *found.functions]
        own = _of_function(root)
        found._references = [*own, *found._references[:self._names], *_of_closure(root), *found._references[self._names:]]
        return found


def _of_function(function: types.FunctionType) -> list[tuple[Callable[[], Any], Any]]:
    """The attributes of a function that are checked later, as pairs of a function that reads the attribute and its value."""
    return [(functools.partial(getattr, function, "__code__"), function.__code__),
            (_identity_checks.Item(function.__dict__, "__wrapped__"), _followed(function.__dict__.get("__wrapped__")))]


def _of_closure(function: types.FunctionType) -> list[tuple[Callable[[], Any], Any]]:
    return [(functools.partial(_contents, cell), _followed(_contents(cell))) for cell in function.__closure__ or ()]


def name_of_class(kind: type) -> str:
    """The class's name. A class that a function made cannot be found by its name; it therefore also gets a digest of its methods."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    if found is kind:
        return name
    state = hashlib.sha256()
    for member_name, member in sorted(kind.__dict__.items()):
        parts = (member.fget, member.fset, member.fdel) if isinstance(member, property) else (member,)
        for function in filter(None, map(function_of, parts)):
            state.update(member_name.encode("utf-8", "surrogatepass") + code_digest(function.__code__))
    return f"{name} {state.hexdigest()[:16]}"


def implementations_of(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """(class, function) for each implementation that functools.singledispatch chooses from."""
    for kind, implementation in _registry_of(function).items():
        yield f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', kind)}", implementation


def _registry_of(function: types.FunctionType) -> Mapping[Any, Any]:
    """Implementations by class, for a function made by functools.singledispatch."""
    found = function.__dict__.get("registry")
    is_one = isinstance(found, types.MappingProxyType) and function.__code__.co_filename == _SINGLE_DISPATCH.__code__.co_filename
    return found if is_one and found is not None else {}


def _unless_registered(function: types.FunctionType, known: tuple[tuple[Any, Any], ...]) -> Any:
    now = _registry_of(function)
    is_same = len(now) == len(known) and all(now.get(kind) is implementation for kind, implementation in known)
    return function.__code__ if is_same else None


def file_of(module: str | None) -> str | None:
    """The file of a module. For a package without a file, its first folder."""
    found = sys.modules.get(module or "")
    return getattr(found, "__file__", None) or next((str(folder) + "/" for folder in getattr(found, "__path__", None) or ()), None)


def is_code(value: Any) -> bool:
    """Whether Reached follows the value by name."""
    return isinstance(value, types.FunctionType)


def _is_held(kind: type, names: list[str], values: list[Any]) -> bool:
    now = kind.__dict__
    if len(now) == len(values) and all(map(operator.is_, now.values(), values)):
        return True
    return [*now] == names and all(one is other or not (_followed(one) or _followed(other)) for one, other in zip(now.values(), values))


def _followed(value: Any) -> Any:
    return value if isinstance(value, _FOLLOWED) else None


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the closure's variable is not set yet
        return None


def closed_over(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue


def defaults_of(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    code, values = function.__code__, function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(values):code.co_argcount], values)
    yield from (function.__kwdefaults__ or {}).items()


def _imported_in(function: types.FunctionType, reached: ReachedCode) -> Iterator[types.ModuleType]:
    """The modules that a function's code imports when it runs. Imports them now, so that their code counts before the function is called."""
    package = function.__globals__.get("__package__") or ""
    for code in nested(function.__code__):
        if dis.opmap["IMPORT_NAME"] not in code.co_code[::2]:
            continue
        instructions = list(dis.get_instructions(code))
        for at, one in enumerate(instructions):
            if one.opname != "IMPORT_NAME":
                continue
            level = instructions[at - 2].argval  # three instructions in a row: LOAD_CONST level, LOAD_CONST names, IMPORT_NAME
            try:
                name = importlib.util.resolve_name("." * int(level) + str(one.argval), package)
                module = _module_named(name, reached)
            except Exception:  # the function itself raises the error when it runs the import
                continue
            if module is not None:
                yield module


def _module_named(name: str, reached: ReachedCode) -> types.ModuleType | None:
    if name in sys.modules:
        module = sys.modules[name]
        return None if reached.is_library(name, getattr(module, "__file__", None)) else module
    if name.split(".")[0] in sys.stdlib_module_names:
        return None
    spec = importlib.util.find_spec(name)
    if spec is None or reached.is_library(name, spec.origin):
        return None
    return importlib.import_module(name)
