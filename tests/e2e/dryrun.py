# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Dry runs: a program with machine code and no PTX, in its own process and over a server; what the
commands say of such a server; other GPUs; wrong settings.

    dryrun.py OUTBOARD SERVER PROGRAM
"""
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
SAYS = '(Outboard dry run, computes nothing)'


def outboard(*words, env=None):
    return subprocess.run([OUTBOARD, *words], capture_output=True, text=True, timeout=waiting.LONG, env={**ENV, **(env or {})})


def expected(name, capability, units):
    return f'''{name} {SAYS}, {capability}, {units} multiprocessors
copied: 9 -1 -1 1048575, noted 7
variables: 42, 0 0, 1.5 2.5 3.5
kernel: 1024 threads at most, registers known
a block too large: cudaErrorInvalidValue
loop and branch: 5 5 0, 1
'''


h100 = expected('NVIDIA H100 80GB HBM3', '9.0', 132)
done = outboard('run', '--direct', '--driver', 'dryrun', '--', PROGRAM)
check('in the own process', done.returncode == 0 and done.stdout == h100, (done.returncode, done.stdout, done.stderr))
done = outboard('run', '--direct', '--driver', 'dryrun', '--', PROGRAM, env={'OUTBOARD_DRYRUN': 'a100'})
check('as another GPU', done.stdout == expected('NVIDIA A100-SXM4-80GB', '8.0', 108), (done.stdout, done.stderr))
done = outboard('run', '--direct', '--driver', 'dryrun', '--', PROGRAM, env={'OUTBOARD_DRYRUN': 't1000'})
check('an unknown GPU is refused with the list', 'OUTBOARD_DRYRUN=t1000' in done.stderr and 'h100' in done.stderr, done.stderr)
done = outboard('run', '--direct', '--driver', 'soft', '--', PROGRAM, env={'OUTBOARD_DRYRUN': 'h100'})
check('--driver soft is no dry run', SAYS not in done.stdout and 'PTX' in done.stderr, (done.stdout, done.stderr))
done = outboard('run', '--driver', 'dryrun', '--', PROGRAM)
check('--driver without --direct is refused', done.returncode == 2 and '--direct' in done.stderr, (done.returncode, done.stderr))

with Server(SERVER, '--driver', 'dryrun') as server:
    check('the server says that it computes nothing', server.line('dryrun.*executes no kernel'), server.lines)
    done = outboard('run', '--server', server.url, '--', PROGRAM)
    check('over a server: the same', done.returncode == 0 and done.stdout == h100, (done.returncode, done.stdout, done.stderr))
    done = outboard('check', '--server', server.url)
    check('outboard check says so', done.returncode == 0 and 'DRY RUN, NO GPU' in done.stdout and 'NOTHING IS COMPUTED' in done.stdout, done.stdout)
    done = outboard('info', '--server', server.url)
    check('outboard info says so', SAYS in done.stdout and 'runs PTX only' not in done.stdout, done.stdout)
with Server(SERVER, '--driver', 'dryrun', env={'OUTBOARD_DRYRUN': 'b200'}) as server:
    done = outboard('run', '--server', server.url, '--', PROGRAM)
    check('a server with another GPU', done.stdout == expected('NVIDIA B200', '10.0', 148), (done.stdout, done.stderr))
with Server(SERVER, '--driver', 'dryrun', env={'OUTBOARD_DRYRUN': 'none'}, must_start=False) as server:
    check('a server with an unknown GPU does not start', not server.url and any('OUTBOARD_DRYRUN=none' in line for line in server.lines), server.lines)
finish()
