"""ROW.QUERY: the seed's three access patterns, bounds, filters, pages by tokens, COUNT, EXPLAIN, and what is
refused."""

import pytest

from harness.resp import ServerError

START = 4_100_000_000_000


@pytest.fixture
def client(subjects):
    with subjects("--sweep", "no", "--databases", "16").connect() as connection:
        connection("FLUSHALL")
        connection("HELLO", 3)
        yield connection
        connection("DEBUG", "CLOCK", "REAL")


def create(client, name, text):
    assert client("TABLE.CREATE", name, text) == b"OK"


def put(client, table, **columns):
    given = [(n, v) for n, v in columns.items() if v is not None]
    words = [word for pair in given for word in pair]
    assert client("ROW.PUT", table, "FIELDS", len(given), *words) in (0, 1)


@pytest.fixture
def people(client):
    create(
        client,
        "people",
        "first TEXT, last TEXT, address TEXT, ssn INTEGER, PRIMARY KEY (first, last), INDEX by_ssn (ssn, last)",
    )
    put(client, "people", first="Mary", last="Jane", address="Heaven", ssn=9088)
    put(client, "people", first="John", last="Doe", address="Hell", ssn=9678)
    put(client, "people", first="Mary", last="Ann", address="Heaven", ssn=10)
    put(client, "people", first="Zoe", last="Adams", address=None, ssn=None)
    return client


def names(reply):
    return [(row[b"first"] + b" " + row[b"last"]).decode() for row in reply[0]]


def refused(client, code, *words, table="people"):
    with pytest.raises(ServerError) as error:
        client("ROW.QUERY", table, *words)
    assert str(error.value).startswith(code + " ")


def query(client, *words):
    return client("ROW.QUERY", "people", *words)


def test_the_three_patterns(people):
    assert people("ROW.GET", "people", "Mary", "Jane")[b"ssn"] == 9088
    rows, token, scanned = query(people)
    assert [row[b"last"] for row in rows] == [b"Doe", b"Ann", b"Jane", b"Adams"]
    assert token is None and scanned == 4
    assert rows[3] == {b"first": b"Zoe", b"last": b"Adams", b"address": None, b"ssn": None}
    rows, token, scanned = query(people, "INDEX", "by_ssn", "EQ", 1, 9088)
    assert rows == [{b"first": b"Mary", b"last": b"Jane", b"address": b"Heaven", b"ssn": 9088}]
    assert token is None and scanned == 1


def test_order_is_that_of_values(people):
    assert names(query(people, "INDEX", "by_ssn")) == ["Zoe Adams", "Mary Ann", "Mary Jane", "John Doe"]
    assert names(query(people, "INDEX", "by_ssn", "REV")) == ["John Doe", "Mary Jane", "Mary Ann", "Zoe Adams"]
    assert names(query(people, "EQ", 1, "Mary")) == ["Mary Ann", "Mary Jane"]
    assert names(query(people, "EQ", 2, "Mary", "Jane")) == ["Mary Jane"]
    assert names(query(people, "EQ", 2, "Mary", "Nobody")) == []


def test_bounds(people):
    def by_ssn(*words):
        return names(query(people, "INDEX", "by_ssn", *words))

    assert by_ssn("FROM", "[10") == ["Mary Ann", "Mary Jane", "John Doe"]
    assert by_ssn("FROM", "(10") == ["Mary Jane", "John Doe"]
    assert by_ssn("TO", "]9088") == ["Mary Ann", "Mary Jane"]  # NULL is within no bound
    assert by_ssn("TO", ")9088") == ["Mary Ann"]
    assert by_ssn("TO", "(9088") == ["Mary Ann"]
    assert by_ssn("FROM", "[11", "TO", "]9087") == []
    assert by_ssn("FROM", "[9678", "TO", "]10") == []
    assert by_ssn("EQ", 1, 9088, "FROM", "[J") == ["Mary Jane"]
    assert by_ssn("EQ", 1, 9088, "FROM", "(Jane") == []
    assert names(query(people, "PREFIX", "Ma")) == ["Mary Ann", "Mary Jane"]
    assert names(query(people, "EQ", 1, "Mary", "PREFIX", "J")) == ["Mary Jane"]
    assert names(query(people, "PREFIX", "")) == ["John Doe", "Mary Ann", "Mary Jane", "Zoe Adams"]


def test_bounds_of_descending_columns_are_of_values(client):
    create(client, "scores", "player TEXT PRIMARY KEY, score REAL, INDEX best (score DESC)")
    for player, score in (("a", 1.5), ("b", -2), ("c", 10), ("d", 9)):
        put(client, "scores", player=player, score=score)

    def best(*words):
        reply = client("ROW.QUERY", "scores", "INDEX", "best", *words)
        return [row[b"player"] for row in reply[0]]

    assert best() == [b"c", b"d", b"a", b"b"]
    assert best("REV") == [b"b", b"a", b"d", b"c"]
    assert best("FROM", "[1.5", "TO", ")10") == [b"d", b"a"]
    assert best("FROM", "(1.5", "REV") == [b"d", b"c"]


