"""larder sql, larder load and larder dump, on a running server."""

import json
import os
import pty
import select
import signal
import subprocess

import pytest

from harness import servers, wait

TABLE = "id INTEGER PRIMARY KEY, name TEXT, size REAL, raw BLOB, yes BOOLEAN, at TIMESTAMP, doc JSON"


@pytest.fixture
def cli(larder):
    def run(*words, **more):
        done = subprocess.run(
            [larder.binary, *words, "--port", str(larder.port)], capture_output=True, timeout=60, **{"env": servers.clean_environment(), **more}
        )
        done.stdout, done.stderr = done.stdout.decode("utf-8", "replace"), done.stderr.decode()
        return done

    return run


def says(done, code=0):
    assert done.returncode == code, done
    return done.stdout


def complains(done, code=1):
    assert done.returncode == code, done
    return done.stderr


# --- load and dump


@pytest.fixture
def table(client):
    client("TABLE.CREATE", "t", TABLE)
    return client


def rows(client):
    return client("ROW.QUERY", "t", "LIMIT", "1000")[0]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_what_is_dumped_can_be_loaded(table, cli, tmp_path, kind):
    values = [
        (1, 'a "b", c', "1.5", b"\0\xff\n", "true", "1700000000000", '{"a": [1, "x"]}'),
        (2, "", "-0.25", b"", "false", "0", "null"),
        (3, "line\nline\r\n end ", "1e300", b"plain", "1", "2026-11-16T10:00:00Z", '"text"'),
        (-9223372036854775808, "Åse ☃", "5", b",", "0", "-1", "[]"),
    ]
    for row in values:
        words = [w for name, value in zip(("id", "name", "size", "raw", "yes", "at", "doc"), row) for w in (name, value)]
        table("ROW.PUT", "t", "FIELDS", "7", *words)
    table("ROW.PUT", "t", "FIELDS", "1", "id", "9")
    before = rows(table)
    path = tmp_path / f"rows.{kind}"
    assert "5 rows dumped" in complains(cli("dump", "t", "--output", str(path)), 0)
    table("TABLE.DROP", "t")
    table("TABLE.CREATE", "t", TABLE)
    done = cli("load", "t", str(path))
    assert "5 rows loaded" in complains(done, 0)
    assert rows(table) == before
    assert says(cli("dump", "t", "--quiet", "--format", kind)) == path.read_bytes().decode("utf-8", "replace")


def test_many_rows_from_a_pipe(table, cli):
    """More than what is on its way at a time, and more than a page of a dump."""
    text = "name,id\r\n" + "".join(f"n{i},{i}\r\n" for i in range(5000))
    done = cli("load", "t", "-", "--format", "csv", input=text.encode())
    assert "5000 rows loaded" in complains(done, 0)
    assert table("ROW.QUERY", "t", "COUNT") == [5000, None, 5000]
    dumped = says(cli("dump", "t", "--quiet")).splitlines()
    assert [line.split(",")[:2] for line in dumped[1:]] == [[str(i), f"n{i}"] for i in range(5000)]


