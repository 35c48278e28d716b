"""Type checkers accept the package's type hints, and find them in the installed package."""
from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys

import warmgraph
from conftest import REPOSITORY


def test_the_package_is_typed_strictly(tmp_path):
    settings = (REPOSITORY / "pyproject.toml").read_text()
    if importlib.util.find_spec("torch") is None:  # without PyTorch, the types in the PyTorch half are missing
        settings += '\n[[tool.mypy.overrides]]\nmodule = "warmgraph.torch.*"\nignore_errors = true\nfollow_imports = "skip"\n'
        settings += '\n[[tool.mypy.overrides]]\nmodule = "torch.*"\nignore_missing_imports = true\n'
    (tmp_path / "pyproject.toml").write_text(settings)
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", tmp_path / "pyproject.toml", "--cache-dir", tmp_path / "cache",
                           "-p", "warmgraph"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_users_see_the_types(tmp_path):
    user = tmp_path / "user.py"
    user.write_text('import warmgraph\nconfig: int = warmgraph.Config()\nwarmgraph.Device("opencl").zeros(3, "f32").shape + 1\n')
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", tmp_path, user], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "user.py:2" in done.stdout and "user.py:3" in done.stdout and "Found 2 errors" in done.stdout


def test_editors_complete_the_options():
    for name in warmgraph.__all__:
        one = getattr(warmgraph, name)
        if callable(one) and not (isinstance(one, type) and issubclass(one, Exception)):
            options = [each.name for each in inspect.signature(one).parameters.values() if each.kind is each.VAR_KEYWORD]
            assert options in ([], ["unknown"]), f"{name} takes any {options}"
    assert {"config", "scalars", "pair"} <= inspect.signature(warmgraph.cache_compile).parameters.keys()
    assert {"policy", "max_variants"} <= inspect.signature(warmgraph.Config).parameters.keys()
