# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A server whose workers take long to start, as on a machine with many GPUs or much to do: programs wait
for it, longer than for a connection.

    slow_start.py OUTBOARD SERVER INIT_PROGRAM
"""
import os
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish, run

OUTBOARD, SERVER, PROGRAM = sys.argv[1:]
CONNECTING = 5  # seconds; the default of OUTBOARD_TIMEOUT for a connection

with tempfile.TemporaryDirectory() as folder:
    go = os.path.join(folder, 'go')
    open(go, 'w').close()
    with Server(SERVER, '--driver', 'soft', '--sandbox', 'off', '--warm', '0', env={'OUTBOARD_FAULT': f'cuInit:1=hold@{go}'}) as s:
        out, _ = run(OUTBOARD, s.url, PROGRAM)
        check('the worker that the server has started at first serves a program', out == '0\n0\n', out)
        os.unlink(go)
        env = {name: value for name, value in ENV.items() if name != 'OUTBOARD_TIMEOUT'}
        began = time.monotonic()
        program = subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--', PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        waiting.until(lambda: time.monotonic() > began + CONNECTING + 1 or program.poll() is not None)
        check('a program waits for a worker that starts', program.poll() is None, program.poll())
        open(go, 'w').close()
        out, err = program.communicate(timeout=waiting.LONG)
        check('and is served', (out, program.returncode) == ('0\n0\n', 0), out + err)
finish()
