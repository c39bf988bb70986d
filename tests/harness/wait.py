"""Waiting on conditions instead of sleeping for a time that is hoped to be enough."""

import time


def until(condition, what, limit=60.0, pause=0.005):
    """Calls `condition` until it returns something true, which is returned; AssertionError after `limit` seconds."""
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {limit:g} s in vain: {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
