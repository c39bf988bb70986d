"""django-redis as Django's cache, lock and session store: the same program on Larder and on redis-server."""

import subprocess
import sys

PROGRAM = """
import sys
from django.conf import settings

location = f"redis://127.0.0.1:{sys.argv[1]}/1"
settings.configure(
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": location}},
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    INSTALLED_APPS=["django.contrib.sessions"],
    SECRET_KEY="test",
)
import django

django.setup()
from django.contrib.sessions.backends.cache import SessionStore
from django.core.cache import cache

print(cache.set("a", {"x": [1, 2]}, 60), cache.get("a"), cache.get("none", "default"), cache.ttl("a"))
print(cache.set_many({"b": 1, "c": 2}), dict(cache.get_many(["b", "c", "none"])))
print(cache.add("a", 1), cache.add("n", 1, 100), cache.has_key("n"))
print(cache.set("i", 1), cache.incr("i"), cache.incr("i", 5), cache.decr("i", 2))
print(cache.expire("a", 100), cache.persist("a"), cache.ttl("a"), cache.touch("a", 50), cache.ttl("a"))
print(sorted(cache.keys("*")), sorted(cache.iter_keys("[ab]*")))
print(cache.delete_pattern("b*"), cache.incr_version("c"), cache.get("c", version=2), cache.delete("a"))
lock, other = (cache.lock("job", timeout=60, blocking_timeout=0.01) for _ in range(2))
print(lock.acquire(), other.acquire(), lock.extend(60), 100 < cache.ttl("job") <= 120, lock.reacquire())
lock.release()
with other:
    print(lock.owned(), other.owned(), other.locked())
print(other.locked())
session = SessionStore()
session["user"] = 7
session.set_expiry(300)
session.save()
print(SessionStore(session_key=session.session_key)["user"])
session.cycle_key()
print(SessionStore(session_key=session.session_key).get("user"))
session.flush()
cache.clear()
print(cache.keys("*"))
"""


def output(server):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(server.port)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cache_and_sessions(fleet):
    assert output(fleet.larder()) == output(fleet.redis())
