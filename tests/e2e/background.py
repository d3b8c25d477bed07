# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Asynchronous copies of pinned memory keep their order with everything else, also when connections
break.

    background.py OUTBOARD SERVER PROGRAM STEPS [SEED]
"""
import os
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import cutter
import outboard_test
from outboard_test import check, finish, needs

OUTBOARD, SERVER, PROGRAM, STEPS = sys.argv[1:5]
SEED = int(sys.argv[5]) if len(sys.argv) > 5 else 1
CUTS = 12


def run(name, url, seed, threads):
    done = subprocess.run([OUTBOARD, 'run', '--server', url, '--', PROGRAM, str(SEED + seed), STEPS, threads], capture_output=True, text=True, timeout=200)
    check(name, done.returncode == 0 and done.stdout == 'done\n', f'{done.returncode} {done.stdout} {done.stderr[-800:]}')


def main():
    needs('resume')
    with tempfile.TemporaryDirectory() as folder:
        for seed, (scheme, threads) in enumerate((('tcp', '1'), ('tcp', '3'), ('unix', '2'), ('shm', '2'))):
            listen = 'tcp://127.0.0.1:0' if scheme == 'tcp' else f'{scheme}:{folder}/s{seed}'
            with outboard_test.Server(SERVER, '--driver', 'soft', listen=listen) as server:
                run(f'{scheme}, {threads} threads', server.url, seed, threads)
                proxy = cutter.Proxy('tcp:' if scheme == 'tcp' else f'{scheme}:{folder}/p{seed}', server.url, CUTS, 6 << 20, 0, True, SEED + seed)
                run(f'{scheme}, {threads} threads, connections break', proxy.url, seed, threads)
                made = proxy.total()
                proxy.close()
                check(f'{scheme}: connections broke ({made})', made >= 2, made)
    finish()


main()
