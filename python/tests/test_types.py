"""The package's type hints hold, and are there for its users."""
from __future__ import annotations

import subprocess
import sys

from conftest import REPOSITORY


def test_the_package_is_typed_strictly(tmp_path):
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", REPOSITORY / "pyproject.toml", "--cache-dir", tmp_path,
                           "-p", "warmgraph"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_users_see_the_types(tmp_path):
    user = tmp_path / "user.py"
    user.write_text('import warmgraph\nconfig: int = warmgraph.Config()\nwarmgraph.Device("opencl").zeros(3, "f32").shape + 1\n')
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", tmp_path, user], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "user.py:2" in done.stdout and "user.py:3" in done.stdout and "Found 2 errors" in done.stdout
