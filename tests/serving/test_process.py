"""The service as a user starts it: a process of its own, on a free port of 127.0.0.1."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

import rankgrove as rg
from rankgrove.serving.server import _listen
from tests.command import COMMAND, run_here
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

DATA = rg.make_web(30, n_docs=12, n_features=5, seed=1)
BODY = json.dumps({"documents": [{"features": row} for row in DATA.X[:12].tolist()]}).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve")
    rg.LambdaMART(n_trees=8, min_leaf=5).fit(DATA).save(path / "trees.rg")
    rg.MART(n_trees=4).fit(DATA).save(path / "mart.rg")
    return path


@contextlib.contextmanager
def started(*words):
    """Start the service; give the process and its port; stop it, and look at how it ended."""
    with subprocess.Popen(
        [COMMAND, "serve", *map(str, words), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            assert found, line + process.stderr.read()
            yield process, int(found[1])
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        assert "Traceback" not in said
        assert process.returncode == 0


def ask(port, path="/rank", body=BODY, method="POST"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def until(condition):
    """Wait for something that happens by itself soon."""
    for _ in range(400):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def test_two_models_and_signals(folder, tmp_path):
    path = tmp_path / "m.rg"
    shutil.copy(folder / "trees.rg", path)
    with started(path, f"other={folder / 'mart.rg'}", "--watch", 0) as (process, port):
        status, first = ask(port)
        assert (status, first["model"], first["version"]) == (200, "m", 1)
        scores = rg.load(path).predict(DATA.X[:12])
        assert first["scores"] == sorted(scores.tolist(), reverse=True)
        assert ask(port, "/models/other/rank")[1]["model"] == "other"
        assert ask(port, "/models", None, "GET")[1]["default"] == "m"
        shutil.copy(folder / "mart.rg", path)
        process.send_signal(signal.SIGHUP)
        until(lambda: ask(port)[1]["version"] == 2)
        assert ask(port)[1]["scores"] == ask(port, "/models/other/rank")[1]["scores"]


def test_changed_files_are_read_again(folder, tmp_path):
    path = tmp_path / "m.rg"
    shutil.copy(folder / "trees.rg", path)
    with started(path, "--watch", 0.05, "--quiet") as (_, port):
        before = ask(port)[1]
        path.write_bytes(b"nothing")
        until(lambda: ask(port, "/health", None, "GET")[1]["status"] == "stale")
        assert ask(port)[1] == before
        rg.load(folder / "mart.rg").save(path)
        until(lambda: ask(port)[1]["version"] == 2)
        assert ask(port, "/health", None, "GET")[1]["status"] == "ok"


def test_reloading_under_load_loses_nothing(folder, tmp_path):
    path = tmp_path / "m.rg"
    shutil.copy(folder / "trees.rg", path)
    wanted = [
        sorted(rg.load(folder / name).predict(DATA.X[:12]).tolist(), reverse=True)
        for name in ("mart.rg", "trees.rg")
    ]
    answers, over = [], threading.Event()

    def load(port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while not over.is_set():
            connection.request("POST", "/rank", BODY)
            answer = connection.getresponse()
            answers.append((answer.status, json.loads(answer.read())))
        connection.close()

    with started(path, "--watch", 0) as (_, port):
        threads = [threading.Thread(target=load, args=(port,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for k in range(12):
            rg.load(folder / ("mart.rg", "trees.rg")[k % 2]).save(path)
            assert ask(port, "/reload", b"")[0] == 200
        over.set()
        for thread in threads:
            thread.join(60)
        figures = ask(port, "/metrics", None, "GET")[1]
    assert len({one["version"] for _, one in answers}) > 3
    for status, one in answers:
        assert status == 200
        assert one["scores"] == wanted[one["version"] % 2]
    assert figures["ranked_by_model"] == {"m": len(answers)}


def test_requests_under_way_are_finished(folder):
    with started(folder / "trees.rg") as (process, port):
        with socket.create_connection(("127.0.0.1", port), 30) as sent:
            head = f"POST /rank HTTP/1.1\r\nHost: x\r\nContent-Length: {len(BODY)}\r\n\r\n"
            sent.sendall(head.encode() + BODY[:50])
            ask(port, "/health", None, "GET")  # so that the head has been read
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            sent.sendall(BODY[50:])
            assert sent.recv(100).startswith(b"HTTP/1.1 200")
        assert process.wait(30) in (0, -signal.SIGTERM)
        process.returncode = 0


def garbage():
    rng = random.Random(1)
    yield b""
    for n in (1, 100, 10_000):
        yield rng.randbytes(n)
    yield b"\r\n" * 1000
    yield b"POST /rank HTTP/1.1\r\nContent-Length: -5\r\n\r\n"
    yield b"POST /rank HTTP/1.1\r\nHost: [::1\r\nContent-Length: 99999999999999999999\r\n\r\n"
    yield b"POST /rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    yield b"POST /rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[[[[["
    yield b"GET /%ff%fe/../../etc HTTP/1.1\r\nHost: [::1\r\n\r\n"
    yield b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"GET /health HTTP/1.1\r\n" + b"X-A: " + b"b" * 500_000 + b"\r\n\r\n"
    yield b"GET /health HTTP/1.1\r\n" + b"X-A: b\r\n" * 50_000 + b"\r\n"
    yield b"CONNECT / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    yield b"POST /rank HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + b"[" * 10  # cut off
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def test_garbage_does_not_stop_it(folder):
    with started(folder / "trees.rg", "--timeout", 0.3, "--quiet") as (process, port):
        for sent in garbage():
            with (
                contextlib.suppress(ConnectionError, TimeoutError),
                socket.create_connection(("127.0.0.1", port), 0.3) as line,
            ):
                line.sendall(sent)
                line.recv(1000)
            assert process.poll() is None
        with socket.create_connection(("127.0.0.1", port), 30) as slow:
            slow.sendall(b"POST /rank HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            assert slow.recv(100).startswith(b"HTTP/1.1 408")
        status, answer = ask(port, body=b"[" * 100_000)
        assert (status, answer["error"]["status"]) == (400, 400)
        assert ask(port)[0] == 200


def test_mistakes_of_starting(folder):
    path = folder / "trees.rg"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for words, complaint in [
            ([path, "--port", port], "Give another --port"),
            ([path, path], "Two models are named 'trees'"),
            (["a/b=" + str(path)], "NAME=FILE"),
            ([folder / "none.rg"], "no such file"),
            ([__file__], "is not a rankgrove model"),
            ([path, "--host", "no.such.host.invalid"], "--host no.such.host.invalid"),
        ]:
            _, said = run_here("serve", *words, status=2)
            assert complaint in said
            assert said.startswith("error: ")


def test_without_the_extra(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    _, said = run_here("serve", folder / "trees.rg", status=2)
    assert "pip install 'rankgrove[serve]'" in said


def test_answers_are_sent_at_once():
    """Without the protocol's name asyncio would wait 40 ms for the rest of small answers."""
    with _listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_the_example_of_the_documentation(tmp_path, capsys):
    data = rg.make_artificial(20, n_docs=10, n_features=5, seed=1)
    rg.LambdaMART(n_trees=2, min_leaf=5).fit(data).save(tmp_path / "web.rg")
    text = (ROOT / "docs" / "serving.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    with started(tmp_path / "web.rg") as (_, port):
        assert ":8080/" in code
        exec(code.replace(":8080/", f":{port}/"), {})
        wrong = {"documents": [{"features": [0, "x", 0, 0, 0]}]}
        _, answer = ask(port, body=json.dumps(wrong).encode())
    assert re.match(r"\['[ab]', '[ab]'\] \[", capsys.readouterr().out)
    (told,) = re.findall(r"```json\n(.*?)```", text, re.S)
    assert answer == json.loads(told)
