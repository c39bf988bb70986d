"""What operators ask, who may ask, and what browsers may do."""

import base64
import contextlib
import json
import resource
import sqlite3

import pytest

from harness import wait


def test_health_and_version(web):
    assert web.get("/healthz").json == {"status": "ok"}
    assert web.get("/readyz").json == {"status": "ready"}
    version = web.get("/version").json
    assert version["name"] == "larder" and version["version"] and version["redis_version"]
    assert web("HEAD", "/healthz").status == 200


def test_metrics(web):
    web.put("/keys/k", {"value": "v"})
    answer = web.get("/metrics")
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"\nlarder_" in answer.body and b'"http|put"' in answer.body


def test_readiness_is_a_write(web, redis):
    def commits():
        lines = redis("INFO", "larder").decode().split("\r\n")
        return next(int(line.split(":")[1]) for line in lines if line.startswith("commits:"))

    before = commits()
    assert web.get("/readyz").status == 200
    assert commits() == before + 1
    assert redis("DBSIZE") == 0 and redis("KEYS", "*") == []


@pytest.mark.sqlite
def test_not_ready_when_nothing_can_be_written(start):
    """Another process holds the database's lock, and there is no log: alive, readable, not ready."""
    server = start("--busy-timeout", "100ms", "--journal-max", "0")
    with server.http() as web:
        assert web.put("/keys/k", {"value": "v"}).status == 201
        other = sqlite3.connect(server.store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            for path in ("/readyz", "/healthz"):
                assert web.get(path).status == (503 if path == "/readyz" else 200)
            answer = web.put("/keys/k", {"value": "w"})
            assert answer.status == 503 and answer.error == "try_again"
            answer = web.post("/", ["SET", "k", "w"])
            assert answer.status == 503 and answer.json["error"].startswith("TRYAGAIN ")
            answer = web.post("/batch", {"operations": [{"op": "put", "key": "k", "value": "w"}], "async": True})
            if answer.status == 202:
                told = wait.until(
                    lambda: (t := web.get(answer.headers["Location"]).json)["status"] != "pending" and t, "the batch's outcome"
                )
                assert told["status"] == "failed" and told["code"] == 503
            else:
                assert answer.status == 503
            assert web.get("/keys/k").json["value"] == "v"
        finally:
            other.execute("ROLLBACK")
            other.close()
        assert wait.until(lambda: web.get("/readyz").status == 200, "it is ready again")
        assert web.put("/keys/k", {"value": "w"}).status == 200


@pytest.mark.sqlite
def test_ready_while_another_process_has_the_lock(start):
    """With a log, that stops no write."""
    server = start("--busy-timeout", "100ms")
    with server.http() as web, contextlib.closing(sqlite3.connect(server.store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert web.get("/readyz").status == 200
        assert web.put("/keys/k", {"value": "v"}).status == 201
        assert web.get("/readyz").status == 200


def test_not_ready_when_commits_fail(start):
    """HEAD, which monitors like to send, is told so as well, and the connection goes on."""
    server = start()
    everything = resource.RLIM_INFINITY
    with server.http() as web:
        assert web.put("/keys/k", {"value": "v"}).status == 201
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1, everything))
        answer = web("HEAD", "/readyz")
        assert answer.status == 503 and answer.body == b""
        answer = web.put("/keys/k", {"value": "w"})
        assert answer.status == 503 and answer.error
        assert web("HEAD", "/readyz").status == 503
        assert web.get("/healthz").status == 200
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (everything, everything))
        assert wait.until(lambda: web("HEAD", "/readyz").status == 200, "it is ready again")
        assert web.get("/keys/k").json["value"] == "v"


# --- passwords

PASSWORD = "s3cret:with colon"


