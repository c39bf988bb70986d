"""hiredis, from C."""

import pathlib
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).parent / "hiredis_client.c"


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    target = tmp_path_factory.mktemp("hiredis") / "hiredis_client"
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "libevent"], check=True, capture_output=True, text=True
    ).stdout.split()
    subprocess.run(
        ["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", target, SOURCE, "-lhiredis", *flags],
        check=True,
    )
    return target


def test_hiredis(server, program):
    done = subprocess.run(
        [program, str(server.port), server.unix_socket], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
