"""Options of a cache."""
from __future__ import annotations

import dataclasses
import difflib
import functools
import os
import re
from typing import Any, Callable, Collection, Iterable, Literal, Mapping, Sequence

from warmgraph import errors
from warmgraph.core.binding import _c

POLICIES = {"default": _c.wg_policy_default, "read_write": _c.wg_policy_read_write, "read_only": _c.wg_policy_read_only,
            "refresh": _c.wg_policy_refresh, "off": _c.wg_policy_off, "require_hit": _c.wg_policy_require_hit,
            "no_compile": _c.wg_policy_no_compile}
Policy = Literal["default", "read_write", "read_only", "refresh", "off", "require_hit", "no_compile"]

Path = str | os.PathLike[str]

#: The number of each kind of artifact, by the kind's word (docs/kinds.md).
KINDS = {name[len("wg_kind_"):]: code for name, code in _c.wg_artifact_kind_values.items()}

Kind = Literal["entries", "images", "constants", "compiled", "tuned", "profiles", "torch"]
_KINDS_FOR = {"kinds": ("entries", "compiled", "tuned", "profiles"), "max_bytes_by_kind": ("entries", "compiled", "tuned", "profiles", "torch"),
              "compression": ("entries", "images", "constants")}

# The secrets in the URL of a remote: attributes, and user and password before the host. A secret may have any letter, so the match is long.
_SECRET_ATTRIBUTE, _SECRET_USER = re.compile(r"(?<=[?&])(user|password|token)=[^&]*"), re.compile(r"(?<=://).*@")

_KEYS = ("WARMGRAPH_SIGN_KEY", "WARMGRAPH_SIGN_KEY_FILE", "WARMGRAPH_ACCEPT_KEYS", "WARMGRAPH_ACCEPT_KEYS_FILE")


def unknown_option(where: str, name: str, known: Iterable[str]) -> errors.InvalidArgument:
    known = sorted(known)
    near = difflib.get_close_matches(name, known, 1)
    cure = f"did you mean '{near[0]}'?" if near else f"expected one of: {', '.join(known)}"
    return errors.InvalidArgument(f"{where} has no option '{name}': {cure}")


@dataclasses.dataclass(frozen=True)
class Compression:
    """How objects of one kind are compressed (zstd) when they are written. level: zstd's level, 1 to 19; 0: not compressed. above: bytes;
    objects up to this size are not compressed."""

    level: int
    above: int = 16 * 1024

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is not int or value < 0:
                raise errors.InvalidArgument(f"{name} is {value!r}, expected a number of at least 0")


@dataclasses.dataclass(kw_only=True)
class Config:
    """Options of a cache; docs/calls.md and docs/trust.md explain them. Mutable until the first call. An unknown name or a value of the
    wrong type raises InvalidArgument."""

    policy: Policy = "default"  # "default": $WARMGRAPH_POLICY, else read_write
    model: str = ""  # folder name; "": the class of a method's object, or the function's module
    model_config: Mapping[str, str] = dataclasses.field(default_factory=dict)  # part of the model's identity
    environment: Sequence[str] = ()  # names of environment variables that become guards
    world_size: int = -1  # number of ranks; -1: taken from the launcher's environment
    accept_newer_driver: bool = False
    share_with_group: bool = False
    max_variants: int = 64  # the most variants of one function
    verify_on_load: bool = False
    probing_ms: int = 200
    strict: bool = False  # whether to refuse uninitialised words in kernels' parameters
    sign_with_file: str = ""
    accept_file: str = ""
    require_signed: bool = False
    trusted_owners: Sequence[int] = ()
    max_bytes: int = 0
    max_files: int = 0
    max_bytes_by_kind: Mapping[Kind, int] = dataclasses.field(default_factory=dict)  # limits of single kinds within max_bytes, in bytes
    compression: Mapping[Kind, Compression] = dataclasses.field(default_factory=dict)    # for entries (their payloads), images and constants
    bundles: Sequence[Path] = ()  # bundle files (.wgb), read in place as layers below the folder
    kinds: Collection[Kind] | None = None  # the kinds in use: some of entries, compiled, tuned and profiles; None: $WARMGRAPH_KINDS, else all
    profile: bool | None = None  # count the sizes that functions are called with; None: $WARMGRAPH_PROFILE, else yes
    record_wait_ms: int = 60_000  # how long a PyTorch recording waits for another process that records the same call
    preload: bool = True  # whether to restore the graphs of a PyTorch function's last calls as soon as CUDA runs, before the next call
    remote: Sequence[str] | None = None  # URLs of stores that several machines share (docs/remote.md); None: $WARMGRAPH_REMOTE
    remote_deadline_ms: int = 2000  # how long the end of a cache waits for what is not sent yet; a later process sends the rest
    cache_key_tag: str = ""  # a salt over all kinds: a cache never uses what caches with other tags made; "": $WARMGRAPH_CACHE_KEY_TAG
    mega_cache: bool = False  # whether to store PyTorch's compiled code, signed, and give it to PyTorch before a miss compiles; needs a key

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _DEFAULTS:
            raise unknown_option("Config", name, _DEFAULTS)
        object.__setattr__(self, name, _checked(name, value, _DEFAULTS[name]))

    def __repr__(self) -> str:
        """All options, without the secrets in the URLs of remotes."""
        shown = {name: _without_secrets(value) if name == "remote" else value for name, value in vars(self).items()}
        return f"Config({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def identity(self) -> str:
        """A text that equal options share, with the secrets: not for messages."""
        return repr(vars(self))

    def expect_key(self) -> None:
        """Raises InvalidArgument for a Config with mega_cache but without keys: the keys decide which signed pickles PyTorch may load."""
        if self.mega_cache and not (self.sign_with_file or self.accept_file or any(os.environ.get(name) for name in _KEYS)):
            raise errors.InvalidArgument("mega_cache is True, but no key says whose artifacts PyTorch may load, and they can run any code: set "
                                         "sign_with_file or accept_file (WARMGRAPH_SIGN_KEY_FILE, WARMGRAPH_ACCEPT_KEYS_FILE)")

    def copy(self) -> Config:
        one = Config.__new__(Config)
        one.__dict__.update({name: dict(value) if isinstance(value, dict) else value for name, value in vars(self).items()})  # the values were checked before
        return one


