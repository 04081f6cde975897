"""The local app: who is answered and who is refused, and that answers are those of the package."""

import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from cli_host import run
from explored import digits, linear_net
from tinybayes import class_scores, explain, load, save
from tinybayes.errors import TinybayesError
from tinybayes.infer import ask_codes, compile_circuit, normalize_scores
from zoo import tan, tree_tan

pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("starlette", reason="starlette is not installed")
from served import TOKEN, Client, serving, write_progress
from tinybayes.serve.answers import parse_known
from tinybayes.serve.app import listening, make_app
from tinybayes.serve.guard import allowed_host
from tinybayes.serve.source import Source, is_running


def write_front(place, models, name="front.json"):
    entries = [
        {"id": key, "family": "tan", "bits": 8 * n + 8, "operations": 5, "validation_error": 0.1, "file": file}
        for n, (key, file) in enumerate(models.items())
    ]
    place.joinpath(name).write_text(json.dumps({"title": "a <b>search</b>", "models": entries}))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "search"
    (folder / "models").mkdir(parents=True)
    train, _ = digits()
    for name, model in {
        "tan": tan(),
        "tree": tree_tan(),
        "net": linear_net(train),
        "ac": compile_circuit(tan()),
    }.items():
        save(model, folder / "models" / f"{name}.tb")
    save(tan(), folder.parent / "secret.tb")
    models = {name: f"models/{name}.tb" for name in ("tan", "tree", "net", "ac")}
    write_front(folder, {**models, "gone": "models/gone.tb", "bare": None, "up": "../secret.tb"})
    return folder


@pytest.fixture(scope="module")
def client(place):
    with serving(place) as address:
        yield Client(address)


def test_the_page_holds_the_front_and_its_policy_fits(client):
    answer = client.send("/")
    assert answer.status == 200
    assert answer.getheader("content-type") == "text/html; charset=utf-8"
    data = json.loads(re.search(r'id="data">(.*?)</script>', answer.text, re.DOTALL)[1])
    assert [model["id"] for model in data["models"]] == ["tan", "tree", "net", "ac", "gone", "bare", "up"]
    assert data["cards"] == {}
    assert data["serve"]["token"] == TOKEN
    assert "connect-src &#x27;self&#x27;" in answer.text
    assert "<b>search</b>" not in answer.text
    for name in (
        "x-content-type-options",
        "referrer-policy",
        "content-security-policy",
        "cross-origin-resource-policy",
    ):
        assert answer.getheader(name), name
    assert answer.getheader("cache-control") == "no-store"
    assert answer.getheader("server") is None


