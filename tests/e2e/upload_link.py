# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""By default a client queries the server's cache when the link is slow. Uses two network namespaces
and a link limited by tc; skipped where these are not available.

    upload_link.py OUTBOARD SERVER UPLOAD_PROGRAM
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, check, finish, needs

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
MIB = 40
needs('cache,async')  # async: the link's rate is measured from pipelined writes
HERE, THERE = f'obt{os.getpid()}a', f'obt{os.getpid()}b'


def ip(*arguments):
    return subprocess.run(['ip', *arguments], capture_output=True, text=True).returncode == 0


def link():
    ends = (HERE, '10.201.77.1/24'), (THERE, '10.201.77.2/24')
    return all(ip('netns', 'add', name) for name, _ in ends) and \
        ip('link', 'add', HERE, 'netns', HERE, 'type', 'veth', 'peer', 'name', THERE, 'netns', THERE) and \
        all(ip('-n', name, 'addr', 'add', address, 'dev', name) and ip('-n', name, 'link', 'set', name, 'up') for name, address in ends)


def slow(rate):
    return subprocess.run(['ip', 'netns', 'exec', THERE, 'tc', 'qdisc', 'replace', 'dev', THERE, 'root', 'tbf', 'rate', rate, 'burst', '128kb', 'latency', '50ms'],
                          capture_output=True).returncode == 0


def upload(seed):
    """Returns the output, the MiB sent, and the chunks that were queried."""
    done = subprocess.run(['ip', 'netns', 'exec', THERE, OUTBOARD, 'run', '--stats', '--server', 'tcp://10.201.77.1:14800', '--', PROGRAM, str(MIB), str(seed),
                           str(MIB << 20), 'some'], capture_output=True, text=True, timeout=120, env=ENV)
    sent = re.search(r'calls sent in \d+ frames \(([\d.]+) (\w+)\)', done.stderr)
    had = re.search(r'the server had (\d+) of (\d+) chunks', done.stderr)
    size = float(sent.group(1)) * {'bytes': 1 / (1 << 20), 'KiB': 1 / 1024, 'MiB': 1, 'GiB': 1024}[sent.group(2)] if sent else -1
    return done.stdout, size, [int(n) for n in had.groups()] if had else None, done.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(['ip', 'netns', 'exec', HERE, SERVER, '--listen', 'tcp://10.201.77.1:14800', '--insecure', '--driver', 'soft', '--cache', folder],
                                  stderr=subprocess.PIPE, text=True, env=ENV)
        try:
            while 'listening' not in server.stderr.readline():
                if server.poll() is not None:
                    raise SystemExit('the server did not start')
            first, sent, named, err = upload(1)
            check('a slow link: the first start names everything and sends it', sent >= MIB and named == [0, 4 * MIB], (sent, named, err))
            again, sent, named, err = upload(1)
            check('the second start sends less than 5 %', again == first and 0 < sent < 0.05 * MIB and named == [4 * MIB, 4 * MIB], (sent, named, err))
        finally:
            server.terminate()
            server.wait(20)
    finish()


try:
    if not link() or not slow('400mbit'):
        print('no network namespaces, or no tc')
        sys.exit(77)
    main()
finally:
    for name in HERE, THERE:
        ip('netns', 'del', name)