def test_filters(people):
    def kept(*words):
        return names(query(people, "FILTER", *words))

    assert kept("address", "=", "Heaven") == ["Mary Ann", "Mary Jane"]
    assert kept("address", "!=", "Heaven") == ["John Doe"]  # NULL is neither
    assert kept("ssn", "<", 9088) == ["Mary Ann"]
    assert kept("ssn", "le", 9088) == ["Mary Ann", "Mary Jane"]
    assert kept("ssn", "gt", 10) == ["John Doe", "Mary Jane"]
    assert kept("ssn", ">=", 9088, "FILTER", "address", "eq", "Hell") == ["John Doe"]
    assert kept("address", "LIKE", "he%") == ["John Doe", "Mary Ann", "Mary Jane"]
    assert kept("last", "like", "_a%") == ["Mary Jane"]
    assert kept("ssn", "ISNULL") == ["Zoe Adams"]
    assert kept("ssn", "NOTNULL", "FILTER", "last", "IN", 2, "Doe", "Adams") == ["John Doe"]
    assert kept("ssn", "IN", 3, 10, 11, 9678) == ["John Doe", "Mary Ann"]


def test_fields(people):
    assert query(people, "EQ", 1, "John", "FIELDS", 2, "ssn", "FIRST")[0] == [{b"ssn": 9678, b"first": b"John"}]
    assert query(people, "INDEX", "by_ssn", "EQ", 1, 10, "FIELDS", 1, "last")[0] == [{b"last": b"Ann"}]


def test_pages_have_an_exact_end(people):
    rows, token, scanned = query(people, "LIMIT", 2)
    assert len(rows) == 2 and token and scanned == 2
    more, end, scanned = query(people, "LIMIT", 2, "AFTER", token)
    assert [row[b"last"] for row in rows + more] == [b"Doe", b"Ann", b"Jane", b"Adams"] and end is None
    assert query(people, "LIMIT", 4)[1] is None
    # With filters, too: a token means that a row follows, unless SCAN has ended the page.
    rows, token, _ = query(people, "LIMIT", 2, "FILTER", "address", "=", "Heaven")
    assert len(rows) == 2 and token is None
    rows, token, scanned = query(people, "SCAN", 1, "FILTER", "address", "=", "Heaven")
    assert rows == [] and token and scanned == 1
    rows, token, scanned = query(people, "SCAN", 2, "FILTER", "address", "=", "Heaven", "AFTER", token)
    assert len(rows) == 2 and token and scanned == 2
    assert query(people, "SCAN", 2, "FILTER", "address", "=", "Heaven", "AFTER", token) == [[], None, 1]


def test_tokens_belong_to_a_query(people):
    token = query(people, "LIMIT", 1)[1]
    assert query(people, "LIMIT", 3, "FIELDS", 1, "last", "AFTER", token)[1] is None  # how much is no part of it
    refused(people, "BADTOKEN", "REV", "AFTER", token)
    refused(people, "BADTOKEN", "INDEX", "by_ssn", "AFTER", token)
    refused(people, "BADTOKEN", "FILTER", "ssn", ">", 1, "AFTER", token)
    for bad in ("", "x", "AQ", token[:-1], token + b"A", b"\xff\xff", "A" * 5000):
        refused(people, "BADTOKEN", "AFTER", bad)
    create(people, "other", "first TEXT, last TEXT, PRIMARY KEY (first, last)")
    refused(people, "BADTOKEN", "AFTER", token, table="other")
    people("RENAME", "people", "folk")
    assert people("ROW.QUERY", "folk", "AFTER", token)[1] is None


def test_tokens_survive_a_restart(fleet):
    server = fleet.larder()
    with server.connect() as client:
        create(client, "t", "id INTEGER PRIMARY KEY, x INTEGER, INDEX by_x (x DESC)")
        for i in range(10):
            put(client, "t", id=i, x=i % 3)
        words = ["ROW.QUERY", "t", "INDEX", "by_x", "LIMIT", 4, "FIELDS", 1, "id"]
        first, token, _ = client(*words)
    server.stop()
    server.start()
    with server.connect() as client:
        second, token, _ = client(*words, "AFTER", token)
        third, end, _ = client(*words, "AFTER", token)
    ids = [int(row[1]) for row in first + second + third]
    assert ids == [2, 5, 8, 1, 4, 7, 0, 3, 6, 9] and end is None


