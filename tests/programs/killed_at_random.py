#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Kills a program at 20 random moments: its worker is gone at once, and the server goes on serving.
The same for many that had hardly begun."""

import argparse
import os
import random
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + '/../lib')
import run as programs  # noqa: E402
import waiting  # noqa: E402

KILLS = 20
EARLY = 150  # kills during the handshake with the server
GONE_WITHIN = waiting.AT_ONCE  # seconds; much shorter than the grace period (--grace)


def descendants(pid):
    """Returns the process ids of all descendants."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as stat:
                    fields = stat.read().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(entry))
    found, look = [], [pid]
    while look:
        below = children.get(look.pop(), [])
        found += below
        look += below
    return found


def busy(pids):
    """Returns each process and its number of sockets. A worker with a session has more sockets than
    a warm worker."""
    sessions = []
    for pid in pids:
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        sessions.append((pid, sum(link.startswith("socket:") for link in links)))
    return sessions


def settle(server, idle, limit):
    """Waits until the server's processes have no more sockets than when idle. Returns the seconds
    it took, or None at the limit."""
    begin = time.monotonic()
    if waiting.until(lambda: sum(count for _, count in busy(descendants(server))) <= idle, limit):
        return time.monotonic() - begin
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--mode", default="tcp")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    print(f"seed {arguments.seed}")
    place = programs.Place(os.path.abspath(arguments.build), arguments.mode)
    server = place.server.process.pid
    binary = place.binary("keep_busy")
    failed = 0
    try:
        code, out, err = programs.run(place, [binary, "0.1"], 60)
        if code != 0:
            print(f"FAIL keep_busy does not run at all: {code}\n{out}{err}")
            return 1
        # The number of sockets of the idle server: constant for three seconds after the first
        # session.
        held = []
        waiting.until(lambda: held.append(sum(count for _, count in busy(descendants(server)))) or len(held) > 60 and len(set(held[-60:])) == 1, every=0.05)
        idle = held[-1]
        seen = 0
        for _ in range(KILLS):
            after = draw.uniform(0, 0.6)
            process = place.start(binary, "30", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
            waiting.let_pass(after, 'kills fall on other places of the work; none must leave anything')
            seen = max(seen, sum(count for _, count in busy(descendants(server))))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            took = settle(server, idle, GONE_WITHIN)
            print(f"{'FAIL' if took is None else 'ok  '} killed after {after:.3f} s, "
                  + (f"sessions left after {GONE_WITHIN} s: {busy(descendants(server))}, {idle} sockets at rest"
                     if took is None else f"worker gone after {took:.2f} s"))
            failed += took is None
            if place.server.process.poll() is not None:
                print(f"FAIL the server ended with {place.server.process.returncode}\n{place.server.log()}")
                return 1
        for _ in range(EARLY):
            process = place.start(binary, "30", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            waiting.let_pass(draw.uniform(0.002, 0.03), 'likewise, while the program starts')
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        took = settle(server, idle, GONE_WITHIN)
        print(f"{'FAIL' if took is None else 'ok  '} {EARLY} killed within 30 ms, "
              + (f"sessions left after {GONE_WITHIN} s: {busy(descendants(server))}" if took is None else f"workers gone {took:.2f} s after the last"))
        failed += took is None
        if seen <= idle:
            print(f"FAIL no session was ever seen: {seen} sockets at most, {idle} at rest; this test can find nothing")
            failed += 1
        code, out, err = programs.run(place, [place.binary("vector_add")], 60)
        print(f"{'ok  ' if code == 0 else 'FAIL'} the server still serves")
        failed += code != 0
        if code != 0:
            print(out + err)
    finally:
        place.close()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