@pytest.fixture
def locked(start):
    server = start("--requirepass", PASSWORD)
    with server.http() as web:
        yield web


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_password(locked):
    for headers in ({"Authorization": f"Bearer {PASSWORD}"}, {"Authorization": f"bearer  {PASSWORD}"},
                    basic("default", PASSWORD), basic("", PASSWORD)):  # fmt: skip
        assert locked.put("/keys/k", {"value": "v"}, headers=headers).status in (200, 201), headers
        assert locked.post("/", ["GET", "k"], headers=headers).json == {"result": "v"}
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {PASSWORD}x"}, {"Authorization": "Bearer"},
                    {"Authorization": PASSWORD}, {"Authorization": "Basic %%%"}, {"Authorization": "Basic "},
                    basic("other", PASSWORD), basic("default", ""), {"Authorization": f"Digest {PASSWORD}"}):  # fmt: skip
        for answer in (locked.get("/keys/k", headers=headers), locked.put("/keys/k", {"value": "w"}, headers=headers),
                       locked.post("/", ["GET", "k"], headers=headers), locked.get("/get/k", headers=headers),
                       locked.get("/metrics", headers=headers), locked.get("/version", headers=headers)):  # fmt: skip
            assert answer.status == 401, (headers, answer)
            assert "Bearer" in answer.headers["WWW-Authenticate"]
    assert locked.get("/healthz").status == 200 and locked.get("/readyz").status == 200
    assert locked.get("/keys/k", headers=basic("default", PASSWORD)).json["value"] == "v"


def test_mistakes_of_strangers(locked):
    """They are not told what is wrong with a request, nor what there is."""
    for answer in (locked.put("/keys/k", b"{", headers={"Content-Type": "application/json"}), locked.get("/keys/a/b/c"),
                   locked.get("/keys/k?db=99"), locked("PATCH", "/keys/k"), locked.post("/", b"["), locked.get("/auth/x")):  # fmt: skip
        assert answer.status == 401, answer


def test_one_request_does_not_open_the_next(locked):
    assert locked.get("/keys/k", headers=basic("default", PASSWORD)).status == 404
    assert locked.get("/keys/k").status == 401


# --- browsers

PAGE = {"Origin": "https://example.com"}


