# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""How often a program waits for the server, as --stats counts it.

    round_trips.py OUTBOARD SERVER BENCH_CALLS SOAK [VECTOR_ADD]

A training step of 200 launches that reads four scalars needs four round trips. A whole vectorAdd
process, built by plain nvcc, needs at most three: hello, the copy back, goodbye. Also on a driver
without virtual memory management. An asynchronous copy of pinned memory needs none in either
direction, however many there are: the program waits once for all.
"""
import os
import re
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, Server, check, finish, skip

OUTBOARD, SERVER, CALLS, SOAK, *VECTOR_ADD = sys.argv[1:]
STEPS, READS = 20, 4

if 'all' in os.environ.get('OUTBOARD_OPT', ''):
    skip('with every optimisation off each call is a round trip: nothing to count')


def trips(driver, *program, env=None):
    with Server(SERVER, '--driver', driver, env=env) as server:
        done = subprocess.run([OUTBOARD, 'run', '--server', server.url, '--stats', '--', *program], capture_output=True, text=True, timeout=60, env=ENV)
    print(done.stdout + done.stderr)
    found = re.search(r'(\d+) round trips', done.stderr)
    check(f'{program[0]} runs and reports its round trips', done.returncode == 0 and found, done.returncode)
    return int(found[1]) if found else 0


one, many = (trips('null', CALLS, 'steps', str(n)) for n in (1, 1 + STEPS))
check(f'{STEPS} training steps: {READS} round trips each', many - one == STEPS * READS, (one, many))
for kind in 'upload', 'read-later':
    few, many = (trips('null', SOAK, str(n), 'calls', kind) for n in (8, 208))
    check(f'{kind}: no round trip for 200 asynchronous copies of pinned memory', few == many, (few, many))
if VECTOR_ADD:
    for what, env in (('vectorAdd', None), ('vectorAdd without virtual memory management', {'OUTBOARD_FAULT': 'cuMemAddressReserve:*=801'})):
        n = trips('soft', *VECTOR_ADD, env=env)
        check(f'{what}: at most 3 round trips', n <= 3, n)
finish()
