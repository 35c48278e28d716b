"""Tests the wheel: it can be imported without an accelerator, and contains the library and the command."""
from __future__ import annotations

import importlib.metadata
import pathlib
import subprocess
import sys

import warmgraph

PACKAGE = pathlib.Path(warmgraph.__file__).parent


def test_imports_and_answers_where_neither_driver_exists(process):
    done = process("""
        import sys
        import warmgraph
        assert not {"numpy", "torch"} & set(sys.modules), "imported at once"
        def maps(): return open("/proc/self/maps").read()
        assert "libwarmgraph" not in maps(), "loaded at once"
        assert warmgraph.version() == "0.1.0 (opencl, cuda)"
        assert "libwarmgraph" in maps()
        assert "libOpenCL" not in maps() and "libcuda" not in maps()
        for kind, cure in (("opencl", "pocl-opencl-icd"), ("cuda", "NVIDIA driver")):
            try:
                warmgraph.Device(kind)
            except warmgraph.NotFound as error:
                print(kind, cure in str(error))
            except warmgraph.Unsupported as error:
                print(kind, "built without" in str(error) or "CUDA" in str(error))
        print(warmgraph.Cache("toy").disabled_reason == "")
    """, bare=True, WARMGRAPH_OPENCL="libnone.so", WARMGRAPH_CUDA_DRIVER="libnone.so")
    assert done.lines() == ["opencl True", "cuda True", "True"]


def test_the_library_needs_no_driver_to_be_loaded():
    needed = subprocess.run(["readelf", "-d", PACKAGE / "libwarmgraph.so.0"], capture_output=True, text=True, check=True).stdout
    assert "libc.so.6" in needed
    assert "libOpenCL" not in needed and "libcuda" not in needed


def test_one_wheel_serves_all_pythons():
    tags = importlib.metadata.distribution("warmgraph").read_text("WHEEL")
    assert tags is not None and "Tag: py3-none-manylinux_2_" in tags
    assert [one.name for one in PACKAGE.glob("*.so*")] == ["libwarmgraph.so.0"]
    assert (PACKAGE / "py.typed").exists()
    extras = importlib.metadata.metadata("warmgraph").get_all("Provides-Extra")
    assert extras is not None and "torch" in extras


def test_the_command_comes_with_it():
    command = pathlib.Path(sys.executable).parent / "warmgraph"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "0.1.0" in done.stdout
    assert subprocess.run([command, "no-such-verb"], capture_output=True, check=False).returncode == 2
