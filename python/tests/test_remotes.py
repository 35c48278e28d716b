"""A cache in S3, with a server and a signer that others wrote: moto and botocore."""
from __future__ import annotations

import http.server
import os
import pathlib
import re
import subprocess
import threading
from typing import Any, Iterator
from urllib.parse import urlsplit

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import botocore.session
import pytest
from moto.server import ThreadedMotoServer

import warmgraph

KEY, SECRET, REGION = "AKIDEXAMPLE", "canary/secret+key", "eu-central-1"


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for name in ("AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def s3(credentials: None) -> Iterator[str]:
    """The address of an S3 server that has the bucket `models`."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    client = botocore.session.get_session().create_client("s3", region_name=REGION, endpoint_url=endpoint)
    client.create_bucket(Bucket="models", CreateBucketConfiguration={"LocationConstraint": REGION})
    yield endpoint
    server.stop()


def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = pathlib.Path(warmgraph.__file__).parent / "bin" / "warmgraph"
    return subprocess.run([str(program), *words], capture_output=True, text=True, env={**os.environ, **environment}, check=False)


def test_what_one_machine_records_another_replays(s3: str, process: Any, tmp_path: pathlib.Path) -> None:
    url = f"s3://models/team?region={REGION}&endpoint={s3}&allow-unsigned"
    call = """
        print(scale(x, np.float32(3))[5], wg.stats()[0].kinds["entries"].hits)
    """
    for machine, hits in (("one", 0), ("other", 1)):
        done = process(call, WARMGRAPH_REMOTE=url, WARMGRAPH_CACHE_DIR=str(tmp_path / machine))
        assert done.lines() == [f"15.0 {hits}"], done.err
    pulled = command("pull", "--remote", url, "--cache-dir", str(tmp_path / "third"))
    assert pulled.returncode == 0 and "s3://models/team" in pulled.stdout, pulled.stderr
    assert not [one for one in (pulled.stdout, pulled.stderr) if SECRET in one]


class Recorder(http.server.BaseHTTPRequestHandler):
    """Keeps each request, and has no object."""

    requests: list[tuple[str, str, dict[str, str], bytes]] = []
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.requests.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_PUT = do_DELETE = answer

    def log_message(self, *_arguments: Any) -> None:
        pass


def signature_by_botocore(method: str, url: str, headers: dict[str, str], signed: list[str]) -> str:
    request = botocore.awsrequest.AWSRequest(method=method, url=url, headers={name: headers[name] for name in signed})
    request.context["timestamp"] = headers["x-amz-date"]
    auth = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(KEY, SECRET), "s3", REGION)
    text: str = auth.string_to_sign(request, auth.canonical_request(request))
    made: str = auth.signature(text, request)
    return made


def test_requests_are_signed_as_botocore_signs_them(credentials: None) -> None:
    Recorder.requests = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    command("doctor", "--remote", f"s3://models/of%20a+team?region={REGION}&endpoint={endpoint}&allow-unsigned")
    server.shutdown()
    assert {method for method, *_ in Recorder.requests} >= {"GET", "PUT"}
    for method, path, headers, _ in Recorder.requests:
        if "authorization" not in headers:
            assert urlsplit(path).path == "/", "only the time is asked for without a signature"
            continue
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d+/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)",
                             headers["authorization"])
        assert found and found.group(1) == KEY and found.group(2) == REGION, headers["authorization"]
        assert found.group(4) == signature_by_botocore(method, endpoint + path, headers, found.group(3).split(";")), (method, path, headers)
