# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""How a server keeps sessions within their shares (--share-by), on the software device, whose green
contexts limit the threads that run kernels.

    kept_shares.py OUTBOARD SERVER PARTITION_PROGRAM
"""
import json
import mmap
import os
import struct
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish, run

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
# 64 multiprocessors, in parts of 8, are 8 threads. They get the same processor time each, however
# many processors there are and whatever else these do.
DEVICE = {'OUTBOARD_SOFT_SMS': '64', 'OUTBOARD_SOFT_THREADS': '8'}


def top(server, *how):
    return subprocess.run([OUTBOARD, 'top', '--once', '--server', server.url, *how], capture_output=True, text=True, env=ENV).stdout


def listed(server):
    return json.loads(top(server, '--json'))['listed']


class Work:
    """A session that works until it is told to end; .done() grids have ended."""

    def __init__(self, server, share, where):
        self.file = tempfile.NamedTemporaryFile()
        os.truncate(self.file.name, 16)
        self.shared = mmap.mmap(self.file.fileno(), 16)
        self.process = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--share', share, '--', PROGRAM, 'work', self.file.name, where],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)

    def done(self):
        return struct.unpack_from('Q', self.shared)[0]

    def end(self):
        struct.pack_into('Q', self.shared, 8, 1)
        out, err = self.process.communicate(timeout=waiting.LONG)
        return out + err


def ratio():
    """A quarter and three quarters, at the same time: the work done, of each kind of stream."""
    with Server(SERVER, '--driver', 'soft', '--warm', '2', '--share-by', 'green', '--measure', 'yes', env=DEVICE) as s:
        for where in 'default', 'apart':
            small, large = Work(s, '0.25', where), Work(s, '0.75', where)
            both = (small, large)
            waiting.until(lambda: all(w.done() > 2 for w in both) or any(w.process.poll() is not None for w in both))
            before = [w.done() for w in both]
            waiting.until(lambda: small.done() >= before[0] + 8 or any(w.process.poll() is not None for w in both))
            did = [w.done() - b for w, b in zip(both, before)]
            told, text = listed(s), top(s)
            said = [w.end() for w in both]
            print(f'    {where}: a quarter did {did[0]}, three quarters did {did[1]}: {did[1] / max(did[0], 1):.2f} times as much')
            check(f'{where}: three quarters do about three times the work of a quarter', 2 < did[1] / max(did[0], 1) < 4.5, did)
            check(f'{where}: the sessions say how their shares are kept', sorted((x['share'], x['share_by']) for x in told) == [(0.25, 'green'), (0.75, 'green')], told)
            check(f'{where}: no launch was held back', all(x['throttled_seconds'] == 0 for x in told), told)
            check(f'{where}: top shows it', text.count('share by green') == 2, text)
            check(f'{where}: both end well', said == ['work: ok\n'] * 2, said)


def held():
    """What a green context does not reach is held back: graphs, and contexts of the program's own."""
    with Server(SERVER, '--driver', 'soft', '--share-by', 'green', env=DEVICE) as s:
        for where in 'graph', 'further':
            work = Work(s, '0.25', where)
            waiting.until(lambda: work.process.poll() is not None or any(x['throttled_seconds'] > 0 for x in listed(s)), every=0.2)
            told = listed(s)
            check(f'{where}: launches are held back', [x['share_by'] for x in told] == ['green'] and told[0]['throttled_seconds'] > 0, told)
            said = work.end()
            check(f'{where}: the program ends well', said == 'work: ok\n', said)


def right():
    """A session in a part of its device behaves as one without."""
    with Server(SERVER, '--driver', 'soft', '--share-by', 'green', '--share', '0.25', env=DEVICE) as s:
        for what in 'order', 'reset':
            out, done = run(OUTBOARD, s.url, PROGRAM, what)
            check(f'{what} in a green context', out == f'{what}: ok\n', out + done.stderr)
        out, _ = run(OUTBOARD, s.url, PROGRAM, 'units')
        check('a program that divides the device has its part to divide', out.startswith('units 16\n'), out)
    with Server(SERVER, '--driver', 'soft', '--share-by', 'green', env=DEVICE) as s:
        out, _ = run(OUTBOARD, s.url, PROGRAM, 'units')
        check('without a share it is the device', out.startswith('units 64\n'), out)


def others():
    """The next method of the list, and why; what a server refuses."""
    small = {'OUTBOARD_SOFT_SMS': '8', 'OUTBOARD_SOFT_THREADS': '8'}
    for options, env, by, words in (
            (('--share-by', 'green'), small, 'throttle', 'not kept by green: the driver divides 8 multiprocessors into parts of 8'),
            (('--share-by', 'mps,green'), DEVICE, 'green', 'MPS is not used: --driver soft is not a GPU'),
            (('--share-by', 'throttle,green'), DEVICE, 'throttle', None), ((), DEVICE, 'throttle', None)):
        with Server(SERVER, '--driver', 'soft', '--share', '0.5', *options, env=env) as s:
            work = Work(s, '0.5', 'default')
            waiting.until(lambda: work.done() or work.process.poll() is not None)
            told = listed(s)
            check(f'{options}: kept by {by}', [x['share_by'] for x in told] == [by], told)
            check(f'{options}: the log says why', s.line(words) if words else not s.said('not kept by'), s.lines[-5:])
            work.end()
    for text in '', 'half', 'green,', 'green,green', 'throttle,green,mps,throttle', 'none':
        done = subprocess.run([SERVER, '--listen', 'tcp://127.0.0.1:0', '--share-by', text], capture_output=True, text=True, env=ENV, timeout=waiting.LONG)
        check(f'--share-by {text!r} is refused', done.returncode == 2 and 'throttle, green or mps' in done.stderr, done.stderr)


right()
ratio()
held()
others()
finish()
