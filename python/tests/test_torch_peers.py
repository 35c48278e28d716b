"""Tests bench/torch_peers.py without a GPU and without PyTorch: its child processes, how it uses their answers, and its table."""
from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import sys
import time
from typing import Any

import pytest

from conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "bench"))

import torch_peers  # noqa: E402
from peers import cores, processes, table, ways  # noqa: E402
from peers.table import Row  # noqa: E402

SUBJECTS = {one.name: one for one in ways.SUBJECTS}


def row(way: ways.Way, *answers: dict[str, Any], stored: int | None = None) -> Row:
    made = Row(way, stored_bytes=stored)
    for answer in answers:
        made.take(answer)
    return made


def first(seconds: float, **more: Any) -> dict[str, Any]:
    return {"first_s": seconds, "start_s": seconds + 3, "tokens": [1, 2], **more}


# --- One process


@pytest.fixture
def child(tmp_path: pathlib.Path) -> Any:
    """Runs a script as the child process that measures one way. `answer` and `log` are arguments of the script."""
    def run(script: str, limit_s: float = 60, answer: str | None = "answer.json") -> dict[str, Any]:
        file = tmp_path / "child.py"
        file.write_text(f"import os, sys, time\nanswer = {str(tmp_path / 'answer.json')!r}\n{script}")
        return processes.run([sys.executable, str(file)], dict(os.environ), limit_s, tmp_path / "logs" / "child.log",
                             tmp_path / answer if answer else None)

    return run


def test_an_answer_is_read_with_the_time_of_its_process(child):
    script = "open(answer, 'w').write('{\"first_s\": 0.5}')"
    found = child(f"{script}; assert 0 <= time.monotonic() - float(os.environ['{processes.STARTED}']) < 60")
    assert found["first_s"] == 0.5 and 0 < found["process_s"] < 60 and "reason" not in found


def test_a_process_that_fails_gives_the_end_of_what_it_printed(child):
    found = child("print('many words', file=sys.stderr)\nraise RuntimeError('the driver is gone')")
    assert found["reason"].startswith("ended with status 1: ") and found["reason"].endswith("RuntimeError: the driver is gone")
    assert "^^^" not in found["reason"]


def test_what_a_failed_process_wrote_before_is_no_answer(child):
    assert "status 3" in child("open(answer, 'w').write('{\"first_s\": 0.5}'); sys.exit(3)")["reason"]


def test_an_answer_of_an_earlier_process_is_not_taken(child):
    assert "reason" not in child("open(answer, 'w').write('{}')")
    assert "gave no answer: nothing to say" in child("print('nothing to say')")["reason"]


@pytest.mark.parametrize("text, why", [("{\"first_s\": ", "not JSON"), ("[1, 2]", "a list, expected an object"), ("\\xff\\x00", "not JSON")])
def test_garbage_is_a_reason(child, text, why):
    assert why in child(f"open(answer, 'w', encoding='latin-1').write('{text}')")["reason"]


def test_a_process_that_was_killed_names_the_signal(child):
    assert "ended with signal SIGKILL" in child("import signal; os.kill(os.getpid(), signal.SIGKILL)")["reason"]


def test_a_process_that_hangs_is_ended_with_what_it_started(child, tmp_path):
    worker = "import subprocess, sys; w = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    started = time.monotonic()
    found = child(f"{worker}\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(w.pid)); print('waiting', flush=True); time.sleep(600)", limit_s=3)
    assert time.monotonic() - started < 60
    assert found["reason"] == "took longer than 3 s: waiting"
    state = pathlib.Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    for _ in range(100):  # waits until the process is gone or a zombie
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the worker goes on running")


def test_a_process_that_ends_itself_at_its_limit_says_where_it_was(child):
    found = child("""
import faulthandler, threading
def waits(): time.sleep(600)
threading.Thread(target=waits, daemon=True).start()
faulthandler.dump_traceback_later(1, exit=True)
def hangs(): time.sleep(600)
def calls(depth): return calls(depth - 1) if depth else hangs()
calls(9)
""")
    assert found["reason"].startswith("ended with status 1: Timeout (") and "in hangs | " in found["reason"] and "in waits" not in found["reason"]


def test_a_program_that_is_not_there_is_a_reason(tmp_path):
    found = processes.run([str(tmp_path / "none")], {}, 10, tmp_path / "log", None)
    assert "does not start" in found["reason"]


# --- cores


