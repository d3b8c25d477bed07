# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Round trips of programs that poll events and streams, or time kernels with events.

    polls.py OUTBOARD SERVER POLLS
"""
import os
import re
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, Server, check, finish, skip

OUTBOARD, SERVER, POLLS = sys.argv[1:]
ROUNDS = 10
OFF = os.environ.get('OUTBOARD_OPT', '')


def run(mode, rounds, **env):
    done = subprocess.run([OUTBOARD, 'run', '--server', server.url, '--stats', '--', POLLS, mode, str(rounds)], capture_output=True, text=True,
                          timeout=100, env=ENV | env)
    found = re.search(r'(\d+) round trips', done.stderr)
    polls = re.search(r'not ready (\d+)', done.stdout)
    check(f'{mode}, {rounds} rounds: the program succeeds', done.returncode == 0 and found and polls, done.stdout + done.stderr)
    return (int(found[1]), int(polls[1])) if found and polls else (0, 0)


def cost(mode, **env):
    """Round trips of ROUNDS rounds after the first, and queries that found work incomplete."""
    (one, _), (all_, polls) = run(mode, 1, **env), run(mode, 1 + ROUNDS, **env)
    return all_ - one, polls


with Server(SERVER, '--driver', 'soft') as server:
    run('slept', 3)
    if 'all' in OFF:
        skip('with every optimisation off each query is a round trip')
    trips, polls = cost('event')
    check('an event that was polled before: no round trip', trips == 0, trips)
    check('the event was polled while it was incomplete', polls > ROUNDS, polls)
    trips, polls = cost('stream')
    check('a stream: at most one round trip for each wait', trips <= ROUNDS, trips)
    check('the stream was polled while it was busy', polls > ROUNDS, polls)
    trips, _ = cost('timed')
    check('a timed kernel: one round trip', trips == ROUNDS, trips)
    # How often a kernel is found running differs between two runs, so this is of one run.
    trips, polls = run('event', 1 + ROUNDS, OUTBOARD_OPT='-watch')
    check('without watches each query is a round trip', trips >= polls > ROUNDS, (trips, polls))
finish()
