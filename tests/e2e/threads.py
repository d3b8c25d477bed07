# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Many threads of one program share one session log.

    threads.py OUTBOARD SERVER PROGRAM
"""
import os
import re
import subprocess
import sys

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
bad = 0
for listen in ('tcp://127.0.0.1:0', *(f'{scheme}:/tmp/outboard-threads-{os.getpid()}.sock' for scheme in ('unix', 'shm'))):
    server = subprocess.Popen([SERVER, '--listen', listen, '--driver', 'null'], stderr=subprocess.PIPE, text=True)
    try:
        url = re.search(r'listening on (\S+)', server.stderr.readline()).group(1)
        done = subprocess.run([OUTBOARD, 'run', '--server', url, '--', PROGRAM], capture_output=True, text=True, timeout=150)
    finally:
        server.terminate()
        server.wait(10)
    print(url, 'exit', done.returncode, done.stdout.strip(), done.stderr[-3000:])
    bad += done.returncode != 0 or 'WARNING: ThreadSanitizer' in done.stderr
sys.exit(1 if bad else 0)
