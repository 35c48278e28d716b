"""Options of a cache."""
from __future__ import annotations

import dataclasses
import difflib
import functools
import os
from typing import Any, Callable, Iterable, Mapping, Sequence

from warmgraph import errors
from warmgraph.core.binding import _c

POLICIES = {"default": _c.wg_policy_default, "read_write": _c.wg_policy_read_write, "read_only": _c.wg_policy_read_only,
            "refresh": _c.wg_policy_refresh, "off": _c.wg_policy_off, "require_hit": _c.wg_policy_require_hit,
            "no_compile": _c.wg_policy_no_compile}

_KEYS = ("WARMGRAPH_SIGN_KEY", "WARMGRAPH_SIGN_KEY_FILE", "WARMGRAPH_ACCEPT_KEYS", "WARMGRAPH_ACCEPT_KEYS_FILE")


def unknown_option(where: str, name: str, known: Iterable[str]) -> errors.InvalidArgument:
    known = sorted(known)
    near = difflib.get_close_matches(name, known, 1)
    cure = f"did you mean '{near[0]}'?" if near else f"expected one of: {', '.join(known)}"
    return errors.InvalidArgument(f"{where} has no option '{name}': {cure}")


@dataclasses.dataclass(kw_only=True)
class Config:
    """Options of a cache; docs/calls.md and docs/trust.md explain them. Mutable until the first call. An unknown name or a value of the
    wrong type raises InvalidArgument."""

    mode: str = "reduce-overhead"  # TorchAir's name for graphs that are captured once and replayed; the only mode
    policy: str = "default"  # "default": the value of $WARMGRAPH_POLICY, or read_write if it is not set
    model: str = ""  # folder name; default: the class of a method's object, or the function's module
    model_config: Mapping[str, str] = dataclasses.field(default_factory=dict)  # a part of the model's identity
    environment: Sequence[str] = ()  # names of the environment variables that become guards
    world_size: int = -1  # number of ranks; -1: from the launcher's environment
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
    max_bytes_by_kind: str = ""  # limits of single kinds within max_bytes: "compiled=1G,tuned=64M"
    bundles: Sequence[Any] = ()  # bundle files (.wgb), read in place as layers below the folder
    kinds: str = ""  # the artifact kinds in use, as in $WARMGRAPH_KINDS: "entries,compiled", or all kinds but one, "-tuned"
    preload: bool = True  # whether to restore the graphs of a PyTorch function's last calls as soon as CUDA runs, before the next call
    mega_cache: bool = False  # whether to store PyTorch's compiled code, signed, and give it to PyTorch before a miss compiles; needs a key

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _DEFAULTS:
            raise unknown_option("Config", name, _DEFAULTS)
        object.__setattr__(self, name, _checked(name, value, _DEFAULTS[name]))

    def expect_key(self) -> None:
        """Raises InvalidArgument for a Config with mega_cache but without keys: the keys decide which signed pickles PyTorch may load."""
        if self.mega_cache and not (self.sign_with_file or self.accept_file or any(os.environ.get(name) for name in _KEYS)):
            raise errors.InvalidArgument("mega_cache is True, and no key says whose artifacts PyTorch may be given, which can run any code: "
                                         "set sign_with_file or accept_file (WARMGRAPH_SIGN_KEY_FILE, WARMGRAPH_ACCEPT_KEYS_FILE)")

    def copy(self) -> Config:
        one = Config.__new__(Config)
        one.__dict__.update(self.__dict__, model_config=dict(self.model_config))  # the values were checked when they were set
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
    if name == "mode" and value != "reduce-overhead":
        raise errors.InvalidArgument(f"mode is {value!r}, expected 'reduce-overhead': how PyTorch compiles a miss cannot be chosen yet")
    if name == "policy" and value not in POLICIES:
        raise unknown_option("policy", str(value), POLICIES)
    if name == "model_config":
        if not isinstance(value, Mapping) or not all(isinstance(one, str) for pair in value.items() for one in pair):
            raise errors.InvalidArgument(f"model_config is {value!r}, expected a dict of texts by name")
        return dict(value)
    if isinstance(default, tuple):
        is_text = name in ("environment", "bundles")
        if isinstance(value, str) or not all(isinstance(one, str if is_text else int) for one in value):
            raise errors.InvalidArgument(f"{name} is {value!r}, expected a list of {'texts' if is_text else 'numbers'}")
        return tuple(value)
    if type(value) is not type(default):
        raise errors.InvalidArgument(f"{name} is {value!r}, expected {type(default).__name__}")
    if isinstance(value, int) and not isinstance(value, bool) and value < min(0, default):
        raise errors.InvalidArgument(f"{name} is {value}, expected at least {min(0, default)}")
    return value
