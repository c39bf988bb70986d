"""Items of large collections whose numbers have holes: on database servers, which others write to as well or one server
has for itself."""

from harness import servers, wait

ALL = 5600
STAYS = 5  # one of so many, which is still more than memory keeps whole
EAGER = ["--sweep-interval", "10ms", "--sweep-pause", "1ms"]


def fill(connection):
    """A set of which most goes again; what stays of it."""
    names = [b"m%d" % i for i in range(ALL)]
    stays = names[::STAYS]
    gone = sorted(set(names) - set(stays))
    for command, some in (("SADD", names), ("SREM", gone)):
        for i in range(0, len(some), 500):
            connection(command, "k", *some[i : i + 500])
    return set(stays)


def scan(connection):
    found, cursor = set(), b"0"
    while True:
        cursor, page = connection("SSCAN", "k", cursor, "COUNT", 200)
        found.update(page)
        if cursor == b"0":
            return found


def has_few_holes(data):
    return data.query("SELECT count(*) FROM larder_key WHERE numbers > 2 * size") == [["0"]]


def test_numbers_fall_while_another_server_reads(fleet, data):
    a, b = (fleet.larder("--workers", "1", *EAGER, data=data) for _ in range(2))
    with a.connect() as writer, b.connect() as reader:
        stays = fill(writer)

        def read_and_judge():
            assert scan(reader) == stays
            drawn = reader("SRANDMEMBER", "k", 20)
            assert len(set(drawn)) == 20 and stays.issuperset(drawn) and writer("SRANDMEMBER", "k") in stays
            return has_few_holes(data)

        wait.until(read_and_judge, "numbers are fewer")
        assert scan(reader) == stays
    a.stop()
    b.stop()
    assert servers.run(["check", "--store", data.url]).returncode == 0


def test_numbers_fall_behind_a_journal(fleet, alone):
    server = fleet.larder(*EAGER, data=alone)
    with server.connect() as c:
        stays = fill(c)
        wait.until(lambda: c("SRANDMEMBER", "k") in stays and b"renumbered_items:0\r" not in c("INFO", "larder"), "items move")
        assert scan(c) == stays
        drawn = c("SPOP", "k", 50)
        assert len(set(drawn)) == 50 and stays.issuperset(drawn) and scan(c) == stays - set(drawn)
        wait.until(lambda: c("SAVE") and has_few_holes(alone), "numbers are fewer")
    server.stop()
    assert servers.run(["check", "--store", alone.url]).returncode == 0
