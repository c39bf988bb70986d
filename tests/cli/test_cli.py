"""The program as a person meets it: subcommands, options, exit codes, signals, logs."""

import os
import re
import signal
import socket

import pytest

from harness import servers, wait


def run(*args, **more):
    return servers.run(list(args), **more)


def refused(*args, code=2, **more):
    """What larder says on its way out."""
    done = run(*args, **more)
    assert (done.returncode, done.stdout) == (code, ""), done
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("larder: ")
    return done.stderr.removeprefix("larder: ").rstrip("\n")


# --- words


def test_help_and_version():
    assert re.fullmatch(r"larder \d+\.\d+\.\d+\n", run("--version").stdout)
    done = run("--help")
    assert done.returncode == 0 and not done.stderr
    for option in ("--port", "--bind", "--http-port", "--store", "--durability", "--cache-memory", "--workers", "--config"):
        assert f"  {option} " in done.stdout
    assert run("serve", "-h").stdout == done.stdout


def test_the_config_file_in_the_repository_is_current():
    done = run("config")
    assert done.returncode == 0
    assert (servers.ROOT / "larder.conf").read_text() == done.stdout, "write it anew: make docs"


def test_the_man_page_knows_the_subcommands_and_exit_codes():
    page = (servers.ROOT / "docs" / "larder.1").read_text()
    for name in ("serve", "check", "config", "commands"):
        assert f".It Cm {name}\n" in page
    for code in range(4):
        assert f".It {code}\n" in page


# --- the database as an argument


