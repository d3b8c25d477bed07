# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A program that exits abandons its pending copies of pinned memory: it says goodbye at once, and
waits for no copy, as the end of a process ends its CUDA context.

    exits.py OUTBOARD SERVER PROGRAM
"""
import json
import os
import pathlib
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import outboard_test
import waiting
from outboard_test import check, finish, needs

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]


def ends(path):
    """How the sessions ended, from the audit log."""
    lines = map(json.loads, pathlib.Path(path).read_text().splitlines())
    return [line['how'] for line in lines if line['event'] in ('close', 'killed')]


def main():
    needs('background,async,byref')
    with tempfile.TemporaryDirectory() as folder:
        for scheme in 'tcp', 'unix', 'shm':
            listen = 'tcp://127.0.0.1:0' if scheme == 'tcp' else f'{scheme}:{folder}/{scheme}'
            audit = os.path.join(folder, 'audit-' + scheme)
            with outboard_test.Server(SERVER, '--driver', 'soft', '--audit', audit, listen=listen) as server:
                for number, what in enumerate(('idle', 'read', 'upload', 'both', 'full'), 1):
                    out, done = outboard_test.run(OUTBOARD, server.url, PROGRAM, what, env={'OUTBOARD_RING': '64K'} if what == 'full' else None, timeout=100)
                    check(f'{scheme}, {what}: the program ends', done.returncode == 0 and out == 'done\n' and not done.stderr, (done.returncode, out, done.stderr[-800:]))
                    waiting.until(lambda: len(ends(audit)) >= number)
                    check(f'{scheme}, {what}: it said goodbye', ends(audit)[number - 1:] == ['bye'], ends(audit))
    finish()


main()
