# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Runs two busy sessions at 25 and 75 % of one device for ten seconds, and prints what each got. A
measurement: it fails only if a session got nothing.

    share.py OUTBOARD SERVER LIMITS_PROGRAM [SECONDS]
"""
import json
import subprocess
import sys
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
SECONDS = float(sys.argv[4]) if len(sys.argv) > 4 else 10


def look(url):
    told = json.loads(subprocess.run([OUTBOARD, 'top', '--once', '--json', '--server', url], capture_output=True, text=True, timeout=30, env=ENV).stdout)
    return time.monotonic(), {round(x['share'], 2): x['device_seconds'] for x in told['listed']}


with Server(SERVER, '--driver', 'soft', '--warm', '2') as s:
    busy = [subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--share', part, '--', PROGRAM, 'spin', str(int(SECONDS + 4))], stdout=subprocess.PIPE, env=ENV)
            for part in ('0.25', '0.75')]
    waiting.let_pass(2, 'a measurement: until both are under way')
    began, before = look(s.url)
    waiting.let_pass(SECONDS, 'a measurement over so long')
    ended, after = look(s.url)
    for part in (0.25, 0.75):
        got = (after.get(part, 0) - before.get(part, 0)) / (ended - began)
        print(f'share {part}: {got:.3f} of the device over {ended - began:.1f} s, {got / part - 1:+.1%}')
        check('it got something', got > 0, (before, after))
    for process in busy:
        process.communicate(timeout=60)
finish()