@pytest.fixture
def speeds(monkeypatch):
    """A dictionary with the loop's seconds on each core, which a test may change. `speeds.on` is the core on which the thread runs."""
    class Speeds(dict):
        on, allowed, moves = 0, {0, 1, 2}, 0

    found = Speeds({0: 2e-4, 1: 1e-4, 2: 3e-4})

    def move(_, wanted):
        found.moves += 1
        if not wanted & found.allowed:
            raise OSError("not allowed")
        if found.on not in wanted:
            found.on = min(wanted)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(found.allowed))
    monkeypatch.setattr(os, "sched_setaffinity", move)
    monkeypatch.setattr(cores, "_once", lambda: found[found.on])
    monkeypatch.setattr(cores, "_least_s", float("inf"))
    monkeypatch.setattr(cores, "_has_looked", False)
    return found


def test_a_thread_settles_on_the_quickest_core_and_stays_while_that_is_quick(speeds):
    cores.settle()
    assert speeds.on == 1 and cores.least_seconds() == 1e-4
    moves = speeds.moves
    speeds[1] = 1.2e-4
    cores.settle()
    assert speeds.on == 1 and speeds.moves == moves
    speeds[1], speeds[2] = 1.3e-4, 1.1e-4
    cores.settle()
    assert speeds.on == 2 and cores.least_seconds() == 1e-4


def test_a_core_that_is_taken_away_while_it_is_looked_at_does_no_harm(speeds, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 7})
    cores.settle()
    assert speeds.on in (0, 1)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be moved here")
def test_a_thread_that_settled_may_go_anywhere_again(monkeypatch):
    monkeypatch.setattr(cores, "_has_looked", False)
    before = os.sched_getaffinity(0)
    cores.settle()
    assert os.sched_getaffinity(0) == before and 0 < cores.least_seconds() < 1


# --- folders


def test_caches_are_in_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_CACHING_PRECOMPILE", "1")
    monkeypatch.setenv("WARMGRAPH_POLICY", "off")
    place = processes.Place(tmp_path)
    cold, restored = place.environment(ways.COLD, {"A": "1"}), place.environment(ways.RESTORED, {})
    assert "TORCH_CACHING_PRECOMPILE" not in cold and "WARMGRAPH_POLICY" not in cold and cold["A"] == "1"
    assert restored["WARMGRAPH_POLICY"] == "require_hit"
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH"):
        assert cold[name].startswith(str(tmp_path)) and cold[name] != restored[name]
    assert place.environment(ways.PRECOMPILED, {})["TORCH_CACHING_PRECOMPILE"] == "1"


def test_a_cold_way_finds_empty_caches_and_a_warm_one_what_was_left(tmp_path):
    place = processes.Place(tmp_path)
    place.prepared(ways.COLD)
    (place.caches(ways.COLD) / "kernel").write_text("compiled")
    place.prepared(ways.WARM)
    assert (place.caches(ways.WARM) / "kernel").exists()
    assert processes.size_of(place.caches(ways.WARM)) == 8
    place.prepared(ways.COLD)
    assert not (place.caches(ways.COLD) / "kernel").exists()


def test_a_way_whose_file_is_missing_does_not_start(tmp_path):
    place = processes.Place(tmp_path)
    assert place.missing(ways.MEGA) == "mega.bin was not left behind"
    (tmp_path / "mega.bin").touch()
    assert not place.missing(ways.MEGA) and not place.missing(ways.EAGER)
    place.prepared(ways.COLD)
    assert place.missing(ways.MEGA)


def test_every_way_comes_after_what_it_needs():
    for subject in ways.SUBJECTS:
        for way in subject.ways:
            for before in ways.needed(way, subject):
                assert subject.ways.index(before) < subject.ways.index(way)
        assert len({way.name for way in subject.ways}) == len(subject.ways)
    assert ways.needed(ways.RESTORED, SUBJECTS["step"]) == [ways.RECORDING]


# --- medians, tokens, numbers


def test_a_row_has_the_medians_of_its_processes():
    made = row(ways.EAGER, first(3.0), first(1.0), first(2.0, note="text"))
    assert made.get("first_s") == 2.0 and made.get("start_s") == 5.0 and made.get("note") is None and made.get("none") is None


def test_a_way_that_fails_at_first_has_a_reason_and_one_that_fails_later_is_wrong():
    assert row(ways.EAGER, {"reason": "ended with status 1"}).reason == "ended with status 1"
    later = row(ways.EAGER, first(1.0), {"reason": "ended with status 1"})
    assert not later.reason and "status 1" in later.wrong and later.get("first_s") == 1.0


