# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Programs that use four devices print the same direct, forwarded, and over a link that is cut.

    four_devices.py OUTBOARD SERVER PROGRAMS
"""
import re
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import cutter
import waiting
from outboard_test import ENV, Server, check, finish, needs, run

OUTBOARD, SERVER, PROGRAMS = sys.argv[1:4]
needs('resume')
FOUR = {'OUTBOARD_SOFT_DEVICES': '4'}

with Server(SERVER, '--driver', 'soft', env=FOUR) as server:
    for command in [f'{PROGRAMS}/peers'], [f'{PROGRAMS}/every_device']:
        name = command[0].rsplit('/', 1)[1]
        direct = subprocess.run([OUTBOARD, 'run', '--direct', '--', *command], capture_output=True, text=True, timeout=waiting.LONG, env={**ENV, **FOUR})
        check(f'{name}, direct', direct.returncode == 0 and re.search(rf'^{name}: ok$', direct.stdout, re.M), direct.stdout + direct.stderr)
        out, done = run(OUTBOARD, server.url, *command)
        check(f'{name}, forwarded', done.returncode == 0 and out == direct.stdout, out + done.stderr)
    out = run(OUTBOARD, server.url, f'{PROGRAMS}/peers')[0]
    check('peers saw four devices, each with access to the others', '4 devices' in out and '12 pairs with access' in out, out)
    long = [f'{PROGRAMS}/peers', '50']
    whole, done = run(OUTBOARD, server.url, *long)
    proxy = cutter.Proxy('tcp:', server.url, 12, 40 << 10, 0, True, 3)
    out, done = run(OUTBOARD, proxy.url, *long)
    made = proxy.total()
    proxy.close()
    check(f'the same through {made} breaks', done.returncode == 0 and out == whole and made >= 4, out + done.stderr)
finish()