def test_check_and_migrate_take_a_database(tmp_path):
    assert run("migrate", "a.db", cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.db").exists()
    done = run("check", "a.db", cwd=tmp_path)
    assert done.returncode == 0 and "key rows ... ok" in done.stdout
    assert run("check", "sqlite:a.db", cwd=tmp_path).stdout.startswith("schema version")
    assert run("check", "a.db", "--cache-memory", "1mb", cwd=tmp_path).returncode == 0
    assert run("check", "--salvage", "a.db", cwd=tmp_path).returncode == 0
    absent = run("check", "absent.db", cwd=tmp_path)
    assert absent.returncode == 1 and "config file" not in absent.stderr and "absent.db" in absent.stderr
    assert not (tmp_path / "absent.db").exists()


def test_check_still_takes_a_config_file(tmp_path):
    run("migrate", "b.db", cwd=tmp_path)
    for name in ("a.conf", "settings"):
        (tmp_path / name).write_text("store sqlite:b.db\n")
        assert run("check", name, cwd=tmp_path).returncode == 0
    assert refused("check", "absent.conf") == "cannot open the config file absent.conf: No such file or directory"


# --- mistakes


def test_wrong_values_name_option_origin_and_form(tmp_path):
    conf = tmp_path / "a.conf"
    conf.write_text("# mine\ncache-memory 1tb\n")
    assert refused("--port", "70000") == '--port: "70000" is no value for port: expected a port from 0 to 65535'
    assert refused(env={"LARDER_DURABILITY": "maybe"}) == (
        'LARDER_DURABILITY: "maybe" is no value for durability: expected always, everysec or off'
    )
    assert refused("--config", str(conf)) == (
        f'{conf}:2: "1tb" is no value for cache-memory: expected a size in bytes, or with kb, mb, gb'
    )
    assert refused("--workers=4") == (
        "--workers: PostgreSQL and MariaDB in shared mode take more than 1, this database does not"
    )


def test_replicas_that_cannot_be_are_refused():
    memory = "answers reads from memory"
    assert memory in refused("--replica", "postgres://a/x")
    assert memory in refused("--store", "postgres://a/x?mode=exclusive", "--replica", "postgres://b/x")
    postgres = ("--store", "postgres://me:s3cret@a,b/x", "--replica")
    assert refused(*postgres, "mysql://u:s3cret@b/x") == (
        "--replica: mysql://u:***@b/x cannot be a replica of the store: one is PostgreSQL, the other MariaDB"
    )
    assert "no database server" in refused(*postgres, "redis://b/x")
    assert "several hosts" in refused(*postgres, "postgres://c,d/x")
    assert 'the database of the store, "x"' in refused(*postgres, "postgres://c/y")
    assert "prefix and schema" in refused(*postgres, "postgres://c/x?prefix=other_")
    assert "at most 15" in refused(*postgres, "postgres://c/x", *(["--replica", "postgres://d/x"] * 15))
    assert "s3cret" not in refused(*postgres, "postgres://u:my s3cret@c/x")


def test_unknown_words():
    assert refused("--prot", "1") == '--prot: there is no option "prot"; did you mean port?'
    assert refused("sevre") == 'there is no command "sevre"; larder --help lists them'
    assert refused("--port") == "--port: port takes one value, expected a port from 0 to 65535"
    assert refused("check", "--stor", "x") == '--stor: there is no option "stor"; did you mean store?'
    assert refused("config", "--html") == "config takes no argument but --markdown"
    assert refused("absent.conf") == "cannot open the config file absent.conf: No such file or directory"


def test_a_password_is_in_no_message_and_no_log(fleet):
    larder = fleet.larder("--loglevel", "debug", "--requirepass", "s3cret")
    with larder.connect() as c:
        assert c("AUTH", "s3cret") == b"OK"
        assert c("CONFIG", "SET", "requirepass", "an0ther") == b"OK"
    larder.stop()
    assert "s3cret" not in larder.log_text() and "an0ther" not in larder.log_text()


# --- check


def test_check(larder, tmp_path):
    with larder.connect() as c:
        c("SET", "a", "b")
    larder.check()
    larder.stop()
    larder.check()
    assert refused("check", "--store", f"sqlite:{tmp_path}/absent.db", code=1)
    assert not (tmp_path / "absent.db").exists()


@pytest.mark.sqlite
def test_check_finds(larder):
    with larder.connect() as c:
        c("SET", "a", "b")
    larder.stop()
    larder.store.query("UPDATE larder_db SET keys = keys + 5")
    done = run("check", "--store", larder.store.url)
    assert done.returncode == 3, done
    assert done.stdout


# --- a server's life


def test_the_first_line_of_the_log(larder):
    line = larder.log_text().splitlines()[0]
    for part in ("level=info", f"port={larder.port}", f'store="{larder.store.url}"', 'durability="always"', 'cache_memory="320mb"'):
        assert part in line
    assert re.match(r"ts=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=info msg=\"ready\" version=\d+\.\d+\.\d+ pid=", line)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_cleanly(larder, number):
    with larder.connect() as c:
        c("SET", "a", "b")
        larder.stop(number)
    assert 'msg="stopped"' in larder.log_text()
    larder.start()
    with larder.connect() as c:
        assert c("GET", "a") == b"b"


def test_sighup_opens_the_log_anew(fleet, tmp_path):
    path, rotated = tmp_path / "my log", tmp_path / "my log.1"
    larder = fleet.larder("--logfile", str(path), "--loglevel", "info")
    wait.until(lambda: path.exists() and "ready" in path.read_text(), "the log has a line")
    path.rename(rotated)
    larder.process.send_signal(signal.SIGHUP)
    wait.until(path.exists, "the log is there again")
    larder.stop()
    assert 'msg="stopped"' in path.read_text() and 'msg="stopped"' not in rotated.read_text()


def test_a_log_that_cannot_be_written(tmp_path):
    text = refused("--logfile", f"{tmp_path}/no/log", "--port", "0", cwd=tmp_path, code=1)
    assert text == f"cannot open the log file {tmp_path}/no/log: No such file or directory"


@pytest.mark.sqlite
def test_a_second_server_is_refused(larder, tmp_path):
    done = run("--port", str(servers.free_port()), "--store", larder.store.url, "--busy-timeout", "100ms", cwd=tmp_path)
    assert done.returncode == 1
    assert "status=locked" in done.stderr
    with larder.connect() as c:
        assert c("PING") == b"PONG"


@pytest.mark.sqlite
def test_a_taken_port_is_told(larder, tmp_path):
    done = run("--port", str(larder.port), "--bind", "127.0.0.1", "--store", f"sqlite:{tmp_path}/x.db", cwd=tmp_path)
    assert done.returncode == 1
    assert "address already in use" in done.stderr.lower() and str(larder.port) in done.stderr


@pytest.mark.sqlite
def test_the_data_is_not_for_everyone(larder):
    assert os.stat(larder.store.path).st_mode & 0o027 == 0


def test_config_rewrite(fleet, tmp_path):
    conf = tmp_path / "larder.conf"
    conf.write_text("# mine\nmaxclients 100\n")
    larder = fleet.larder("--config", str(conf))
    with larder.connect() as c:
        assert c("CONFIG", "SET", "maxclients", "200", "timeout", "60") == b"OK"
        assert c("CONFIG", "REWRITE") == b"OK"
    lines = conf.read_text().splitlines()
    assert lines[:2] == ["# mine", "maxclients 200"]
    assert "timeout 60s" in lines
    larder.stop()
    larder.start()
    with larder.connect() as c:
        assert c("CONFIG", "GET", "timeout") == [b"timeout", b"60"]


def test_the_environment_of_a_kubernetes_service_is_ignored(fleet):
    env = {
        "LARDER_PORT": "tcp://10.0.0.1:6379",
        "LARDER_PORT_6379_TCP_ADDR": "10.0.0.1",
        "LARDER_SERVICE_HOST": "10.0.0.1",
        "LARDER_SWEEP_INTERVALL": "60",
    }
    larder = fleet.larder(env=env)
    warnings = [line for line in larder.log_text().splitlines() if 'msg="the environment"' in line]
    assert len(warnings) == 2 and all("level=warning" in line for line in warnings)
    assert any("LARDER_PORT is ignored, and 2 more" in line for line in warnings)
    assert any("did you mean LARDER_SWEEP_INTERVAL?" in line for line in warnings)


def test_a_time_without_a_unit():
    assert refused(env={"LARDER_SWEEP_INTERVAL": "60"}) == (
        'LARDER_SWEEP_INTERVAL: "60" has no unit, and sweep-interval needs one: 60ms or 60s?'
    )
    assert refused("--sweep-pause=5") == '--sweep-pause: "5" has no unit, and sweep-pause needs one: 5ms or 5s?'


@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
def test_the_service_manager_is_told(fleet, tmp_path, abstract):
    name = f"@larder-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name[1:] if abstract else name)
        manager.settimeout(30)

        def until(word):
            said = []
            while not said or word not in said[-1].split("\n"):
                said.append(manager.recv(4096).decode())
            return said

        larder = fleet.larder(env={"NOTIFY_SOCKET": name})
        assert until("READY=1") == ["STATUS=opening the database", "READY=1\nSTATUS=serving"]
        larder.process.send_signal(signal.SIGTERM)
        assert until("STOPPING=1") == ["STOPPING=1\nSTATUS=stopping"]
        assert larder.process.wait(30) == 0


def test_the_service_manager_is_told_of_shutdown(fleet, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        larder = fleet.larder(env={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        with larder.connect() as c:
            c.send(b"SHUTDOWN\r\n")
            assert larder.process.wait(30) == 0
        states = [manager.recv(4096).decode().split("\n")[0] for _ in range(3)]
    assert states == ["STATUS=opening the database", "READY=1", "STOPPING=1"]


def test_a_socket_of_the_service_manager_that_is_not_there(fleet, tmp_path):
    for name in (str(tmp_path / "absent"), "@", "vsock:2:1", "/" + "x" * 200, ""):
        with fleet.larder(env={"NOTIFY_SOCKET": name}).connect() as c:
            assert c("PING") == b"PONG"


def test_the_unit_waits_for_readiness_and_never_gives_up():
    unit = (servers.ROOT / "packaging" / "larder.service").read_text().splitlines()
    wanted = {"Type=notify", "StartLimitIntervalSec=0", "TimeoutStartSec=infinity", "Restart=on-failure"}
    assert wanted | {"RestartPreventExitStatus=2"} <= set(unit)
    after = next(line for line in unit if line.startswith("After="))
    assert {"postgresql.service", "mariadb.service", "mysql.service"} <= set(after.split("=")[1].split())


def test_environment_under_flags_over_file(fleet, tmp_path):
    conf = tmp_path / "larder.conf"
    conf.write_text("maxclients 100\ntcp-backlog 100\ntimeout 100\n")
    env = {"LARDER_TCP_BACKLOG": "200", "LARDER_TIMEOUT": "200", "LARDER_CONFIG": str(conf)}
    larder = fleet.larder("--timeout", "300", env=env)
    with larder.connect() as c:
        values = [c("CONFIG", "GET", name)[1] for name in ("maxclients", "tcp-backlog", "timeout")]
    assert values == [b"100", b"200", b"300"]