def test_tokens_are_compared_within_a_family():
    rows = [row(ways.EAGER, first(1)), row(ways.GRAPH, first(1), first(1, tokens=[1, 3])), row(ways.COLD, first(1, tokens=[9, 9])),
            row(ways.RESTORED, first(1, tokens=[9, 9])), row(ways.MEGA, first(1, tokens=[9]))]
    table.compare_tokens(rows)
    assert [one.wrong for one in rows] == ["", "1 of 2 tokens differ from those of 'eager'", "", "",
                                           "1 instead of 2, and tokens differ from those of 'torch.compile, empty caches'"]


def test_tokens_of_a_table_are_compared_by_size():
    rows = [row(ways.TABLE_GRAPHS, first(1, tokens={"1": [4], "2": [4, 5]})),
            row(ways.TABLE_RESTORED, first(1, tokens={"1": [4], "2": [4, 6]}))]
    table.compare_tokens(rows)
    assert rows[1].wrong == "in 1 of 2 sizes, tokens differ from those of 'torch.cuda.graph for each size'"


@pytest.mark.parametrize("seconds, text", [(None, "-"), (1.5e-6, "1.50 us"), (0.000281, "281 us"), (0.0009996, "1.00 ms"), (0.0123, "12.3 ms"),
                                           (0.9994, "999 ms"), (0.9996, "1.00 s"), (23.46, "23.5 s"), (137, "137 s")])
def test_durations_have_three_digits_and_a_unit(seconds, text):
    assert table.duration(seconds) == text


def test_sizes_and_factors():
    assert [table.size(one) for one in (None, 300, 640_000, 9_960_000)] == ["-", "0.3 KB", "0.6 MB", "10.0 MB"]
    assert [table.factor(one) for one in (None, 1.0104, 25.31)] == ["-", "1.010x", "25.3x"]


# --- the table


def rows_of_step() -> list[Row]:
    return [row(ways.EAGER, first(0.28, step_s=0.003)), row(ways.COLD, first(20.0)), row(ways.MEGA, {"reason": "ended with status 1: " + "word " * 60}),
            row(ways.RECORDING, first(21.5, recording_s=1.25, replay_ratio=1.02)), row(ways.RESTORED, first(0.010), stored=640_000),
            row(ways.ADOPTING, {"seconds": {}}, stored=640_000), row(ways.WITHOUT_TORCH, first(0.0065, start_s=0.9), stored=640_000)]


def test_the_table_is_aligned_and_says_why_a_row_is_empty():
    rows = rows_of_step()
    rows[4].wrong = "1 of 2 tokens differ from those of 'eager'"
    lines = table.lines_of(SUBJECTS["step"], "a title", rows)
    assert lines[0] == "a title" and max(map(len, lines)) <= table.WIDTH
    body = lines[1:1 + len(rows)]  # the line of the adoption is not one of the rows
    assert "adoption" not in "".join(lines)
    assert len({len(line) for line in body}) == 1, "\n".join(body)
    assert "280 ms" in body[1] and "3.00 ms" in body[1] and body[3].startswith("Mega-Cache into empty caches [1]") and body[3].split()[-6:] == ["-"] * 6
    assert "0.6 MB" in body[5] and body[5].startswith("warmgraph [2]")
    notes = " ".join(" ".join(lines[1 + len(rows):]).split())
    assert "[1] Mega-Cache into empty caches: ended with status 1: word" in notes and "[2] WRONG: warmgraph: 1 of 2 tokens differ" in notes


def test_targets_are_met_missed_or_not_measured():
    graphs = [row(ways.TABLE_RESTORED, first(0.0181, graph_s=0.0121, all_s=0.15, replay_ratio=1.01), stored=10_000_001)]
    found = {one.what: one.is_met for one in table.targets({"step": rows_of_step(), "table": graphs})}
    assert found["step, warmgraph: ready to result"] is True
    assert found["step, warmgraph: start to result (eager's)"] is True
    assert found["step, warmgraph, eager recorded: ready to result"] is None
    assert found["step, warmgraph, recording: replay / PyTorch's own graph"] is False
    assert found["step, warmgraph without PyTorch: ready to result"] is True
    assert found["step, warmgraph without PyTorch: start to result"] is False
    assert found["table: the first graph"] is False and found["table: all graphs"] is True
    assert found["table: replay / PyTorch's own graphs"] is True and found["table: stored"] is False
    every = table.targets({"step": rows_of_step(), "table": graphs, "huggingface": rows_of_step()})
    assert len(every) == 20 and all(len(one.line()) <= table.WIDTH for one in every)
    columns = {one.line().rindex(one.found) + len(one.found) for one in every}
    assert len(columns) == 1, "\n".join(one.line() for one in every)


