"""Tests the options of a cache, and where log lines go."""
from __future__ import annotations

import pickle
import secrets

import pytest

import warmgraph
from warmgraph import Compression, Config, InvalidArgument, RemoteStatistics, Statistics


def test_config_is_mutable_and_knows_its_options():
    config = Config(policy="read_only")
    config.max_variants = 3
    assert (config.policy, config.max_variants, config.verify_on_load) == ("read_only", 3, False)
    assert config == config.copy() and config != Config()


def test_options_by_kind_are_typed():
    config = Config(kinds={"tuned", "entries"}, max_bytes_by_kind={"torch": 5, "compiled": 1 << 30},
                    compression={"images": Compression(3), "entries": Compression(9, above=0)}, profile=False)
    assert config.kinds == ("entries", "tuned") and list(config.max_bytes_by_kind) == ["compiled", "torch"]
    assert repr(config) == repr(Config(kinds=["entries", "tuned"], max_bytes_by_kind={"compiled": 1 << 30, "torch": 5},
                                       compression={"entries": Compression(9, 0), "images": Compression(3, 16384)}, profile=False))
    copied = config.copy()
    config.max_bytes_by_kind["tuned"] = 1
    assert copied.max_bytes_by_kind == {"compiled": 1 << 30, "torch": 5} and pickle.loads(pickle.dumps(copied)) == copied


def test_options_by_kind_reach_the_cache(process, folder):
    script = """
        config = wg.Config(model="toy", compression={{"images": wg.Compression(9, above=0)}}, kinds={kinds}, max_bytes_by_kind={{"compiled": {limit}}})
        again = wg.cache_compile(scale._function, config=config, outputs=lambda x, factor: wg.like(x), scalars={{"factor": wg.Scalar("f32", -9, 9)}})
        print(again(x, 2.0)[3], again.report().outcome)
    """
    assert process(script.format(kinds=(), limit=1 << 30)).lines() == ["6.0 eager"]
    assert list(folder.rglob("*.wg")) == list(folder.rglob("*.compiled")) == []
    assert process(script.format(kinds=("entries", "compiled"), limit=1)).lines() == ["6.0 recorded"]
    assert list(folder.rglob("*.compiled")) == [] and list(folder.rglob("*.wg"))
    images = [path for path in (folder / "images").rglob("*") if path.is_file()]
    assert images and all(path.read_bytes()[:4] == b"\x28\xb5\x2f\xfd" for path in images)  # the first bytes of a zstd frame
    assert process("print(scale(x, 2.0)[1])").lines() == ["2.0"]


def test_a_config_shows_no_secret_of_a_remote():
    urls = ["redis://me:hunter2@cache:6379/0?namespace=v7", "https://host/a?token=hunter2&read-only&user=hunter2", "s3://models/a?password=hunter2@x", "file:///shared"]
    config = Config(remote=urls)
    assert config.remote == tuple(urls) and Config(remote=[]).remote == () and Config().remote is None
    assert "hunter2" not in repr(config) and "hunter2" not in str(config)
    for shown in ("redis://***@cache:6379/0?namespace=v7", "https://host/a?token=***&read-only&user=***", "s3://models/a?password=***", "file:///shared"):
        assert shown in repr(config)
    with pytest.raises(InvalidArgument) as refused:
        Config(remote=urls[0])
    assert "hunter2" not in str(refused.value)
    assert config.identity() != Config(remote=[url.replace("hunter2", "hunter3") for url in urls]).identity()
    assert pickle.loads(pickle.dumps(config)) == config


def test_a_remote_gives_another_machine_what_one_recorded(process, folder, tmp_path):
    key = tmp_path / "key"
    key.write_text(f"release:hmac-sha256:{secrets.token_hex(32)}\n")
    key.chmod(0o600)
    script = """
        config = wg.Config(model="toy", remote={remote}, remote_deadline_ms=60_000, sign_with_file={key!r})
        again = wg.cache_compile(scale._function, config=config, cache_dir={where!r}, outputs=lambda x, factor: wg.like(x), scalars={{"factor": wg.Scalar("f32", -9, 9)}})
        print(again(x, 2.0)[3], again.report().outcome)
        remotes = wg.stats(again)[0].remotes
        print([(one.label, one.hits > 0, one.bytes_read > 0, one.errors) for one in remotes])
    """
    url = f"file://{tmp_path}/shared"

    def lines(name: str, remote: list[str] | None) -> list[str]:
        return process(script.format(remote=remote, key=str(key), where=str(tmp_path / name))).lines()

    assert lines("a", [url]) == ["6.0 recorded", str([(url, False, False, {})])]
    assert lines("b", [url]) == ["6.0 replayed", str([(url, True, True, {})])]
    assert lines("c", []) == ["6.0 recorded", "[]"]


def test_tags_keep_caches_apart(process, folder):
    script = """
        config = wg.Config(model="toy", cache_key_tag={tag!r})
        again = wg.cache_compile(scale._function, config=config, outputs=lambda x, factor: wg.like(x), scalars={{"factor": wg.Scalar("f32", -9, 9)}})
        print(again(x, 2.0)[3], again.report().outcome)
    """
    assert [process(script.format(tag=tag)).lines() for tag in ("", "blue", "blue", "")] == [["6.0 recorded"], ["6.0 recorded"], ["6.0 replayed"], ["6.0 replayed"]]