def test_a_row_that_stays_is_seen_once(client):
    create(client, "t", "id INTEGER PRIMARY KEY, x INTEGER, INDEX by_x (x)")
    for i in range(60):
        put(client, "t", id=i, x=i % 7)
    seen, token = [], None
    moved = set()
    for page in range(1000):
        words = ["AFTER", token] if token else []
        rows, token, _ = client("ROW.QUERY", "t", "INDEX", "by_x", "LIMIT", 5, *words)
        seen += [row[b"id"] for row in rows if row[b"id"] < 100]
        if token is None:
            break
        gone, late = page * 3 % 60, (page * 11 + 1) % 60
        moved |= {gone, late}
        client("ROW.DEL", "t", gone)
        put(client, "t", id=late, x=page % 7)
        put(client, "t", id=1000 + page, x=page % 7)
    stay = set(range(60)) - moved
    assert stay and all(seen.count(i) == 1 for i in stay)


def test_count_and_explain(people):
    assert query(people, "COUNT") == [4, None, 4]
    assert query(people, "INDEX", "by_ssn", "FROM", "[0", "COUNT", "LIMIT", 1) == [3, None, 3]
    assert query(people, "FILTER", "address", "=", "Heaven", "COUNT")[0] == 2
    count, token, scanned = query(people, "COUNT", "SCAN", 3)
    assert (count, scanned) == (3, 3)
    assert query(people, "COUNT", "SCAN", 3, "AFTER", token) == [1, None, 1]
    assert query(people, "EXPLAIN") == b"people: primary key"
    words = ["INDEX", "by_ssn", "EQ", 1, 9088, "FROM", "(J", "FILTER", "address", "=", "x", "REV", "EXPLAIN"]
    assert query(people, *words) == b"people: by_ssn (ssn = 9088 AND last > 'J'), filter address = 'x', reverse"


def test_expired_rows_are_left_out(people):
    people("DEBUG", "CLOCK", START)
    people("ROW.EXPIRE", "people", 10, "Mary", "Jane")
    assert query(people, "COUNT")[0] == 4
    people("DEBUG", "CLOCK", START + 10000)
    assert query(people, "COUNT")[0] == query(people, "INDEX", "by_ssn", "COUNT")[0] == 3
    assert names(query(people, "EQ", 2, "Mary", "Jane")) == []
    assert names(query(people, "INDEX", "by_ssn", "EQ", 1, 9088)) == []
    rows, token, _ = query(people, "INDEX", "by_ssn", "LIMIT", 2, "FIELDS", 1, "ssn")
    assert rows == [{b"ssn": None}, {b"ssn": 10}] and token
    assert query(people, "INDEX", "by_ssn", "LIMIT", 2, "FIELDS", 1, "ssn", "AFTER", token)[:2] == [[{b"ssn": 9678}], None]


def test_a_transaction_sees_its_own_rows(people):
    people("MULTI")
    people("ROW.PUT", "people", "FIELDS", 3, "first", "Al", "last", "Al", "ssn", 1)
    people("ROW.DEL", "people", "John", "Doe")
    people("ROW.QUERY", "people", "INDEX", "by_ssn", "FROM", "[0")
    assert names(people("EXEC")[2]) == ["Al Al", "Mary Ann", "Mary Jane"]


@pytest.mark.parametrize(
    "words, code",
    [
        (["INDEX", "none"], "NOINDEX"),
        (["EQ", 3, "a", "b", "c"], "SYNTAX"),
        (["EQ", 0], "SYNTAX"),
        (["EQ", 5, "a"], "SYNTAX"),
        (["EQ", 2, "a", "b", "FROM", "[c"], "SYNTAX"),
        (["INDEX", "by_ssn", "EQ", 1, "x"], "BADTYPE"),
        (["INDEX", "by_ssn", "FROM", "[x"], "BADTYPE"),
        (["INDEX", "by_ssn", "FROM", "10"], "SYNTAX"),
        (["INDEX", "by_ssn", "FROM", ""], "SYNTAX"),
        (["INDEX", "by_ssn", "PREFIX", "1"], "BADTYPE"),
        (["FILTER", "nothing", "=", 1], "NOCOLUMN"),
        (["FILTER", "ssn", "=", "x"], "BADTYPE"),
        (["FILTER", "ssn", "LIKE", "1%"], "BADTYPE"),
        (["FILTER", "ssn", "~", 1], "SYNTAX"),
        (["FILTER", "ssn", "IN", 2, 1], "SYNTAX"),
        (["FILTER", "ssn", "="], "SYNTAX"),
        (["FILTER", "ssn"], "SYNTAX"),
        (["FIELDS", 1, "nothing"], "NOCOLUMN"),
        (["FIELDS", 2, "ssn"], "SYNTAX"),
        (["LIMIT", 0], "SYNTAX"),
        (["LIMIT", "x"], "SYNTAX"),
        (["LIMIT"], "SYNTAX"),
        (["SCAN", -1], "SYNTAX"),
        (["SORT"], "SYNTAX"),
    ],
)
def test_what_is_refused(people, words, code):
    refused(people, code, *words)


def test_what_is_no_table(client):
    refused(client, "NOTABLE", table="nothing")
    client("SET", "k", "v")
    refused(client, "WRONGTYPE", table="k")
