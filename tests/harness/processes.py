"""Processes that stand still for a while, as on a machine that swaps, or is moved to another host."""

import os
import pathlib
import signal
import time

from . import wait


def stop(pids):
    """SIGSTOP, and back when every thread stands still: one of them has to run first to stop the others."""
    for pid in pids:
        send(pid, signal.SIGSTOP)
    for pid in pids:
        wait.until(lambda: stopped(pid), f"{pid} stops")


def stopped(pid):
    """Whether all threads of a process are stopped, or it has ended."""
    try:
        states = [task.read_text().rsplit(")", 1)[1].split()[0] for task in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:
        return not pathlib.Path(f"/proc/{pid}").exists()
    return all(state in "TZX" for state in states)


def go_on(pids):
    for pid in reversed(pids):
        send(pid, signal.SIGCONT)


def freeze(pids, seconds):
    stop(pids)
    time.sleep(seconds)
    go_on(pids)


def send(pid, signo):
    try:
        os.kill(pid, signo)
    except ProcessLookupError:
        pass


def family(pid):
    """A process and its children."""
    found = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, found)]
