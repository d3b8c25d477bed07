# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Managed memory, and pinned memory with host functions, over connections that break; managed memory
after the server is gone, in a child of a fork, and with read(2).

    managed.py OUTBOARD SERVER PROGRAM
"""
import os
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import cutter
from outboard_test import Server, check, finish, needs

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
TURNS = '60'
needs('resume')


def run(url, *command, timeout=60, **env):
    return subprocess.run([OUTBOARD, 'run', '--server', url, '--', PROGRAM, *command], capture_output=True, text=True, timeout=timeout, env=dict(os.environ, **env))


def broken_links(server, what, *command):
    want = run(server.url, *command)
    check(f'{what}: runs unbroken', want.returncode == 0 and want.stdout.startswith('sum '), (want.stdout, want.stderr[-1500:]))
    made = 0
    for name, mean, env in (('', 200 << 10, {}), (', packed', 40 << 10, {'OUTBOARD_CODEC': 'lz4'})):
        proxy = cutter.Proxy('tcp:', server.url, 30, mean)
        got = run(proxy.url, *command, timeout=120, **env)
        made = proxy.total()
        proxy.close()
        check(f'{what}: the same result through {made} breaks{name}', got.returncode == 0 and got.stdout == want.stdout, (got.stdout, got.stderr[-1500:]))
        check(f'{what}: enough breaks{name}', made >= 5, made)
    return want.stdout


def host_functions(server):
    """The sum over all rounds, and the same without a server."""
    remote = broken_links(server, 'host functions', 'functions', TURNS)
    direct = subprocess.run([OUTBOARD, 'run', '--direct', '--', PROGRAM, 'functions', TURNS], capture_output=True, text=True, timeout=60)
    check('host functions: the same sum in one process', direct.returncode == 0 and direct.stdout == remote, (direct.stdout, remote))
    values, total = [0] * 4096, 0
    for _ in range(int(TURNS)):
        values = [(3 * value + i) & 0xffffffff for i, value in enumerate(values)]
        for value in values:
            total = (total * 31 + value) & 0xffffffffffffffff
        for i in range(0, 4096, 100):
            values[i] ^= i
    check('host functions: the right sum', remote == f'sum {total:x}\n', (remote, total))


def lost_session():
    with Server(SERVER, '--driver', 'soft') as server:
        program = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, 'lost'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        check('the program is ready', program.stdout.readline() == 'ready\n')
        server.stop()
    try:
        out, err = program.communicate('\n', timeout=60)
    except subprocess.TimeoutExpired:
        program.kill()
        out, err = program.communicate()
        check('an access after the server has gone returns', False, err[-1500:])
        return
    # The bytes that this process had last, an error message, and an error from the next call.
    check('the last bytes are readable', program.returncode == 0 and out == 'read 1234\nerror 1\n', (program.returncode, out, err[-1500:]))
    check('the reason is logged', 'cannot be fetched' in err, err[-1500:])


def rest(server, folder):
    path = os.path.join(folder, 'bytes')
    with open(path, 'wb') as out:
        out.write(b'\x11' * 1000)
    if 'ASAN_OPTIONS' not in os.environ:  # nothing is preloaded into a program of the address sanitizer
        got = run(server.url, 'file', path)
        check('read(2) into new and into touched memory, and into memory on the device', got.stdout == 'fresh 1000\ntouched 1000 17\ndevice 1000 17\n',
              (got.stdout, got.stderr[-1500:]))
    got = run(server.url, 'file', path, OUTBOARD_BUFFERS='0')
    check('the same without the library for it', got.stdout == 'fresh 1000\ntouched 1000 17\ndevice -1 0\n', (got.stdout, got.stderr[-1500:]))
    got = run(server.url, 'fork')
    check('a child has no such memory, its parent keeps it', got.stdout == 'child 11 parent 1\nparent 5\n', (got.stdout, got.stderr[-1500:]))


def main():
    with tempfile.TemporaryDirectory() as folder:
        with Server(SERVER, '--driver', 'soft') as server:
            broken_links(server, 'turns', 'turns', TURNS)
            host_functions(server)
            rest(server, folder)
        lost_session()
    finish()


if __name__ == '__main__':
    main()
