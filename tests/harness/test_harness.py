"""The harness itself: it finds no difference where there is none, and every difference that is planted."""

import io
import pathlib

import pytest

from harness import compare, resp, transcript

TRANSCRIPTS = sorted((pathlib.Path(__file__).parents[1] / "compat" / "transcripts").glob("*.txt"))


@pytest.fixture(scope="module")
def oracle(shared_fleet):
    """A redis-server that no other test has changed."""
    return shared_fleet.redis()


@pytest.fixture(scope="module")
def twin(shared_fleet):
    """A second one, to be compared with the first."""
    return shared_fleet.redis()


@pytest.fixture(scope="module")
def impostor(shared_fleet):
    """A redis-server that differs: PERSIST does what TOUCH does, STRLEN is unknown, there are 9 databases."""
    return shared_fleet.redis(
        "--rename-command", "PERSIST", "", "--rename-command", "TOUCH", "PERSIST",
        "--rename-command", "STRLEN", "", "--databases", "9",
    )  # fmt: skip


def decode(data):
    stream = io.BytesIO(data)
    return resp.Decoder(lambda: stream.read(3)).read()


@pytest.mark.parametrize(
    "raw, plain",
    [
        (b"+OK\r\n", b"OK"),
        (b":-12\r\n", -12),
        (b"$-1\r\n", None),
        (b"_\r\n", None),
        (b"*-1\r\n", None),
        (b"$0\r\n\r\n", b""),
        (b"$4\r\na\r\nb\r\n", b"a\r\nb"),
        (b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", [1, [b"x"]]),
        (b"%1\r\n+a\r\n:1\r\n", {b"a": 1}),
        (b"~2\r\n:1\r\n:2\r\n", [1, 2]),
        (b",1.5\r\n", 1.5),
        (b"#t\r\n", True),
        (b"=7\r\ntxt:abc\r\n", b"abc"),
        (b"-ERR no\r\n", resp.ServerError(b"ERR no")),
    ],
)
def test_decoder_keeps_the_bytes(raw, plain):
    reply = decode(raw + b"+next\r\n")
    assert reply.raw == raw
    assert reply.plain() == plain


@pytest.mark.parametrize("raw", [b"?\r\n", b"$x\r\n", b"$1\r\nabc\r\n", b"\r\n"])
def test_decoder_refuses(raw):
    with pytest.raises(resp.ProtocolError):
        decode(raw)


@pytest.mark.parametrize("raw", [b"", b"$5\r\nab", b"*2\r\n:1\r\n", b"+OK"])
def test_decoder_sees_the_end(raw):
    with pytest.raises(resp.Closed):
        decode(raw)


@pytest.mark.parametrize(
    "line, args",
    [
        (b"SET a b", [b"SET", b"a", b"b"]),
        (b'  SET  "a b"\t"" ', [b"SET", b"a b", b""]),
        (rb'ECHO "\x00\xfF\n\r\t\\\"\q"', [b"ECHO", b"\x00\xff\n\r\t\\\"q"]),
        (rb"ECHO 'a\n\'b'", [b"ECHO", rb"a\n'b"]),
        (b'ECHO a"b c"', [b"ECHO", b"ab c"]),
        (rb'ECHO "\xg1"', [b"ECHO", b"xg1"]),
    ],
)
def test_quoting(line, args):
    assert transcript.split(line) == args


@pytest.mark.parametrize(
    "text",
    [b'GET "a', b"GET 'a", b'GET "a"b', b"@nonsense\nGET a", b"@shape", b"@shape\n@ignore\nGET a", b"@config port"],
)
def test_bad_transcripts_are_refused(text):
    with pytest.raises(transcript.ParseError):
        transcript.parse(text)


def run_text(tmp_path, text, oracle, other, version=2):
    path = tmp_path / "made.txt"
    path.write_bytes(text)
    transcript.run(path, oracle, other, version)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=[path.stem for path in TRANSCRIPTS])
