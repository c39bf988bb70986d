"""What the database does not take: told when it cannot be helped, tried again when others were only in the way."""

NO_SPACE = {"postgres": "53100", "mariadb": 1021}
DEADLOCK = {"postgres": "40P01", "mariadb": 1213}


def plant(data, code, times, table="larder_key"):
    """The next writes to a table fail with a code of the database's, so many of them."""
    if data.kind == "postgres":
        data.query(
            f"""CREATE SEQUENCE planted;
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF nextval('planted') <= {times} THEN RAISE 'planted' USING ERRCODE = '{code}'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION fail();"""
        )
    else:
        body = (
            f"IF NEXT VALUE FOR planted <= {times} THEN"
            f" SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'planted', MYSQL_ERRNO = {code}; END IF"
        )
        data.query("CREATE SEQUENCE planted")
        for event in ("INSERT", "UPDATE"):
            trigger = f"CREATE TRIGGER fail_{event} BEFORE {event} ON {table} FOR EACH ROW {body}"
            data.query(f"DELIMITER //\n{trigger}//\n")


def test_a_commit_that_fails_is_told(server, data):
    """Whatever a reply says of is there: one that relied on the commit becomes the error."""
    with server.connect() as c:
        c("SET", "k", "old")
        plant(data, NO_SPACE[data.kind], 1)
        replies = c.pipeline([("PING",), ("SET", "k", "new"), ("GET", "k"), ("RPUSH", "l", "a"), ("ECHO", "e")])
        assert [r.is_error for r in replies] == [False, True, True, True, False]
        assert replies[1].value.startswith(b"MISCONF ")
        assert c("GET", "k") == b"old" and c("EXISTS", "l") == 0
        assert c("SET", "k", "new") == b"OK" and c("GET", "k") == b"new"
