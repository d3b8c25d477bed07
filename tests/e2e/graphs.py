# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A graph is sent once and launched with one record, also over a connection that breaks.

    graphs.py OUTBOARD SERVER GRAPH_LAUNCHES GRAPH_CONDITIONAL
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import cutter
from outboard_test import ENV, Server, check, finish, skip

OUTBOARD, SERVER, PROGRAM, CONDITIONAL = sys.argv[1:]
if 'all' in os.environ.get('OUTBOARD_OPT', ''):
    skip('with every optimisation off each call is a round trip: nothing to count')
if not os.path.exists(PROGRAM):
    skip(f'{PROGRAM} is not built')


def sent_by(url, *command, env=ENV):
    """Runs a program. Returns the records sent of each operation, and the round trips."""
    done = subprocess.run([OUTBOARD, 'run', '--server', url, '--stats', '--', *command], capture_output=True, text=True, timeout=120, env=env)
    print(done.stdout + done.stderr)
    check(f'{os.path.basename(command[0])} has right results', done.returncode == 0 and ': ok' in done.stdout, done.returncode)
    sent = {name: int(n) for name, n in re.findall(r'outboard: (graph_\w+|launch)\s+(\d+)', done.stderr)}
    trips = re.search(r'(\d+) round trips', done.stderr)
    return sent, int(trips[1]) if trips else 0


def run(url, count):
    return sent_by(url, PROGRAM, str(count))


LAUNCHES_CONDITIONAL, CONDITIONS = 42, 12 + 3  # of the program graph_conditional

with tempfile.TemporaryDirectory() as folder, Server(SERVER, '--driver', 'soft', listen=f'unix:{folder}/s') as server:
    few, trips_few = run(server.url, 100)
    many, trips_many = run(server.url, 1100)
    check('one record for each launch', few.get('graph_launch') == 100 and many.get('graph_launch') == 1100, (few, many))
    check('one instantiation', few.get('graph_make') == many.get('graph_make') == 1, (few, many))
    check('ten nodes, and one record for each change', few.get('graph_kernel') == 11 and many.get('graph_kernel') == 21, (few, many))
    check('no launch of a single kernel', 'launch' not in many, many)
    check('no round trip for a launch or a change', trips_few == trips_many, (trips_few, trips_many))
    off, _ = sent_by(server.url, PROGRAM, '100', env=dict(ENV, OUTBOARD_OPT='-graphs'))
    check('with the switch off each kernel is a launch', off.get('launch') == 1000 and 'graph_launch' not in off, off)
    conditional, _ = sent_by(server.url, CONDITIONAL)
    check('one record for each launch with loops and branches', conditional.get('graph_launch') == LAUNCHES_CONDITIONAL and 'launch' not in conditional, conditional)
    check('one request for each condition of the program and of graphs that are instantiated again', conditional.get('graph_condition') == CONDITIONS, conditional)
    proxy = cutter.Proxy('tcp:', server.url, 8, 4 << 10, 0, False, 1, ('new', 'data', 'stripe'))
    cut, _ = run(proxy.url, 3000)
    check(f'through {proxy.total()} breaks: one record for each launch', proxy.total() > 0 and cut.get('graph_launch') == 3000, cut)
    proxy.close()
finish()