def test_strangers_are_refused(client):
    port = client.place.split(":")[1]
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "192.168.0.7", "", "[::1", "a b"):
        assert client.send("/", headers={"Host": host}).status in (400, 403), host
    assert client.send("/", headers={"Host": [client.place, "evil.example"]}).status in (400, 403)
    for host in ("localhost", f"localhost:{port}", "127.0.0.1", "[::1]:9", "LOCALHOST:1"):
        assert client.send("/state", headers={"Host": host}).status == 200, host
    for origin in ("http://evil.example", "null", f"https://{client.place}", "http://localhost:1"):
        assert client.send("/state", headers={"Origin": origin}).status == 403, origin
    assert client.send("/state", headers={"Origin": f"http://{client.place}"}).status == 200
    for site in ("cross-site", "same-site"):
        assert client.send("/front", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}).status == 403
        assert client.send("/front", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}).status == 403
        assert client.send("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}).status == 200  # a link
    assert client.send("/state", headers={"Sec-Fetch-Site": "same-origin"}).status == 200


def test_a_host_that_was_opened_to_others_still_refuses_names():
    assert allowed_host("192.168.0.7:80", "0.0.0.0")
    assert allowed_host("board.local", "board.local")
    assert not allowed_host("evil.example", "0.0.0.0")
    assert not allowed_host("192.168.0.7:80", "127.0.0.1")
    assert not allowed_host("localhost:99999999", "127.0.0.1")
    assert not allowed_host("[evil]", "0.0.0.0")


def test_bodies_and_long_addresses_are_refused(client):
    huge = {"Content-Length": str(10**12)}
    assert client.send("/stop", "POST", {**huge, "X-Tinybayes-Token": TOKEN}).status == 413
    assert client.send("/state", "GET", {"Content-Length": "1"}, b"x").status == 413
    chunked = client.send("/stop", "POST", {"Transfer-Encoding": "chunked"}, b"1\r\nx\r\n0\r\n\r\n")
    assert chunked.status == 413
    assert client.send("/ask", id="tan", known="1" * 40_000).status in (400, 414)
    assert client.send("/" + "x" * 100_000).status in (400, 414)


def test_nothing_can_be_written_or_read_beside(client, place):
    before = sorted(place.parent.rglob("*"))
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert client.send("/", method).status in (403, 405)
        assert client.send("/model", method, id="tan").status in (403, 405)
    assert client.send("/stop").status == 405
    for path in (
        "/front.json",
        "/models/tan.tb",
        "/../secret.tb",
        "/..%2fsecret.tb",
        "/%2e%2e/secret.tb",
        "//etc/passwd",
    ):
        assert client.send(path).status in (400, 404), path
    for key in ("none", "../secret", "up/../tan", "/etc/passwd", "bare", "tan\x00", "%2e%2e"):
        for path in ("/model", "/ask"):
            answer = client.send(path, id=key)
            assert answer.status == 404, key
            assert "error" in json.loads(answer.text)
    assert client.send("/model", id="up").status == 400  # named by the front, but outside of the directory
    assert "below the directory" in client.send("/ask", id="up").text
    assert client.send("/model", id="gone").status == 400
    assert client.send("/model").status == 400
    assert sorted(place.parent.rglob("*")) == before


PLACES = {"/": {}, "/state": {}, "/front": {}, "/model": {"id": "tan"}, "/ask": {"id": "tan"}, "/none": {}}


def test_nothing_is_told_without_the_token(client, place):
    stranger = Client(f"http://{client.place}/", None)
    for path, parameters in PLACES.items():
        for given in (None, "", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é"):
            headers = {} if given is None else {"X-Tinybayes-Token": given, "Cookie": f"{cookie_of(client)}={given}"}
            answer = stranger.send(path, headers=headers, **parameters)
            assert answer.status == 403, (path, given)
            assert "tinybayes serve printed" in answer.text
            assert "set-cookie" not in answer.headers
    assert stranger.send("/state", token=TOKEN).status == 403  # in the address only where the page is opened
    assert stranger.send("/stop", "POST", {"Content-Length": "0"}).status == 403


def cookie_of(client):
    return f"tinybayes-{client.place.split(':')[1]}"


def test_the_link_gives_a_cookie_that_opens_the_page(client):
    stranger = Client(f"http://{client.place}/", None)
    for wrong in ("", "wrong", TOKEN + "x", f"{TOKEN}&token={TOKEN}"):
        assert stranger.send(f"/?token={wrong}").status == 403, wrong
    opened = stranger.send(f"/?token={TOKEN}", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
    assert (opened.status, opened.getheader("location")) == (303, "/")
    cookie, *attributes = opened.getheader("set-cookie").split("; ")
    assert cookie == f"{cookie_of(client)}={TOKEN}"
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(attributes)
    with_cookie = {"Cookie": f"other=1; {cookie}; more=x"}
    assert stranger.send("/", headers=with_cookie).status == 200
    assert stranger.send("/state", headers=with_cookie).status == 200
    assert stranger.send("/state", headers={**with_cookie, "Origin": "http://evil.example"}).status == 403
    # The browser sends cookies for pages of others, too; what changes something needs the header of our own.
    assert stranger.send("/stop", "POST", {**with_cookie, "Content-Length": "0"}).status == 403
    assert stranger.send("/state", headers={"Cookie": cookie.replace("tinybayes-", "tinybayes-1")}).status == 403


def test_half_a_request_is_dropped_after_seconds(place, monkeypatch):
    monkeypatch.setattr("tinybayes.serve.connections.PATIENCE", 0.7)
    with serving(place) as link, ExitStack() as stack:
        client = Client(link)
        host, port = client.place.split(":")
        halves = (b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        waiting = [stack.enter_context(socket.create_connection((host, int(port)), 20)) for _ in range(120)]
        for number, connection in enumerate(waiting):
            connection.sendall(halves[number % len(halves)])
        assert client.send("/state").status == 200  # nobody else waits for them
        for connection in waiting:
            assert connection.recv(1) == b""
        # After a whole request as well, and however slowly more bytes of the next one come.
        again = stack.enter_context(socket.create_connection((host, int(port)), 20))
        again.sendall(f"GET /state HTTP/1.1\r\nHost: {client.place}\r\nX-Tinybayes-Token: {TOKEN}\r\n\r\n".encode())
        assert again.recv(100).startswith(b"HTTP/1.1 200")
        received, start = b"x", time.monotonic()
        with suppress(ConnectionError):
            for letter in "GET /" + "x" * 1000:
                again.sendall(letter.encode())
                again.settimeout(0.1)
                with suppress(TimeoutError):
                    if not (received := again.recv(10_000)):
                        break
        assert received == b"" or time.monotonic() - start < 60


def at_once(client, count):
    """Send so many requests at the same time."""
    gate = threading.Barrier(count)

    def one(_):
        gate.wait()
        return client.send("/state")

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_many_requests_at_once_are_served(client):
    assert [answer.status for answer in at_once(client, 200)] == [200] * 200


def test_too_many_requests_are_told_to_try_again(place, monkeypatch):
    monkeypatch.setattr("tinybayes.serve.guard.MAX_REQUESTS", 3)
    monkeypatch.setattr(Source, "progress", lambda _: time.sleep(0.5))
    with serving(place) as link:
        answers = at_once(Client(link), 30)
        assert {answer.status for answer in answers} == {200, 503}
        for answer in answers:
            assert (answer.getheader("retry-after") == "1") == (answer.status == 503)
        assert Client(link).send("/state").status == 200  # all is forgotten


def test_the_browser_gets_the_link_from_a_file_of_its_user(monkeypatch):
    from tinybayes.cli.serve import _only_for_me

    with _only_for_me("http://127.0.0.1:1/?token=secret") as address:
        assert "secret" not in address
        page = Path(urlsplit(address).path)
        assert "url=http://127.0.0.1:1/?token=secret" in page.read_text()
        assert page.stat().st_mode & 0o077 == 0
    assert not page.exists()


def test_stop_needs_the_token_and_a_search(tmp_path):
    with serving(tmp_path) as address:
        client = Client(address)
        good = {"X-Tinybayes-Token": TOKEN, "Content-Length": "0"}
        assert client.send("/stop", "POST", good).status == 409
        write_progress(tmp_path)
        for token in ("", "wrong", TOKEN + "x", TOKEN.upper()):
            assert client.send("/stop", "POST", {**good, "X-Tinybayes-Token": token}).status == 403
        assert client.send("/stop", "POST", {**good, "Origin": "http://evil.example"}).status == 403
        assert client.send("/stop", "POST", {**good, "Host": "evil.example"}).status == 403
        assert not (tmp_path / "stop").exists()
        assert not client.get("/state")["progress"]["stopping"]
        assert client.send("/stop", "POST", good).status == 200
        assert (tmp_path / "stop").read_bytes() == b""
        assert client.get("/state")["progress"]["stopping"]
        (tmp_path / "stop").unlink()
        (tmp_path / "precious").write_text("kept")
        (tmp_path / "stop").symlink_to(tmp_path / "precious")
        assert client.send("/stop", "POST", good).status == 400  # no link is followed
        assert (tmp_path / "precious").read_text() == "kept"


def test_the_front_follows_the_search(place, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.tb").write_bytes((place / "models" / "tan.tb").read_bytes())
    with serving(tmp_path) as address:
        client = Client(address)
        assert client.get("/state") == {"progress": None, "version": "none"}
        assert client.get("/front")["data"]["models"] == []
        assert client.send("/").status == 200
        write_progress(tmp_path)
        write_front(tmp_path, {"a": "models/a.tb"}, "live.json")
        first = client.get("/state")
        assert first["progress"]["running"]
        assert first["version"].startswith("live.json")
        write_front(tmp_path, {"a": "models/a.tb", "b": None}, "live.json")
        second = client.get("/front")
        assert second["version"] != first["version"]
        assert [m["id"] for m in second["data"]["models"]] == ["a", "b"]
        write_front(tmp_path, {"z": "models/a.tb"})
        assert client.get("/state")["version"] == second["version"]  # what runs now is newer than what ended
        write_progress(tmp_path, phase="done")
        last = client.get("/front")
        assert last["version"].startswith("front.json")
        assert [m["id"] for m in last["data"]["models"]] == ["z"]
        half = "\ud800"  # of a character, which UTF-8 does not have
        write_front(tmp_path, {half: f"models/{half}.tb"}, "live.json")
        write_progress(tmp_path, phase=half, host=half)
        assert [m["id"] for m in client.get("/front")["data"]["models"]] == [half]
        assert client.get("/state")["progress"]["phase"] == half
        assert half not in client.send("/").text
        write_progress(tmp_path, phase="done")
        (tmp_path / "front.json").write_text("{")
        assert client.send("/front").status == 400
        assert client.send("/").status == 500
        (tmp_path / "progress.json").write_text("[" * 10_000)
        assert client.send("/state").status == 400


def test_who_still_runs():
    now = {"phase": "searching", "pid": os.getpid(), "host": os.uname().nodename, "updated": time.time()}
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert is_running(now)
    assert not is_running({**now, "phase": "done"})
    assert not is_running({**now, "pid": ended.pid})
    assert not is_running({**now, "updated": time.time() - 7200})
    assert is_running({**now, "host": "elsewhere", "pid": ended.pid})
    assert not is_running({**now, "host": "elsewhere", "updated": time.time() - 120})
    for wrong in ({"pid": 10**30}, {"updated": "now"}, {"updated": None}, {"updated": [1]}):
        assert not is_running({**now, **wrong})
    for unknown in ({"pid": "x"}, {"pid": -1}, {"host": 7}):  # judged by its last word alone
        assert is_running({**now, **unknown})
    assert not is_running({})


@pytest.mark.parametrize("key", ["tan", "tree", "ac"])
def test_answers_are_those_of_ask(client, place, key):
    model = load(place / "models" / f"{key}.tb")
    circuit = compile_circuit(model)
    for row in ([-1, -1, -1], [0, -1, -1], [1, 2, -1], [-1, 1, 1], [0, 0, 0]):
        known = ",".join(f"{node}.{code}" for node, code in enumerate(row) if code >= 0)
        found = client.get("/ask", id=key, known=known)
        told = ask_codes(circuit, np.full(3, -1), np.array(row), posterior=True)
        np.testing.assert_allclose(np.concatenate(found["posteriors"]), told.posterior, atol=1e-12)
        assert found["log_evidence"] == pytest.approx(told.log_evidence)
        np.testing.assert_allclose(found["classes"], told.posterior[-2:], atol=1e-12)
        explained = found["explanation"]
        if key == "ac" or row[-1] >= 0 or (key == "tree" and -1 in row[:2]):
            assert explained is None
            continue
        wanted = explain(model, np.array(row[:2]))
        assert (explained["label"], explained["against"]) == (wanted.label, wanted.against)
        assert explained["total"] == pytest.approx(wanted.total)
        assert [c["log_odds"] for c in explained["contributions"]] == [c.log_odds for c in wanted.strongest(10)]
    other = client.get("/ask", id="tan", known="0.1,1.2", against="0")["explanation"]
    assert (other["label"], other["against"], other["rest"]) == ("spam", "ham", pytest.approx(0, abs=1e-12))


def test_answers_of_a_neural_net_are_its_scores(client, place):
    net = load(place / "models" / "net.tb")
    about = client.get("/model", id="net")["ask"]
    assert (about["target"], about["explains"], about["posteriors"]) == (64, False, False)
    row = np.full(64, -1)
    row[[3, 20, 40]] = [3, 0, 2]
    found = client.get("/ask", id="net", known="3.3,20.0,40.2")
    np.testing.assert_allclose(found["classes"], np.exp(normalize_scores(class_scores(net, row[None])))[0])
    assert (found["posteriors"], found["explanation"], found["log_evidence"]) == (None, None, None)


def test_a_model_tells_what_can_be_asked(client):
    found = client.get("/model", id="tan")
    numbers = {"low": 0, "high": 1, "single": True}
    assert found["ask"]["variables"][0] == {"name": "a", "states": ["0", "1"], "encoding": numbers}
    assert found["ask"]["variables"][2]["encoding"] == {"states": True, "bools": False}
    assert found["ask"]["kind"] == "network"
    assert found["ask"]["variables"][2]["states"] == ["ham", "spam"]
    assert found["card"]["kind"] == "network"


def test_bad_questions_are_refused(client, place):
    for known in ("0", "0.9", "9.0", "-1.0", "0.-1", "0.0,0.1", "a.b", "0.0;1.0", "1e3.0", "٣.0", "0.0 "):
        answer = client.send("/ask", id="tan", known=known)
        assert answer.status == 400, known
        assert "known" in json.loads(answer.text)["error"]
    for against in ("2", "x", "-1", "²"):
        assert client.send("/ask", id="tan", against=against).status == 400, against
    row = parse_known("1.2,0.1", load(place / "models" / "tan.tb"))
    assert row.tolist() == [1, 2, -1]


def test_what_cannot_happen_is_said(tmp_path):
    from zoo import sprinkler

    save(sprinkler(), tmp_path / "rain.tb")
    write_front(tmp_path, {"rain": "rain.tb"})
    with serving(tmp_path) as address:
        client = Client(address)
        found = client.get("/ask", id="rain", known="0.0,1.0,2.1")
        assert "zero" in found["note"]
        assert found["posteriors"] is None
        good = client.get("/ask", id="rain", known="2.1")
        assert good["posteriors"][0][1] == pytest.approx(1 / 3)
        assert good["classes"] is None
        assert good["log_evidence"] == pytest.approx(math.log(27 / 64))


def test_a_search_may_begin_later_in_a_directory_that_does_not_exist_yet(place, tmp_path):
    later = tmp_path / "later" / "search"
    with serving(later) as address:
        client = Client(address)
        assert client.get("/state") == {"progress": None, "version": "no directory"}
        assert client.get("/front")["data"]["title"] == f"Waiting for a search in {later}"
        assert client.send("/").status == 200
        assert client.send("/model", id="a").status == 404
        assert client.send("/stop", "POST", {"x-tinybayes-token": TOKEN}).status == 409
        assert not later.exists()
        (later / "models").mkdir(parents=True)
        assert client.get("/state")["version"] == "none"
        (later / "models" / "a.tb").write_bytes((place / "models" / "tan.tb").read_bytes())
        write_front(later, {"a": "models/a.tb"})
        assert [m["id"] for m in client.get("/front")["data"]["models"]] == ["a"]
        assert client.get("/model", id="a")["card"]["kind"] == "network"


def test_refusals_before_the_start(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(TinybayesError, match="name the directory of tinybayes explore"):
        Source(tmp_path / "file")
    with listening("127.0.0.1", 0) as place:
        port = place.getsockname()[1]
        with pytest.raises(TinybayesError, match="choose another port"):
            listening("127.0.0.1", port)
    with pytest.raises(TinybayesError, match="an address to listen at"):
        listening("999.1.1.1", 0)
    assert "name the directory" in run("serve", "file", "--no-browser", cwd=tmp_path, code=2).stderr
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(TinybayesError, match=r"the package starlette.*tinybayes\[serve\]"):
        make_app(tmp_path)


def test_the_command_serves_until_ctrl_c(place):
    command = [sys.executable, "-m", "tinybayes", "serve", str(place), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    link = re.search(r"http://127\.0\.0\.1:[0-9]+/\?token=([\w-]{40,})", line)
    assert Client(link[0], link[1]).send("/").status == 200
    assert Client(link[0], None).send("/").status == 403
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out.partition("\n")[0], err) == (0, "Ended.", "")
    assert "Now try: tinybayes export" in out
