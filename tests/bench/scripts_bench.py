"""Scripts and functions beside redis-server's: what a script costs around its commands, and what each redis.call costs."""

import hashlib

INCR = "return redis.call('INCR', KEYS[1])"
LIMIT = (
    "redis.call('SET', KEYS[1], 0, 'EX', ARGV[1], 'NX') "
    "local used = redis.call('INCR', KEYS[1]) "
    "return {used <= tonumber(ARGV[2]) and 1 or 0, redis.call('PTTL', KEYS[1])}"
)
HUNDRED = "for i = 1, 100 do redis.call('INCRBY', KEYS[1], i) end return redis.call('GET', KEYS[1])"
TWO_GETS = "return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])}"
LIBRARY = (
    "#!lua name=bench\nlocal function limit(KEYS, ARGV) %s end\n"
    "redis.register_function('limit', limit)" % LIMIT
)
SCRIPTS = [LIMIT, HUNDRED, TWO_GETS]


def sha(script):
    return hashlib.sha1(script.encode()).hexdigest()


# name: (command, does it write, which part of the usual requests is enough)
TESTS = {
    "EVAL of an INCR": (["EVAL", INCR, "1", "count:__rand_int__"], True, 1),
    "EVALSHA, 3 calls": (["EVALSHA", sha(LIMIT), "1", "limit:__rand_int__", "3600", "100"], True, 1),
    "FCALL, 3 calls": (["FCALL", "limit", "1", "limit:__rand_int__", "3600", "100"], True, 1),
    "EVALSHA, 100 calls": (["EVALSHA", sha(HUNDRED), "1", "sum:__rand_int__"], True, 10),
    "EVAL_RO, 2 GETs": (["EVAL_RO", TWO_GETS, "2", "key:__rand_int__", "key:__rand_int__"], False, 1),
    "EVALSHA_RO, 2 GETs": (["EVALSHA_RO", sha(TWO_GETS), "2", "key:__rand_int__", "key:__rand_int__"], False, 1),
}


def prepare(server):
    for words in [("SCRIPT", "LOAD", script) for script in SCRIPTS] + [("FUNCTION", "LOAD", LIBRARY)]:
        reply = server.command(*words)
        if reply[:1] == b"-":
            raise RuntimeError(f"{server.name}: {' '.join(words[:2])}: {reply.decode().strip()}")


def compare(options, servers, run_pair, redis_benchmark, requests_for, fill, results):
    """Both durabilities; what only reads once, it does not depend on it."""
    for level in ("always", "everysec"):
        pair = servers.contestants(options, level)
        try:
            for s in pair:
                s.start()
                prepare(s)
                if level == "always":
                    fill(s)
            for pipeline in (1, 16):
                for name, (command, writes, share) in TESTS.items():
                    if not writes and level == "everysec":
                        continue
                    n = max(1000, requests_for(pipeline, writes, options.scale) // share)
                    run_pair(results, pair, f"{name} P{pipeline} {level}", options.rounds,
                             lambda s: redis_benchmark(s, command, pipeline, n))
        finally:
            for s in pair:
                s.remove()
