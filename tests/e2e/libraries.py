#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""cuBLAS on the software device, in the program's process and behind a server: the results must be
right and the same. Arguments: outboard, server, cublas_numbers.py[, cublas_levels]. Exit code 77 without
cuBLAS."""
import os
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import Server, bad, check

outboard, server_path, script, *levels = sys.argv[1:]
SKIPPED = 77
# malloc fills memory, so that no result depends on uninitialised bytes.
SETTINGS = {'MALLOC_PERTURB_': '165'}


def numbers(*where):
    done = subprocess.run([outboard, 'run', *where, '--', sys.executable, script, '300'], env=dict(os.environ, **SETTINGS), capture_output=True, text=True,
                          timeout=120, check=False)
    if done.returncode == SKIPPED:
        print(done.stdout, end='')
        sys.exit(SKIPPED)
    check(f'{where[0]}: every result', done.returncode == 0 and done.stdout.count('right') == 7, done.stdout + done.stderr)
    return done.stdout


def all_levels(*where):
    """cuBLAS 13.0 and 13.4 have no code for products of small matrices of int8 at 13.0."""
    done = subprocess.run([outboard, 'run', *where, '--', *levels], env=dict(os.environ, **SETTINGS), capture_output=True, text=True, timeout=120, check=False)
    lines = done.stdout.splitlines()
    check(f'{where[0]}: levels 1 to 3 and cublasLt', done.returncode == 0 and lines[-1:] == ['74 operations: 72 right, 2 not supported, 0 failed, 0 wrong'] and
          {'GemmEx int8: status 15', 'Lt int8: status 15'} < set(lines), done.stdout + done.stderr)


def main():
    direct = numbers('--direct')
    if levels:
        all_levels('--direct')
    with tempfile.TemporaryDirectory() as folder:
        server = Server(server_path, '--driver', 'soft', listen=f'unix:{folder}/socket', env=SETTINGS)
        try:
            check('the same results behind a server', numbers('--server', server.url) == direct)
            if levels:
                all_levels('--server', server.url)
        finally:
            check('the server ends', server.stop())
    sys.exit(1 if bad else 0)


main()