def test_statistics_of_remotes_are_added_by_label():
    one = RemoteStatistics("redis://a", hits=1, read_ms=2.0, errors={"io_failed": 1})
    other = RemoteStatistics("redis://a", hits=2, puts=3, errors={"io_failed": 1, "corrupt": 2})
    assert one + other == RemoteStatistics("redis://a", hits=3, puts=3, read_ms=2.0, errors={"io_failed": 2, "corrupt": 2})
    total = Statistics("here", remotes=(one,)) + Statistics("here", remotes=(RemoteStatistics("file:///b"), other))
    assert [(remote.label, remote.hits) for remote in total.remotes] == [("redis://a", 3), ("file:///b", 0)]


@pytest.mark.parametrize("options, text", [
    ({"polcy": "off"}, "did you mean 'policy'"), ({"policy": "readonly"}, "did you mean 'read_only'"),
    ({"mode": "reduce-overhead"}, "no option 'mode'"), ({"max_variants": "3"}, "expected int"), ({"max_variants": -1}, "at least 0"),
    ({"max_variants": True}, "expected int"), ({"environment": "HOME"}, "a list of texts"), ({"verify_on_load": 1}, "expected bool"), ({"model_config": {"a": 1}}, "a dict of texts"),
    ({"zzz": 1}, "expected one of: accept_file"), ({"kinds": "entries"}, "a set of kinds, or None"),
    ({"kinds": ["graphs"]}, "the kind 'graphs': expected entries, compiled, tuned, profiles"), ({"kinds": {"images"}}, "the kind 'images'"),
    ({"max_bytes_by_kind": "compiled=1G"}, "a dict of bytes by kind"), ({"max_bytes_by_kind": {"images": 1}}, "the kind 'images'"),
    ({"max_bytes_by_kind": {"tuned": "1G"}}, "of tuned is '1G', expected bytes"), ({"max_bytes_by_kind": {"tuned": -1}}, "expected bytes"),
    ({"compression": {"entries": 9}}, "of entries is 9, expected Compression"), ({"compression": {"tuned": Compression(1)}}, "the kind 'tuned'"),
    ({"profile": 1}, "expected True, False or None"), ({"bundles": [1]}, "a list of texts"),
    ({"remote": "redis://host"}, "expected a list of URLs, or None"), ({"remote": [1]}, "a list of URLs"), ({"remote_deadline_ms": "2"}, "expected int"), ({"cache_key_tag": 1}, "expected str"),
])
def test_wrong_options_are_errors_that_help(options, text):
    with pytest.raises(InvalidArgument, match=text):
        Config(**options)
    name, value = next(iter(options.items()))
    with pytest.raises(InvalidArgument, match=text):
        setattr(Config(), name, value)


def test_cache_compile_knows_its_options():
    with pytest.raises(InvalidArgument, match="did you mean 'cache_dir'"):
        warmgraph.cache_compile(lambda x: x, cachedir="/tmp")
    with pytest.raises(InvalidArgument, match="expected a warmgraph.Config"):
        warmgraph.cache_compile(lambda x: x, config={"policy": "off"})
    with pytest.raises(InvalidArgument, match="a generator or a coroutine"):
        warmgraph.cache_compile((lambda: (yield)))
    with pytest.raises(InvalidArgument, match="not a Python function"):
        warmgraph.cache_compile(print)


@pytest.mark.parametrize("options", [{"dtype": "f16"}, {"dtype": "f32", "low": 1}])
def test_scalars_have_a_type_and_a_whole_range(options):
    with pytest.raises(InvalidArgument):
        warmgraph.Scalar(**options)


def test_lines_reach_the_logger(process):
    done = process("""
        logging.basicConfig(level=logging.INFO, format="%(name)s|%(levelname)s|%(message)s", stream=sys.stdout)
        scale(x, 2.0)
    """)
    assert any(line.startswith("warmgraph|INFO|saved toy/world1global_rank0/scale") for line in done.lines())
    assert "saved" not in done.err


def test_without_logging_warnings_alone_are_printed(process, tmp_path):
    assert process("scale(x, 2.0)").err == ""
    (tmp_path / "file").write_text("x")
    done = process("print(scale(x, 2.0)[1])", WARMGRAPH_CACHE_DIR=str(tmp_path / "file"))
    assert done.lines() == ["2.0"] and "caching is off" in done.err


def test_the_environment_asks_for_lines_without_any_configuration(process):
    assert "warmgraph: saved toy/" in process("scale(x, 2.0)", WARMGRAPH_LOG="info").err
    done = process("logging.basicConfig(level=0, stream=sys.stdout)\nscale(x, 2.0)", WARMGRAPH_LOG="info")
    assert "loaded toy/" in done.out and "loaded toy/" not in done.err


def test_lines_that_the_logger_drops_are_not_made(process):
    done = process("""
        import types
        from warmgraph.core.binding import _log
        inner, received = _log.logger, []
        _log.logger = types.SimpleNamespace(log=lambda level, *rest: received.append(level), getEffectiveLevel=inner.getEffectiveLevel)
        scale(x, 2.0)
        print(len(received))
        inner.setLevel(logging.INFO)
        wg.Cache("toy")
        scale(np.arange(128, dtype=np.float32), 2.0)
        print(set(received) == {logging.INFO})
    """)
    assert done.lines() == ["0", "True"]
