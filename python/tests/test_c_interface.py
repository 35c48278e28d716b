"""The ctypes declarations agree with warmgraph.h: a compiler computes the sizes and offsets."""
from __future__ import annotations

import ctypes
import importlib.util
import json
import subprocess
import sys

import pytest

from conftest import REPOSITORY
from warmgraph import errors
from warmgraph.core.binding import _c

GENERATOR = REPOSITORY / "python/generate_c_interface.py"
INCLUDES = ["-I", str(REPOSITORY / "c/include"), "-I", str(REPOSITORY / "base/include")]


def generator():
    spec = importlib.util.spec_from_file_location("generate_c_interface", GENERATOR)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_installed_file_is_what_the_headers_say(tmp_path):
    subprocess.run([sys.executable, GENERATOR, tmp_path / "_c.py"], check=True)
    assert (tmp_path / "_c.py").read_text() == open(_c.__file__).read()


def test_sizes_and_offsets_are_the_compilers(tmp_path):
    rows = []
    for struct in _c.STRUCTS:
        rows.append(f'printf("\\"{struct.__name__}\\": [%zu", sizeof({struct.__name__}));')
        rows += [f'printf(", %zu, %zu", offsetof({struct.__name__}, {field[0]}), sizeof((({struct.__name__}*)0)->{field[0]}));'
                 for field in struct._fields_]
        rows.append('puts("],");')
    enums = {name: value for table, values in vars(_c).items() if table.endswith("_values") for name, value in values.items()}
    rows += [f'printf("\\"{name}\\": %d,\\n", (int){name});' for name in enums]
    source = tmp_path / "layout.c"
    source.write_text('#include <stddef.h>\n#include <stdio.h>\n#include "warmgraph/python.h"\nint main(void) { puts("{");\n'
                      + "\n".join(rows) + '\nputs("\\"end\\": 0}"); }\n')
    subprocess.run(["cc", "-std=c11", *INCLUDES, source, "-o", tmp_path / "layout"], check=True)
    compiled = json.loads(subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout)
    assert len(enums) > 50 and len(_c.STRUCTS) > 20
    for struct in _c.STRUCTS:
        ours = [ctypes.sizeof(struct)]
        for field in struct._fields_:
            ours += [getattr(struct, field[0]).offset, getattr(struct, field[0]).size]
        assert ours == compiled[struct.__name__], struct.__name__
    assert {name: compiled[name] for name in enums} == enums


def test_each_code_has_its_exception():
    codes = {name[len("wg_"):]: code for name, code in _c.wg_status_values.items() if code != _c.wg_ok}
    classes = {one.name: one.code for one in errors.Error.__subclasses__()}
    assert classes == codes
    assert type(errors.of_status(_c.wg_stale, "old")) is errors.Stale
    newer = errors.of_status(99, "new")
    assert type(newer) is errors.Error and newer.code == 99


@pytest.mark.parametrize("line", [
    "typedef struct wg_odd { uint128_t wide; } wg_odd;", "WARMGRAPH_API wg_odd wg_function(void);",
    "WARMGRAPH_API wg_status wg_spread(const char* text, ...);",
])
def test_what_the_generator_does_not_understand_is_an_error(line):
    module = generator()
    text = module.declarations()
    with pytest.raises(module.NotUnderstood):
        module.written(module.parsed(text.replace("#ifdef __cplusplus\n} //", line + "\n#ifdef __cplusplus\n} //", 1)))