def test_no_difference_between_redis_and_redis(path, version, oracle, twin):
    transcript.run(path, oracle, twin, version)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    "text, complaint",
    [
        (b"# one\nSET a 1\n\nSTRLEN a", "made.txt:4: STRLEN a"),
        (b"SET a 1 EX 1000\nPERSIST a", "at the end, db 0 key a:"),
        (b"SET a 1\nPERSIST a", "made.txt:2: PERSIST a\n  redis: :0\\r\\n\n  redis: :1\\r\\n"),
        (b"@config maxclients 200\nCONFIG GET databases", "made.txt:2"),
        (b"@ignore\nSTRLEN a\n@shape\nSELECT 9", "made.txt:4"),
        (b'@raw "STRLEN a\\r\\nPING\\r\\n"', "made.txt:1"),
        (b'SELECT 3\n@raw "*2\\r\\n$6\\r\\nSELECT\\r\\n$1\\r\\n9\\r\\n"', "made.txt:2"),
    ],
)
def test_planted_differences_are_found(tmp_path, text, complaint, version, oracle, impostor):
    with pytest.raises(transcript.Difference) as caught:
        run_text(tmp_path, text, oracle, impostor, version)
    assert complaint in str(caught.value)
    assert "\n1 differences" not in str(caught.value)


def test_order_matters_only_when_it_should(tmp_path, oracle, twin):
    run_text(tmp_path, b"MSET a 1 b 2 c 3 d 4\n@unordered\nKEYS *\n@shape\nRANDOMKEY", oracle, twin)
    one, other = decode(b"*2\r\n:1\r\n:2\r\n"), decode(b"*2\r\n:2\r\n:1\r\n")
    assert compare.unordered(one, other) and not compare.exact(one, other)
    assert not compare.unordered(one, decode(b"*2\r\n:1\r\n:1\r\n"))
    assert compare.unordered(decode(b"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n"), decode(b"%2\r\n+b\r\n:2\r\n+a\r\n:1\r\n"))
    assert not compare.unordered(decode(b"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n"), decode(b"%2\r\n+a\r\n:2\r\n+b\r\n:1\r\n"))
    assert compare.shape(one, other) and not compare.shape(one, decode(b"*1\r\n:1\r\n"))


def test_configuration_is_put_back(tmp_path, oracle, twin):
    with oracle.connect() as c:
        before = c("CONFIG", "GET", "maxclients")
        run_text(tmp_path, b"@config maxclients 123\n@config maxclients 124\nCONFIG GET maxclients", oracle, twin)
        assert c("CONFIG", "GET", "maxclients") == before


def test_a_closed_connection_is_seen_and_opened_again(tmp_path, oracle, twin):
    run_text(tmp_path, b'@raw "*x\\r\\n"\nPING\nQUIT\nPING\nPING\n@reconnect\nPING', oracle, twin)


def test_contents_cover_every_type(oracle, twin):
    for server in (oracle, twin):
        with server.connect() as c:
            c("FLUSHALL")
            c("RPUSH", "list", "a", "b")
            c("SADD", "set", "a", "b", "c")
            c("HSET", "hash", "f", "1", "g", "2")
            c("ZADD", "zset", "1", "a", "2", "b")
            c("SELECT", 5)
            c("SET", "string", "v", "PXAT", 4000000000000)
    assert compare.different_contents(compare.contents(oracle), compare.contents(twin)) == []
    assert compare.contents(oracle)[5, b"string"] == (b"string", b"$1\r\nv\r\n", 4000000000000)
    with twin.connect() as c:
        c("SREM", "set", "b")
        c("HSET", "hash", "f", "2", "g", "1")
        c("LSET", "list", 0, "z")
    lines = "\n".join(compare.different_contents(compare.contents(oracle), compare.contents(twin)))
    assert all(f"key {name}:" in lines for name in ("set", "hash", "list"))
    assert "zset" not in lines