def test_rows_that_are_refused(table, cli, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('id,name\n1,a\nx,b\n3,"c\n')
    err = complains(cli("load", "t", str(path)))
    assert f"{path}:4: a quote is not closed" in err
    assert f"{path}:3: BADTYPE" in err
    path.write_text("id,name\n1,a\nx,b\n3\n4,d,e\n5,f\n")
    err = complains(cli("load", "t", str(path), "--skip-errors"))
    assert "2 rows loaded" in err and "3 rows were refused" in err
    assert [row[b"id"] for row in map(dict_of, rows(table))] == [1, 5]
    path.write_text("id,nothing\n7,a\n")
    assert 'the table has no column "nothing"' in complains(cli("load", "t", str(path)))
    path.write_text("")
    assert f"{path}: it has no first line" in complains(cli("load", "t", str(path)))
    lines = tmp_path / "rows.jsonl"
    lines.write_text('{"id": 8}\n\n{"id": 9\n[1]\n{"id": 10, "raw": "###"}\n{"id": 11, "what": 1}\n')
    err = complains(cli("load", "t", str(lines), "--skip-errors"))
    assert "1 row loaded" in err and "4 rows were refused" in err
    assert ":3: " in err and ":4: it is no object" in err and ":5: a BLOB is not base64" in err and ":6: it has a member" in err


def dict_of(row):
    return dict(zip(row[::2], row[1::2])) if isinstance(row, list) else row


def test_rows_that_are_there(table, cli, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,name\n1,old\n")
    complains(cli("load", "t", str(path)), 0)
    path.write_text("id,name\n1,new\n2,two\n")
    assert "1 rows were there already" in complains(cli("load", "t", str(path), "--if-new"), 0)
    assert table("ROW.GET", "t", "1", "FIELDS", "1", "name") == [b"name", b"old"]
    complains(cli("load", "t", str(path), "--quiet"), 0)
    assert table("ROW.GET", "t", "1", "FIELDS", "1", "name") == [b"name", b"new"]


def test_wrong_words(larder, cli, tmp_path):
    assert "there is no such option" in complains(cli("load", "--what"), 2)
    assert "takes a table and a file" in complains(cli("load", "t"), 2)
    assert "ends with .csv or .jsonl" in complains(cli("load", "t", "rows.txt"), 2)
    assert "csv or jsonl" in complains(cli("dump", "t", "--format", "xml"), 2)
    assert "--mode: one of" in complains(cli("sql", "--mode", "xml", "SELECT 1"), 2)
    assert "No such file" in complains(cli("load", "t", str(tmp_path / "none.csv")))
    assert "NOTABLE" in complains(cli("dump", "none"))
    for command in ("sql", "load", "dump"):
        assert says(subprocess.run([larder.binary, command, "--help"], capture_output=True, text=True)).startswith(f"Usage: larder {command} ")


def test_a_server_that_is_not_there(larder, cli):
    larder.stop()
    assert "Connection refused" in complains(cli("sql", "SELECT 1"))


def test_passwords_databases_and_sockets(fleet, tmp_path):
    server = fleet.larder("--requirepass", "secret", "--unixsocket", str(tmp_path / "s"))

    def sql(*words, password=None):
        env = servers.clean_environment() | ({"REDISCLI_AUTH": password} if password else {})
        return subprocess.run([server.binary, "sql", *words], capture_output=True, text=True, env=env, timeout=60)

    text = "SELECT count(*) FROM t"
    port = ("--port", str(server.port), text)
    assert "NOAUTH" in complains(sql(*port))
    assert "WRONGPASS" in complains(sql(*port, password="wrong"))
    with server.connect() as c:
        c("AUTH", "secret")
        c("SELECT", "3")
        c("TABLE.CREATE", "t", "id TEXT PRIMARY KEY")
    csv = ("--mode", "csv", "--no-header")
    assert "no such table" in complains(sql(*port, *csv, password="secret"))
    assert says(sql("--socket", str(tmp_path / "s"), "--db", "3", text, *csv, "--password", "secret")) == "0\n"


# --- sql


def test_modes(client, cli):
    client("HSET", "h", "f", 'a "b"', "g", "1\n2")
    text = "SELECT field, value, 1.5 AS real, NULL AS nil FROM larder_hashes ORDER BY field"
    assert says(cli("sql", text)) == (
        ' field | value | real | nil\n-------+-------+------+-----\n f     | a "b" |  1.5 |\n g     | 1\\n2  |  1.5 |\n(2 rows)\n'
    )
    assert says(cli("sql", text, "--mode", "csv")) == 'field,value,real,nil\r\nf,"a ""b""",1.5,\r\ng,"1\n2",1.5,\r\n'
    assert [*map(tuple, (r.items() for r in json.loads(says(cli("sql", text, "--mode", "json")))))][0] == (
        ("field", "f"), ("value", 'a "b"'), ("real", 1.5), ("nil", None)
    )  # fmt: skip
    assert says(cli("sql", text, "--mode", "list", "--no-header")) == 'f|a "b"|1.5|\ng|1\\n2|1.5|\n'
    assert says(cli("sql", text + " LIMIT 1", "--mode", "line")) == 'field = f\nvalue = a "b"\nreal = 1.5\nnil = \n\n'
    assert says(cli("sql", "SELECT ? AS a, ? AS b", "x", "7", "--mode", "json")) == '[{"a":"x","b":"7"}]\n'
    assert "no such table" in complains(cli("sql", "SELECT * FROM none"))


def test_statements_from_a_file_and_a_pipe(client, cli, tmp_path):
    client("TABLE.CREATE", "t", "id INTEGER PRIMARY KEY, name TEXT")
    path = tmp_path / "in.sql"
    path.write_text("INSERT INTO t VALUES (1,\n 'a;b');\n\nINSERT INTO t VALUES (2, 'c'); -- said\n.mode list\nSELECT * FROM t;")
    assert says(cli("sql", "--file", str(path))) == "1 row changed\n1 row changed\nid|name\n1|a;b\n2|c\n"
    done = cli("sql", input=b".mode csv\n.header off\nSELECT absent;\nSELECT 5;\n.what\n.tables\n")
    assert done.returncode == 1 and done.stdout == "5\r\nt\r\n" and "no such column" in done.stderr and ".what" in done.stderr
    assert "name TEXT" in says(cli("sql", input=b".schema t\n"))


class Terminal:
    """The shell on a terminal of its own."""

    def __init__(self, argv, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, env)
        self.text = ""

    def until(self, text):
        while text not in self.text:
            ready, _, _ = select.select([self.fd], [], [], 30)
            assert ready, f"{text!r} did not come: {self.text!r}"
            self.text += os.read(self.fd, 65536).decode("utf-8", "replace")
        before, _, self.text = self.text.partition(text)
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def ended(self):
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def test_a_terminal(larder, tmp_path):
    argv = [str(larder.binary), "sql", "--port", str(larder.port)]
    env = servers.clean_environment() | {"HOME": str(tmp_path), "TERM": "dumb"}
    t = Terminal(argv, env)
    t.until("larder> ")
    t.type("SELECT 40\n")
    t.until("...> ")
    t.type("+ 2 AS answer;\n")
    t.until("(1 row)")
    t.until("larder> ")
    t.type("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n;\n")
    wait.until(lambda: running_queries(larder) == 1, "the query runs on a thread")
    os.kill(t.pid, signal.SIGINT)
    t.until("UNBLOCKED")
    t.until("larder> ")
    t.type(".quit\n")
    assert t.ended() == 0
    history = (tmp_path / ".larder_history").read_text()
    assert "answer" in history and "RECURSIVE" in history


def running_queries(server):
    with server.connect() as c:
        info = c("INFO", "everything").decode()
    return next((int(line.split(":")[1]) for line in info.splitlines() if line.startswith("sql_queries_running")), -1)