def test_hits_are_told_apart_by_how_quick_their_cores_were() -> None:
    hit = row(ways.RESTORED, first(0.010, core_s=50e-6), first(0.011, core_s=60e-6), first(0.019, core_s=100e-6), first(0.5))
    rows = {"huggingface": [row(ways.EAGER, first(1.0, core_s=52e-6)), hit, row(ways.EAGER_RESTORED)]}
    assert table.least_core_s(rows) == 50e-6 and hit.on_quick_cores("first_s", 50e-6) == (pytest.approx(0.0105), 2)
    assert table.core_lines(rows) == ["  huggingface, warmgraph: ready to result 10.5 ms in 2 of 4 processes; each: 10.0 ms (1.000x), 11.0 ms",
                                      "    (1.200x), 19.0 ms (2.00x)"]
    assert table.core_title(rows).startswith("on quick cores (a fixed loop took 50.0 us in the quickest process")
    assert table.core_lines({"huggingface": [row(ways.EAGER, first(1.0))]}) == []
    graphs = {"table": [row(ways.TABLE_RESTORED, first(0.02, graph_s=0.01, all_s=0.1, core_s=50e-6), first(0.04, graph_s=0.02, all_s=0.2, core_s=99e-6))]}
    assert table.core_lines(graphs) == ["  table, warmgraph: ready to the first graph 10.0 ms in 1 of 2 processes; each: 10.0 ms (1.000x), 20.0 ms",
                                        "    (1.980x)", "  table, warmgraph: ready to all graphs 100 ms in 1 of 2 processes; each: 100 ms (1.000x), 200 ms (1.980x)"]


def test_ratios_are_of_the_others_over_ours():
    text = "\n".join(table.ratios(SUBJECTS["step"], rows_of_step()))
    ready = text.split("ready to result:")[1].split("start to")[0]
    assert next(line for line in ready.splitlines() if line.strip().startswith("torch.compile")).split()[-2:] == ["2000x", "3077x"]
    assert next(line for line in ready.splitlines() if line.strip().startswith("eager")).split()[-2:] == ["28.0x", "43.1x"]
    assert "Mega" not in text and table.ratios(SUBJECTS["step"], rows_of_step()[:3]) == []


def test_what_recording_added():
    (line,) = table.recording_lines(SUBJECTS["step"], rows_of_step())
    assert "adopted in 1.25 s; 1.50 s more than 'torch.compile, empty caches'" in line


# --- complete runs, with processes that need no PyTorch


