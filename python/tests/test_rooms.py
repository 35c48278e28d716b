"""The package's folders have an order: each folder may import only folders before it, and no two files import each other."""
from __future__ import annotations

import ast
import importlib.util
from typing import Any, Iterator

import pytest

from conftest import REPOSITORY

PACKAGE = REPOSITORY / "python/warmgraph"

# A folder may import itself and earlier folders. The modules directly in the package are public; of these, the first three may import only
# the binding.
ROOMS = ["core/binding", "arrays", "core/cache", "core/serving", "reading", "calls",
         "torch/read", "torch/replay", "torch/record", "torch/calls", "torch/pairs", "torch/engines", "torch"]
PUBLIC = {"errors": "core/binding", "dtypes": "core/binding", "config": "core/binding", "safetensors": "core/serving", "__init__": "calls"}
NAMES_OF_HALVES = {"core/binding/_frameworks.py", "core/serving/_entry_metadata.py"}  # one imports the halves, one has a metadata key


def size() -> Any:
    spec = importlib.util.spec_from_file_location("size", REPOSITORY / "tests/engineering/size.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def files() -> dict[str, str]:
    """Returns a map from a file's path below the package to its text."""
    return {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.rglob("*.py")) if path.name != "_c.py"}


def room_of(file: str) -> str:
    folder, _, name = file.rpartition("/")
    return folder or PUBLIC[name.removesuffix(".py")]


def imports() -> Iterator[tuple[str, str]]:
    """Yields (file, imported file) for each import, also inside functions and for types alone."""
    texts = {f"python/warmgraph/{name}": text for name, text in files().items()}
    modules = {name.removeprefix("python/").removesuffix(".py").removesuffix("/__init__").replace("/", "."): name for name in texts}
    for name, text in texts.items():
        for other in size().imports_of(name, text, modules):
            yield name.removeprefix("python/warmgraph/"), other.removeprefix("python/warmgraph/")


def test_each_file_is_in_a_room():
    for file in files():
        assert room_of(file) in ROOMS or file.endswith("/__init__.py"), f"{file} is in no room of the list"


def test_rooms_import_in_one_direction():
    up = [f"{file} imports {other}" for file, other in imports()
          if not other.endswith("__init__.py") and ROOMS.index(room_of(file)) < ROOMS.index(room_of(other))]
    assert not up, "\n".join(up)


def test_only_the_halves_know_their_frameworks():
    for file, text in files().items():
        if not file.startswith("torch/"):
            for node in ast.walk(ast.parse(text)):
                named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
                assert not [one for one in named if one and (one.split(".")[0] == "torch" or one.startswith("warmgraph.torch"))], file
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("warmgraph.torch"):
                    assert file in NAMES_OF_HALVES, f"{file} names {node.value}"


def test_no_files_import_each_other_in_a_circle():
    assert size().circles({f"python/warmgraph/{name}": text for name, text in files().items()}) == []


def test_importing_the_package_imports_no_framework(process):
    script = """
        import sys
        import warmgraph
        print([name for name in sys.modules if name == "torch" or name.startswith("warmgraph.torch")])
    """
    assert process(script, bare=True).lines() == ["[]"]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed here")
def test_a_framework_that_is_there_brings_its_half(process):
    script = """
        import sys
        import torch
        import warmgraph
        print("warmgraph.torch" in sys.modules)
    """
    assert process(script, bare=True).lines() == ["True"]
