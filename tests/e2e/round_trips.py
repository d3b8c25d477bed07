# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A whole vectorAdd process, built by plain nvcc, must need at most three round trips: hello, the
copy back, goodbye.

    round_trips.py OUTBOARD SERVER VECTOR_ADD
"""
import os
import re
import subprocess
import sys
import tempfile

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
MOST = 3

if 'all' in os.environ.get('OUTBOARD_OPT', ''):
    print('with every optimisation off each call is a round trip: nothing to count')
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    server = subprocess.Popen([SERVER, '--listen', 'tcp://127.0.0.1:0', '--driver', 'soft'], stderr=subprocess.PIPE, text=True)
    try:
        url = re.search(r'listening on (\S+)', server.stderr.readline()).group(1)
        done = subprocess.run([OUTBOARD, 'run', '--server', url, '--stats', '--', PROGRAM], capture_output=True, text=True, timeout=60)
    finally:
        server.terminate()
        server.wait(10)
print(done.stdout + done.stderr)
found = re.search(r'(\d+) round trips', done.stderr)
if done.returncode or not found:
    print('the program failed, or printed no report')
    sys.exit(1)
print(f'{found.group(1)} round trips, at most {MOST} allowed')
sys.exit(0 if int(found.group(1)) <= MOST else 1)