_DEFAULTS: dict[str, Any] = {one.name: {} if one.default is dataclasses.MISSING else one.default for one in dataclasses.fields(Config)}


def _expecting_known(init: Callable[..., None]) -> Callable[..., None]:
    """Wraps `init`: its error for a misspelt option then suggests the right name."""
    @functools.wraps(init)
    def expecting(self: Config, **options: Any) -> None:
        for name in options:
            if name not in _DEFAULTS:
                raise unknown_option("Config", name, _DEFAULTS)
        init(self, **options)

    return expecting


Config.__init__ = _expecting_known(Config.__init__)  # type: ignore[method-assign]

def _checked(name: str, value: Any, default: Any) -> Any:
    if name == "policy" and value not in POLICIES:
        raise unknown_option("policy", str(value), POLICIES)
    if name == "model_config":
        if not isinstance(value, Mapping) or not all(isinstance(one, str) for pair in value.items() for one in pair):
            raise errors.InvalidArgument(f"model_config is {value!r}, expected a dict of texts by name")
        return dict(value)
    if name in _KINDS_FOR:
        return _checked_kinds(name, value)
    if name == "remote":
        if value is not None and (isinstance(value, str) or not all(isinstance(one, str) for one in value)):
            raise errors.InvalidArgument(f"remote is {_without_secrets(value)!r}, expected a list of URLs, or None")
        return None if value is None else tuple(value)
    if name == "profile":
        if value is not None and not isinstance(value, bool):
            raise errors.InvalidArgument(f"profile is {value!r}, expected True, False or None")
        return value
    if isinstance(default, tuple):
        is_text = name in ("environment", "bundles")
        element: Any = (str, os.PathLike) if name == "bundles" else str if is_text else int
        if isinstance(value, str) or not all(isinstance(one, element) for one in value):
            raise errors.InvalidArgument(f"{name} is {value!r}, expected a list of {'texts' if is_text else 'numbers'}")
        return tuple(value)
    if type(value) is not type(default):
        raise errors.InvalidArgument(f"{name} is {value!r}, expected {type(default).__name__}")
    if isinstance(value, int) and not isinstance(value, bool) and value < min(0, default):
        raise errors.InvalidArgument(f"{name} is {value}, expected at least {min(0, default)}")
    return value


def _without_secrets(value: Any) -> Any:
    """The URLs with "***" for each secret."""
    if isinstance(value, str):
        return _SECRET_USER.sub("***@", _SECRET_ATTRIBUTE.sub(r"\1=***", value))
    return tuple(_without_secrets(one) for one in value) if isinstance(value, (list, tuple)) else value


def _checked_kinds(name: str, value: Any) -> Any:
    """Checks an option by kind. Returns it in the order of KINDS, so that equal options have the same text."""
    if name == "kinds" and value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Collection if name == "kinds" else Mapping):
        expected = "a set of kinds, or None" if name == "kinds" else f"a dict of {'bytes' if name == 'max_bytes_by_kind' else 'Compression'} by kind"
        raise errors.InvalidArgument(f"{name} is {value!r}, expected {expected}")
    for kind in value:
        if kind not in _KINDS_FOR[name]:
            raise errors.InvalidArgument(f"{name} has the kind {kind!r}: expected {', '.join(_KINDS_FOR[name])}")
    if name == "kinds":
        return tuple(kind for kind in KINDS if kind in value)
    by_kind: Any = value
    for kind, one in by_kind.items():
        if name == "max_bytes_by_kind" and (type(one) is not int or one < 0):
            raise errors.InvalidArgument(f"max_bytes_by_kind of {kind} is {one!r}, expected bytes, at least 0")
        if name == "compression" and not isinstance(one, Compression):
            raise errors.InvalidArgument(f"compression of {kind} is {one!r}, expected Compression")
    return {kind: by_kind[kind] for kind in KINDS if kind in value}
