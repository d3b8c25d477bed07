# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""How a server keeps sessions within their shares (--share-by), on the software device, whose green
contexts limit the threads that run kernels. With `ratio`, a measurement: how much work a quarter and
three quarters get done beside each other, which depends on how the processors are shared.

    kept_shares.py OUTBOARD SERVER PARTITION_PROGRAM SOFTWARE_DEVICE_FOLDER DRIVER_DOUBLE [ratio]
"""
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish, run

OUTBOARD, SERVER, PROGRAM, SOFT, DOUBLE = sys.argv[1:6]
# 64 multiprocessors, in parts of 8, are 8 threads
DEVICE = {'OUTBOARD_SOFT_SMS': '64', 'OUTBOARD_SOFT_THREADS': '8', 'OUTBOARD_SOFT_DEVICES': '2'}


def top(server, *how):
    return subprocess.run([OUTBOARD, 'top', '--once', '--server', server.url, *how], capture_output=True, text=True, env=ENV).stdout


def listed(server):
    return json.loads(top(server, '--json'))['listed']


class Work:
    """A session that works until it is told to end; .done() grids have ended."""

    def __init__(self, server, share, where, steps='2000', env=ENV):
        self.file = tempfile.NamedTemporaryFile()
        os.truncate(self.file.name, 16)
        self.shared = mmap.mmap(self.file.fileno(), 16)
        self.process = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--share', share, '--', PROGRAM, 'work', self.file.name, where, steps],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    def done(self):
        return struct.unpack_from('Q', self.shared)[0]

    def end(self):
        struct.pack_into('Q', self.shared, 8, 1)
        out, err = self.process.communicate(timeout=waiting.LONG)
        return out + err


def beside(measure):
    """A quarter and three quarters, at the same time, in each kind of stream."""
    with Server(SERVER, '--driver', 'soft', '--warm', '2', '--share-by', 'green', '--measure', 'yes', env=DEVICE) as s:
        for where in 'default', 'apart':
            small, large = (Work(s, share, where, '60000' if measure else '2000') for share in ('0.25', '0.75'))
            both = (small, large)
            waiting.until(lambda: all(w.done() > 2 for w in both) or any(w.process.poll() is not None for w in both))
            before = [w.done() for w in both]
            waiting.until(lambda: all(w.done() >= b + (8 if measure else 1) for w, b in zip(both, before)) or any(w.process.poll() is not None for w in both))
            did = [w.done() - b for w, b in zip(both, before)]
            told, text = listed(s), top(s)
            offered = [device['share_by'] for device in json.loads(top(s, '--json'))['devices']]
            check('every device tells what it offers', offered == [['throttle', 'green']] * 2, offered)
            said = [w.end() for w in both]
            if measure:
                print(f'    {where}: a quarter did {did[0]}, three quarters did {did[1]}: {did[1] / max(did[0], 1):.2f} times as much')
            check(f'{where}: both get work done', all(did), did)
            check(f'{where}: the sessions say how their shares are kept', sorted((x['share'], x['share_by']) for x in told) == [(0.25, 'green'), (0.75, 'green')], told)
            check(f'{where}: no launch was held back', all(x['throttled_seconds'] == 0 for x in told), told)
            check(f'{where}: top shows it', text.count('share by green') == 2, text)
            check(f'{where}: both end well', said == ['work: ok\n'] * 2, said)
            waiting.until(lambda: not listed(s))


def held():
    """What a green context does not reach is held back: graphs, and contexts of the program's own."""
    # Switched off, a graph's kernels are launched one by one, and so in the green context.
    whole = {name: value for name, value in ENV.items() if name != 'OUTBOARD_OPT'}
    for where in 'graph', 'further':
        with Server(SERVER, '--driver', 'soft', '--share-by', 'green', env=DEVICE) as s:
            work = Work(s, '0.25', where, env=whole)
            waiting.until(lambda: work.process.poll() is not None or any(x['throttled_seconds'] > 0 for x in listed(s)), every=0.2)
            told = listed(s)
            check(f'{where}: launches are held back', [x['share_by'] for x in told] == ['green'] and told[0]['throttled_seconds'] > 0, told)
            said = work.end()
            check(f'{where}: the program ends well', said == 'work: ok\n', said)


def never_ends(server):
    """Blocking streams are one stream in a green context, so this program waits for ever, as the manual
    says. Its end is bounded: the server's worker ends with the program."""
    program = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, 'waits'], stdout=subprocess.PIPE, text=True, env=ENV)
    check('waits: it has queued its work', program.stdout.readline() == 'queued\n')
    # What waits in the device is executed in turn: when another session has worked, it has had its.
    out, _ = run(OUTBOARD, server.url, PROGRAM, 'order')
    check('waits: another session works beside it', out == 'order: ok\n', out)
    alone = waiting.until(lambda: len(listed(server)) == 1)
    check('waits: it still waits', alone and program.poll() is None, listed(server))
    program.terminate()
    program.communicate(timeout=waiting.LONG)
    check('waits: its session ends with it', waiting.until(lambda: not listed(server)), listed(server))


