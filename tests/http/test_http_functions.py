"""FUNCTION and FCALL over HTTP: one command, a pipeline, a transaction, a path."""

import pytest

from harness.http import b64

CODE = """#!lua name=web
redis.register_function('get_set', function(keys, args)
    local was = redis.call('GET', keys[1])
    redis.call('SET', keys[1], args[1])
    return was
end)
redis.register_function{function_name = 'peek', callback = function(keys) return redis.call('GET', keys[1]) end, flags = {'no-writes'}}
redis.register_function{function_name = 'fails', flags = {'rollback'}, callback = function(keys)
    redis.call('SET', keys[1], 'x')
    error('no')
end}
"""


@pytest.fixture
def loaded(web):
    web.post("/", ["FUNCTION", "FLUSH"])
    assert web.post("/", ["FUNCTION", "LOAD", CODE]).json == {"result": "web"}
    yield web
    web.post("/", ["FUNCTION", "FLUSH"])


def test_functions(loaded, redis):
    assert loaded.post("/", ["FCALL", "get_set", 1, "k", "a"]).json == {"result": None}
    assert loaded.post("/", ["FCALL", "get_set", 1, "k", "b"]).json == {"result": "a"}
    assert loaded.get("/fcall_ro/peek/1/k").json == {"result": "b"}
    assert redis("FCALL", "peek", "1", "k") == b"b"
    answer = loaded.post("/", ["FCALL", "fails", 1, "none"])
    assert answer.status == 400
    assert answer.json["error"] == "ERR user_function:10: no script: fails, on @user_function:10."
    assert redis("EXISTS", "none") == 0
    assert loaded.post("/", ["FCALL", "nope", 0]).json == {"error": "ERR Function not found"}
    listed = loaded.post("/", ["FUNCTION", "LIST"]).json["result"]
    assert len(listed) == 1 and "web" in str(listed)


def test_pipelines_and_transactions(loaded, redis):
    more = "#!lua name=more\nredis.register_function('one', function() return 1 end)"
    commands = [["FUNCTION", "LOAD", more], ["FCALL", "one", 0], ["FCALL", "get_set", 1, "k", "v"], ["FCALL", "peek", 1, "k"]]
    for path in ("/pipeline", "/multi-exec"):
        redis("DEL", "k")
        answer = loaded.post(path, commands)
        assert answer.json == [{"result": "more"}, {"result": 1}, {"result": None}, {"result": "v"}]
        assert loaded.post("/", ["FUNCTION", "DELETE", "more"]).json == {"result": "OK"}


def test_dumps_in_base64(loaded, redis):
    dumped = redis("FUNCTION", "DUMP")
    answer = loaded.post("/", ["FUNCTION", "DUMP"], headers={"Upstash-Encoding": "base64"})
    assert answer.json == {"result": b64(dumped)}
