# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A tensor map that was encoded before is encoded again without a round trip.

    tensor_maps.py OUTBOARD SERVER DRIVER_TENSOR_MAPS
"""
import os
import re
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish, skip

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]

if 'all' in os.environ.get('OUTBOARD_OPT', ''):
    skip('with every optimisation off each call is a round trip: nothing to count')


def encoded(url, n):
    done = subprocess.run([OUTBOARD, 'run', '--server', url, '--stats', '--', PROGRAM, str(n)], capture_output=True, text=True, timeout=waiting.LONG, env=ENV)
    found = re.search(r'outboard: cuTensorMapEncodeTiled +(\d+) +(\d+)', done.stderr)
    check(f'{2 * n} maps are encoded', done.returncode == 0 and found, (done.returncode, done.stderr))
    return int(found[2]) if found else -1


with Server(SERVER, '--driver', 'soft') as server:
    for n in 1, 500:
        trips = encoded(server.url, n)
        check(f'{n} times two maps: two round trips', trips == 2, trips)
finish()