def right():
    """A session in a part of its device behaves as one without."""
    with Server(SERVER, '--driver', 'soft', '--share-by', 'green', '--share', '0.25', env=DEVICE) as s:
        for what in 'order', 'reset':
            out, done = run(OUTBOARD, s.url, PROGRAM, what)
            check(f'{what} in a green context', out == f'{what}: ok\n', out + done.stderr)
        for device in '0', '1':
            out, done = run(OUTBOARD, s.url, PROGRAM, 'units', device)
            check(f'device {device}: a program that divides it has its part to divide, before it has a context too, and every answer is that', out == 'units 16 16 16\n', out + done.stderr)
        out, done = run(OUTBOARD, s.url, PROGRAM, 'cooperative')
        small = subprocess.run([PROGRAM, 'cooperative'], capture_output=True, text=True, env={**ENV, 'LD_LIBRARY_PATH': SOFT, 'OUTBOARD_SOFT_SMS': '16'}, timeout=waiting.LONG).stdout
        check('a cooperative grid fits as on a device of that size', out == small and 'one more: 720' in out, (out, small, done.stderr))
        never_ends(s)
    with Server(SERVER, '--driver', 'soft', '--share-by', 'green', env=DEVICE) as s:
        out, _ = run(OUTBOARD, s.url, PROGRAM, 'units')
        check('without a share it is the device', out == 'units 64 64 64\n', out)
    with Server(SERVER, '--driver', 'soft', '--share', '0.25', env=DEVICE) as s:
        out, done = run(OUTBOARD, s.url, PROGRAM, 'waits')
        check('throttle: two blocking streams may wait for each other', out == 'queued\nwaits: ok\n', out + done.stderr)
    for options in ('--share', '0.25'), ('--share', '0.25', '--share-by', 'green'), ('--measure', 'yes'):
        with Server(SERVER, '--driver', 'soft', *options, env=DEVICE) as s:
            out, done = run(OUTBOARD, s.url, PROGRAM, 'waits', '300')
            check(f'{options}: launches may wait for what comes after many others', out == 'queued\nwaits: ok\n', out + done.stderr)


def mps_denied():
    """Something listens where MPS's daemon would, and the driver knows nothing of it."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as control:
        control.bind(f'{folder}/control')
        control.listen()
        env = {'CUDA_MPS_PIPE_DIRECTORY': folder}
        with Server(SERVER, '--driver', DOUBLE, '--share', '0.5', '--share-by', 'mps', env=env) as s:
            check('MPS that the driver does not confirm is not used', s.line('shares are not kept by mps: .*MPS on device 0'), s.lines)
            check('and not offered', [d['share_by'] for d in json.loads(top(s, '--json'))['devices']] == [['throttle']], top(s, '--json'))
        with Server(SERVER, '--driver', DOUBLE, '--share-by', 'mps', env=env) as s:
            check('MPS needs a share of the server', s.line("shares are not kept by mps: it keeps the share of the server's --share, which is not below 1"), s.lines)


def others():
    """The next method of the list, and why; what a server refuses."""
    small = {'OUTBOARD_SOFT_SMS': '8', 'OUTBOARD_SOFT_THREADS': '8'}
    for options, share, env, by, words in (
            (('--share-by', 'green'), '0.5', small, 'throttle', 'warn: shares are not kept by green: the driver divides 8 multiprocessors into parts of 8'),
            # a device that can be divided, and a share that would be all of it: the session's log alone
            (('--share-by', 'green'), '0.9', DEVICE, 'throttle', "the session's share is not kept by green: the driver divides 64"),
            (('--share-by', 'mps,green'), '0.5', DEVICE, 'green', 'warn: shares are not kept by mps: --driver soft is not a GPU'),
            ((), '0.5', DEVICE, 'throttle', None)):
        with Server(SERVER, '--driver', 'soft', *options, env=env) as s:
            work = Work(s, share, 'default')
            waiting.until(lambda: work.done() or work.process.poll() is not None)
            told = listed(s)
            check(f'{options}: kept by {by}', [x['share_by'] for x in told] == [by], told)
            check(f'{options}: the log says why', s.line(words) if words else not s.said('not kept by'), s.lines[-5:])
            work.end()
            work = Work(s, share, 'default')
            waiting.until(lambda: work.done() or work.process.poll() is not None)
            work.end()
            check(f'{options}: it warns once', sum('warn: ' in line and 'not kept by' in line for line in s.lines) == bool(words and words.startswith('warn')), s.lines)
    # The first event is the one that tries whether launches can be measured.
    with Server(SERVER, '--driver', 'soft', '--share-by', 'green', env={**DEVICE, 'OUTBOARD_FAULT': 'cuEventRecord:1=400'}) as s:
        work = Work(s, '0.5', 'default')
        waiting.until(lambda: work.done() or work.process.poll() is not None)
        told = listed(s)
        check('events that the driver refuses in green contexts: kept by throttle', [x['share_by'] for x in told] == ['throttle'], told)
        check('the log says so', s.line("share is not kept by green: the driver records no event .*CUDA error 400.*held back instead"), s.lines[-5:])
        said = work.end()
        check('and the program ends well', said == 'work: ok\n', said)
    mps_denied()
    for text in '', 'half', 'green,', 'green,green', 'throttle,green,mps,throttle', 'throttle,green', 'none':
        done = subprocess.run([SERVER, '--listen', 'tcp://127.0.0.1:0', '--share-by', text], capture_output=True, text=True, env=ENV, timeout=waiting.LONG)
        check(f'--share-by {text!r} is refused', done.returncode == 2 and 'throttle, green or mps' in done.stderr and 'throttle last' in done.stderr, done.stderr)


if len(sys.argv) > 6:
    beside(True)
else:
    right()
    beside(False)
    held()
    others()
finish()
