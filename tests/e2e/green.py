# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Green contexts over a link that is cut again and again.

    green.py OUTBOARD SERVER PROGRAMS
"""
import sys

sys.path.append(sys.path[0] + '/../lib')
import cutter
from outboard_test import Server, check, finish, needs, run

OUTBOARD, SERVER, PROGRAMS = sys.argv[1:4]
needs('resume')

with Server(SERVER, '--driver', 'soft') as server:
    for period in 1500, 2 << 10, 3 << 10:
        proxy = cutter.Proxy('tcp:', server.url, 30, period, 0, True, 3)
        out, done = run(OUTBOARD, proxy.url, f'{PROGRAMS}/driver_green')
        made = proxy.total()
        proxy.close()
        check(f'cut after {period} bytes, {made} times', done.returncode == 0 and out == 'driver_green: ok\n' and made >= 4, out + done.stderr)
finish()
