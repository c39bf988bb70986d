"""PHP's sessions by php-redis with a lock on each session, which is given back by a script (EVALSHA, EVAL)."""

import shutil
import subprocess

import pytest
import redis

PROCESSES, ROUNDS = 3, 10
SESSION = "PHPREDIS_SESSION:shared"

COUNT = """
for ($i = 0; $i < (int)$argv[1]; $i++) {
    session_id('shared');
    session_start() or exit(1);
    $n = $_SESSION['n'] ?? 0;
    usleep(500);
    $_SESSION['n'] = $n + 1;
    session_write_close();
}
"""
HOLD = """
session_id('shared');
session_start() or exit(1);
echo "held\\n";
fgets(STDIN);
$_SESSION['by'] = 'holder';
session_write_close();
echo json_encode([session_status() === PHP_SESSION_NONE]), "\\n";
"""
ASK = """
session_id('shared');
session_start() or exit(1);
$_SESSION['by'] = 'another';
@session_write_close();
echo error_get_last() === null ? 'written' : 'refused';
"""

pytestmark = pytest.mark.skipif(shutil.which("php") is None, reason="php is not installed")


def php(server, program, *arguments, **settings):
    settings = {
        "session.save_handler": "redis",
        "session.save_path": f"tcp://127.0.0.1:{server.port}",
        "session.use_cookies": 0,
        "session.use_only_cookies": 0,
        "session.cache_limiter": "",
        "redis.session.locking_enabled": 1,
        "redis.session.lock_expire": 60,
        **settings,
    }
    options = [word for name, value in settings.items() for word in ("-d", f"{name}={value}")]
    return subprocess.Popen(
        ["php", *options, "-r", program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_sessions_are_counted_exactly(server):
    """Requests of one session take turns: none of their changes is lost, and no lock is left behind."""
    patient = {"redis.session.lock_retries": -1, "redis.session.lock_wait_time": 1000}
    processes = [php(server, COUNT, ROUNDS, **patient) for _ in range(PROCESSES)]
    for process in processes:
        out, _ = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "")
    with redis.Redis(port=server.port) as r:
        assert r.get(SESSION) == b"n|i:%d;" % (PROCESSES * ROUNDS)
        assert r.keys("*") == [SESSION.encode()]


def test_a_session_that_is_held(server):
    """Without the lock a session can be read, and is not written."""
    impatient = {"redis.session.lock_retries": 1, "redis.session.lock_wait_time": 1000}
    with php(server, HOLD) as holder, redis.Redis(port=server.port) as r:
        assert holder.stdout.readline() == "held\n"
        assert 0 < r.pttl(SESSION + "_LOCK") <= 60_000
        assert php(server, ASK, **impatient).communicate(timeout=60)[0] == "refused"
        assert holder.communicate("go on\n", timeout=60)[0] == "[true]\n"
        assert not r.exists(SESSION + "_LOCK") and r.get(SESSION) == b'by|s:6:"holder";'
        assert php(server, ASK, **impatient).communicate(timeout=60)[0] == "written"
        assert r.get(SESSION) == b'by|s:7:"another";'
