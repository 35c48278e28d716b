"""Tests whether the code of a module, a class or a decorator belongs to the program, to a package or to Python."""
from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import json
import pathlib
import sysconfig

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed here")

from warmgraph.reading import _reached_code  # noqa: E402
from warmgraph.torch.read import _installed_code  # noqa: E402

SITE, STDLIB = (sysconfig.get_paths()[name] for name in ("purelib", "stdlib"))


@pytest.mark.parametrize("module, file, found", [
    ("pytest", None, "pytest"),
    ("program.layers", None, "program"),
    (None, None, ""),
    ("program", "/home/somebody/program.py", "program"),
    ("program", f"{SITE}/einops/layers/torch.py", "einops"),  # einops' decorator made this function
    ("program", f"{SITE}/six.py", "six"),
    ("program", f"{STDLIB}/dataclasses.py", "dataclasses"),
    ("program", f"{STDLIB}/site-packages/einops/parsing.py", "einops"),
    ("program", f"{SITE}/torch/utils/_contextlib.py", "torch"),
])
def test_code_is_of_the_package_that_has_its_file(module: str | None, file: str | None, found: str) -> None:
    assert _installed_code.package_of(module, file) == found


@dataclasses.dataclass
class Shape:  # its __repr__ comes from dataclasses.py but claims this module
    width: int = 4


@torch.no_grad()
def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * Shape().width


@functools.lru_cache(maxsize=None)
def number() -> int:
    return json.loads("3") + len(pathlib.PurePath("a").parts)


def step(x: torch.Tensor) -> torch.Tensor:
    return scaled(x) + number()


def test_a_functions_own_module_is_no_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(name: str) -> str:
        raise AssertionError(f"the version of '{name}' is looked for among all packages, which takes milliseconds")

    monkeypatch.setattr(importlib.metadata, "version", asked)
    reached = _installed_code.TorchReachedCode(step, {Shape: True})
    assert Shape in reached._classes and reached.packages == {}


def test_code_that_is_met_again_is_followed_once() -> None:
    reached = _installed_code.TorchReachedCode(step, {Shape: True})
    before = len(reached._references), reached.digest()
    reached.add_class(Shape, is_constructed=True)
    assert (len(reached._references), reached.digest()) == before
    assert [one.key for one in reached.items() if one.key == "__repr__"] == ["__repr__"], "though more functions named more since"


def test_installed_classes_are_read_once_and_anew_where_they_changed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wg_installed.py").write_text("import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(_reached_code, "_INSTALLED", (*_reached_code._INSTALLED, str(tmp_path)))
    import wg_installed  # type: ignore[import-not-found]

    kind, anew = wg_installed.Net, _installed_code._digests_anew
    read: list[type] = []
    monkeypatch.setattr(_installed_code, "_digests_anew", lambda kind, functions: (read.append(kind), anew(kind, functions))[1])
    assert _installed_code.TorchReachedCode(step, {kind: False}).packages == {"wg_installed": None} and read == [kind]
    before = _installed_code._digests_of(kind)
    assert read == [kind]
    kind.forward.__code__ = (lambda self, x: x + 1).__code__
    assert _installed_code._digests_of(kind) != before and read == [kind] * 2
    changed = _installed_code._digests_of(kind)
    kind.forward = lambda self, x: x + 2
    assert _installed_code._digests_of(kind) not in (before, changed) and read == [kind] * 3
    kind.more = lambda self: None
    _installed_code._digests_of(kind)
    assert read == [kind] * 4