def test_pages_of_other_origins(web, redis):
    for headers in (PAGE, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        for answer in (web.post("/", b'["SET","k","v"]', headers={"Content-Type": "text/plain", **headers}),
                       web.get("/set/k/v", headers=headers), web.get("/keys", headers=headers)):  # fmt: skip
            assert answer.status == 403, headers
            assert "Access-Control-Allow-Origin" not in answer.headers
    assert redis("DBSIZE") == 0
    own = f"http://127.0.0.1:{web.port}"
    assert web.get("/keys", headers={"Origin": own, "Sec-Fetch-Site": "same-origin"}).status == 200
    assert web.get("/keys", headers={"Sec-Fetch-Site": "none"}).status == 200


def test_pages_that_only_a_referer_names(web, redis):
    """<img src="http://127.0.0.1:8379/set/k/v">: no Origin goes with that, and older browsers send no Sec-Fetch-Site."""
    own = f"http://127.0.0.1:{web.port}"
    for referer in ("https://example.com/page", "https://example.com", "http://127.0.0.1/", own + "1/", "http://127.0.0.1.example.com/",
                    f"{own}@example.com/", "about:client", "null", f"ftp://127.0.0.1:{web.port}/"):  # fmt: skip
        for answer in (web.get("/set/k/v", headers={"Referer": referer}), web.get("/keys", headers={"Referer": referer}),
                       web.post("/", ["SET", "k", "v"], headers={"Referer": referer})):  # fmt: skip
            assert answer.status == 403 and answer.json["error"], referer
    assert redis("DBSIZE") == 0
    for referer in (own, own + "/", own + "/keys?prefix=a", own + "?x", ""):
        assert web.get("/keys", headers={"Referer": referer}).status == 200, referer
    foreign = {"Referer": "https://example.com/", "Origin": own}  # whoever sends both means the Origin
    assert web.get("/keys", headers=foreign).status == 200


def test_listed_pages_that_only_a_referer_names(start):
    with start("--http-cors-origins", "https://example.com").http() as web:
        for site in ({}, {"Sec-Fetch-Site": "cross-site"}):
            assert web.get("/set/k/v", headers={"Referer": "https://example.com/a/b", **site}).status == 200
            assert web.get("/set/k/v", headers={"Referer": "https://example.org/a/b", **site}).status == 403


def test_names_that_point_here(web, start):
    for host in ("evil.example:80", "larder.internal"):
        web.connection.putrequest("GET", "/keys", skip_host=True)
        web.connection.putheader("Host", host)
        web.connection.endheaders()
        response = web.connection.getresponse()
        assert response.status == 403 and json.loads(response.read())["error"] == "host_not_allowed"
    for host in ("localhost:1", "127.0.0.1", "[::1]:8080"):
        web.connection.putrequest("GET", "/keys", skip_host=True)
        web.connection.putheader("Host", host)
        web.connection.endheaders()
        response = web.connection.getresponse()
        assert response.status == 200 and response.read()


def test_cors(start):
    server = start("--http-cors-origins", "https://example.com http://localhost:3000")
    with server.http() as web:
        answer = web.put("/keys/k", {"value": "v"}, headers=PAGE)
        assert answer.status == 201
        assert answer.headers["Access-Control-Allow-Origin"] == "https://example.com"
        assert answer.headers["Vary"] == "Origin" and "ETag" in answer.headers["Access-Control-Expose-Headers"]
        answer = web("OPTIONS", "/keys/k", headers={**PAGE, "Access-Control-Request-Method": "PUT",
                                                    "Access-Control-Request-Headers": "content-type"})  # fmt: skip
        assert answer.status == 204 and answer.body == b""
        assert "PUT" in answer.headers["Access-Control-Allow-Methods"]
        assert "Content-Type" in answer.headers["Access-Control-Allow-Headers"]
        assert answer.headers["Access-Control-Max-Age"]
        assert web.get("/keys/none", headers=PAGE).headers["Access-Control-Allow-Origin"] == "https://example.com"
        answer = web.get("/keys/k", headers={"Origin": "https://example.org"})
        assert answer.status == 403 and "Access-Control-Allow-Origin" not in answer.headers
        assert web.post("/", ["CONFIG", "SET", "http-cors-origins", "*"]).status == 200
        assert web.get("/keys/k", headers={"Origin": "https://example.org"}).headers["Access-Control-Allow-Origin"] == "*"
        assert web.get("/keys/k", headers={"Sec-Fetch-Site": "cross-site"}).status == 200


def test_preflight_needs_no_password(start):
    server = start("--requirepass", "x", "--http-cors-origins", "https://example.com")
    with server.http() as web:
        for path in ("/keys/k", "/", "/set/k/v"):
            answer = web("OPTIONS", path, headers={**PAGE, "Access-Control-Request-Method": "PUT"})
            assert answer.status == 204 and "Authorization" in answer.headers["Access-Control-Allow-Headers"]
        answer = web.get("/keys/k", headers=PAGE)
        assert answer.status == 401 and answer.headers["Access-Control-Allow-Origin"] == "https://example.com"


# --- the document

def test_openapi(web):
    document = web.get("/openapi.json").json
    assert document["openapi"].startswith("3.0")
    paths = document["paths"]
    assert set(paths["/keys/{key}"]) == {"get", "put", "delete"}
    ids = [op["operationId"] for methods in paths.values() for op in methods.values()]
    assert len(ids) == len(set(ids))

    def references(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key == "$ref":
                    yield value
                else:
                    yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    schemas = document["components"]["schemas"]
    used = {ref.rsplit("/", 1)[1] for ref in references(document)}
    assert used == set(schemas)


def test_every_route_is_served(web, redis):
    """What the document lists answers something else than "unknown path" or "wrong method"."""
    redis("SET", "x", "v")
    for path, methods in web.get("/openapi.json").json["paths"].items():
        for method in methods:
            real = path.replace("{key}", "x").replace("{index}", "0").replace("{field}", "f").replace("{member}", "m").replace("{id}", "0").replace("{table}", "t")
            answer = web(method.upper(), real)
            assert str(answer.status) in methods[method]["responses"], (method, path, answer)
            if answer.headers["Content-Type"] == "application/json":
                assert answer.json.get("error") not in ("unknown_path", "method_not_allowed")