STAND_IN = """
import json, os, pathlib, sys, time
settings = json.loads(sys.argv[1])
started = float(os.environ["PEERS_STARTED"])
print("started", settings["start"], file=sys.stderr, flush=True)
answer = {"first_s": 0.01, "start_s": time.monotonic() - started, "tokens": [1, 2, 3]}
if settings["start"] == "machine":
    answer = {"gpu": "a stand-in", "torch": "2.0", "cuda": "13.0", "cores": 1, "warmgraph": "0.1.0"}
if settings["start"] == "graph":
    sys.exit("no graph here")
if settings["start"] == "restored" and os.environ["WARMGRAPH_POLICY"] != "require_hit":
    sys.exit("a hit must be required")
if settings["leaves"]:
    (pathlib.Path(settings["folder"]) / settings["leaves"]).touch()
pathlib.Path(settings["answer"]).write_text(json.dumps(answer))
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """torch_peers with the script STAND_IN in place of its child processes."""
    folder = tmp_path / "bench"
    (folder / "peers").mkdir(parents=True)
    (folder / "peers" / "with_torch.py").write_text(STAND_IN)
    library = tmp_path / "libwarmgraph.so"
    library.touch()
    package = tmp_path / "warmgraph"
    package.mkdir()
    (package / "module.py").write_text("x = 1\n")
    monkeypatch.setattr(torch_peers, "PACKAGE", package)
    monkeypatch.setattr(torch_peers, "FOLDER", folder)
    monkeypatch.setattr(torch_peers, "STARTED", time.monotonic())
    return lambda *more: torch_peers.main([str(library), "--folder", str(tmp_path / "work"), "--json", str(tmp_path / "out.json"), *more])


def test_a_run_goes_on_where_a_way_fails(stand_in, tmp_path, capsys):
    assert stand_in("--subject", "step", "--only", "eager*", "--only", "warmgraph", "--runs", "2") == 0
    found = {one["way"]: one for one in json.loads((tmp_path / "out.json").read_text())["subjects"]["step"]}
    assert list(found) == ["eager", "eager + CUDA graph", "warmgraph, recording", "warmgraph"]
    assert found["eager + CUDA graph"]["reason"] == "ended with status 1: started graph | no graph here"
    assert [len(found[name]["runs"]) for name in found] == [2, 0, 1, 2]
    said = capsys.readouterr()
    assert "a stand-in, driver" in said.out and "eager + CUDA graph: ended with status 1" in said.out and "met" in said.out
    assert "step, warmgraph: 10.0 ms" in said.err


def test_no_process_compiles_the_package_to_bytecode(stand_in, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = tmp_path / "warmgraph" / "module.py"
    assert stand_in("--subject", "step", "--only", "eager", "--runs", "1") == 0
    assert pathlib.Path(importlib.util.cache_from_source(str(module))).is_file()
    assert "bytecode" not in capsys.readouterr().err


def test_a_package_that_has_no_bytecode_is_told(stand_in, tmp_path, capsys):
    (tmp_path / "warmgraph" / "__pycache__").write_text("no folder")
    assert stand_in("--subject", "step", "--only", "eager", "--runs", "1") == 0
    assert f"no bytecode was written beside {tmp_path / 'warmgraph'}" in capsys.readouterr().err


def test_a_way_of_ours_that_fails_is_the_status(stand_in, tmp_path):
    script = tmp_path / "bench" / "peers" / "with_torch.py"
    script.write_text(STAND_IN.replace('== "graph"', '== "restored"'))
    assert stand_in("--subject", "step", "--only", "warmgraph", "--runs", "1") == 1


def test_wrong_tokens_are_the_status(stand_in, tmp_path, capsys):
    script = tmp_path / "bench" / "peers" / "with_torch.py"
    wrong = 'if settings["start"] == "restored":\n    answer["tokens"] = [1, 2, 4]\n'
    script.write_text(STAND_IN.replace('if settings["leaves"]', wrong + 'if settings["leaves"]'))
    assert stand_in("--subject", "step", "--only", "warmgraph", "--runs", "1") == 1
    assert "WRONG: warmgraph: 1 of 3 tokens differ" in capsys.readouterr().out


def test_what_does_not_fit_into_the_limit_is_left_out(stand_in, tmp_path):
    script = tmp_path / "bench" / "peers" / "with_torch.py"
    script.write_text(STAND_IN + "time.sleep(1 if settings['start'] == 'machine' else 0)")
    stand_in("--subject", "step", "--only", "eager", "--limit", str(torch_peers.LEAST_S + 0.5))
    (eager,) = json.loads((tmp_path / "out.json").read_text())["subjects"]["step"]
    assert eager["reason"].startswith("left out: ")


def test_what_takes_longer_than_what_is_left_is_left_out(stand_in, tmp_path, monkeypatch):
    monkeypatch.setattr(torch_peers, "LEAST_S", 0.1)
    script = tmp_path / "bench" / "peers" / "with_torch.py"
    script.write_text(STAND_IN + "time.sleep(0 if settings['start'] == 'machine' else 2)")
    stand_in("--subject", "step", "--only", "eager", "--only", "torch.compile, empty caches", "--runs", "1", "--limit", "3.9")
    eager, cold = json.loads((tmp_path / "out.json").read_text())["subjects"]["step"]
    assert len(eager["runs"]) == 1 and cold["reason"].startswith("left out: "), "it would take two seconds as well"


def test_how_long_a_slow_way_took_says_nothing_of_a_quick_one(tmp_path):
    comparison = torch_peers.Comparison(torch_peers.parsed(["--list"]), tmp_path)
    comparison.rows["step"] = [row(ways.COLD, first(80.0, process_s=90.0))]
    assert comparison.quickest_s("step") == comparison.quickest_s("table") == 0
    comparison.rows["step"].append(row(ways.EAGER, first(1.0, process_s=13.0), first(1.0, process_s=12.0)))
    assert comparison.quickest_s("step") == 12.0


def test_without_a_device_there_is_nothing_to_compare(stand_in, tmp_path, capsys):
    (tmp_path / "bench" / "peers" / "with_torch.py").write_text("import sys; sys.exit('PyTorch finds no CUDA device')")
    assert stand_in() == 3
    said = capsys.readouterr()
    assert "PyTorch finds no CUDA device" in said.err and not said.out


@pytest.mark.parametrize("given, why", [(["none.so"], "LIBWARMGRAPH"), (["--subject", "steps"], "--subject steps")])
def test_usage(given, why, capsys):
    with pytest.raises(SystemExit) as ended:
        torch_peers.main(given)
    assert ended.value.code == 2 and why in capsys.readouterr().err
