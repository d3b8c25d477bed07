# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A client connects to every kind of wrong server. It must report the cause within its time-out,
return a CUDA error, and never hang or crash.

    bad_servers.py OUTBOARD INIT_PROGRAM
"""
import os
import struct
import subprocess
import sys
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from listening import Listener, Nobody

OUTBOARD, PROGRAM = sys.argv[1:3]
NO_DEVICE, UNAVAILABLE = 100, 46
MAGIC, VERSION = 0x4452424F, 1
TIMEOUT = 2  # the client's time-out in seconds; a case may take this plus a margin
MARGIN = waiting.AT_ONCE


def frame(payload, magic=MAGIC, version=VERSION, kind=4, flags=0, size=None, count=0, sequence=0, raw=None):
    padded = payload + bytes(-len(payload) % 8)
    return struct.pack('<IBBHIIQQQII', magic, version, kind, flags, len(padded) if size is None else size, count, sequence, 0, 0,
                       len(payload) if raw is None else raw, 0) + padded


def text(value):
    return bytes([0xd9, len(value)]) + value.encode()


def refused(message):
    return b'\x83' + text('type') + b'\x03' + text('code') + b'\x2c' + text('text') + text(message)


def read_hello(connection):
    connection.settimeout(5)
    try:
        connection.recv(65536)
    except OSError:
        pass


def send_then_close(data):
    def serve(connection):
        read_hello(connection)
        connection.sendall(data)
        connection.close()
    return serve


def send_and_stay(data):
    def serve(connection):
        read_hello(connection)
        connection.sendall(data)
    return serve


def slow(data):
    def serve(connection):
        read_hello(connection)
        for byte in data:
            connection.sendall(bytes([byte]))
            waiting.let_pass(0.3, 'slower than the client waits')
    return serve


CASES = [
    # name, what the server does, words that the message must contain
    ('accepts and never answers', lambda c: None, 'did not answer'),
    ('closes at once', lambda c: c.close(), 'not an Outboard server'),
    ('an HTTP server', send_then_close(b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n' + b' ' * 64), 'not an Outboard server'),
    ('zeros for a hello', send_and_stay(bytes(4096)), 'not an Outboard server'),
    ('0xff for a hello', send_and_stay(b'\xff' * 4096), 'not an Outboard server'),
    ('another protocol version', send_and_stay(frame(refused('x'), version=2)), 'another protocol version'),
    ('half a frame header, then silence', send_and_stay(frame(refused('x'))[:20]), 'did not answer'),
    ('half a frame header, then closed', send_then_close(frame(refused('x'))[:20]), 'closed'),
    ('half a map, then silence', send_and_stay(frame(refused('because'))[:-8]), 'did not answer'),
    ('a map of four gigabytes', send_and_stay(frame(b'\xdf\xff\xff\xff\xff')), 'protocol'),
    ('a frame of four gigabytes', send_and_stay(frame(b'', size=0xfffffff8, raw=0xfffffff8)), 'protocol'),
    ('a frame of replies for a hello', send_and_stay(frame(bytes(32), kind=2, count=1, sequence=1)), 'protocol'),
    ('a map of the wrong type', send_and_stay(frame(b'\x81' + text('type') + b'\x06')), 'protocol'),
    ('not a map', send_and_stay(frame(b'\x93\x01\x02\x03')), 'protocol'),
    ('a welcome without a session', send_and_stay(frame(b'\x81' + text('type') + b'\x02')), 'protocol'),
    ('a refusal', send_then_close(frame(refused('the house is full'))), 'the house is full'),
    ('a byte every 0.3 s', slow(frame(refused('x'))), 'did not answer'),
]


def run(url):
    env = dict(os.environ, OUTBOARD_TIMEOUT=str(TIMEOUT))
    began = time.monotonic()
    done = subprocess.run([OUTBOARD, 'run', '--server', url, '--', PROGRAM], env=env, capture_output=True, text=True, timeout=waiting.LONG)
    return done, time.monotonic() - began


def judge(name, url, words, bad):
    done, took = run(url)
    results = done.stdout.split()
    faults = []
    if done.returncode != 0:
        faults.append(f'exit code {done.returncode}')
    if len(results) != 2 or results[0] not in (str(NO_DEVICE), str(UNAVAILABLE)) or results[1] == '0':
        faults.append(f'results {results}')
    if words not in done.stderr:
        faults.append(f'the message lacks "{words}": {done.stderr.strip()[:300]}')
    if took > TIMEOUT + MARGIN:
        faults.append(f'took {took:.1f} s')
    print(f'{"ok  " if not faults else "FAIL"} {name} ({took:.1f} s){": " + "; ".join(faults) if faults else ""}', flush=True)
    if faults:
        bad.append(name)
    # `outboard check` must report the same cause.
    check = subprocess.run([OUTBOARD, 'check', '--server', url], capture_output=True, text=True, timeout=waiting.LONG) if name in ('a refusal', 'an HTTP server', 'no server') else None
    if check and (check.returncode != 1 or len(check.stderr) < 20):
        print(f'FAIL {name}: check says {check.returncode} {check.stderr}')
        bad.append(name + ' (check)')


def main():
    bad = []
    for name, serve, words in CASES:
        server = Listener(serve)
        judge(name, 'tcp:' + server.address, words, bad)
        server.close()
    nobody = Nobody()
    judge('no server', nobody.url, 'cannot reach', bad)
    judge('no such socket', 'unix:/nowhere/at/all', 'cannot reach', bad)
    judge('no such host', 'tcp://no-such-host.invalid:1', 'cannot reach', bad)
    done = subprocess.run([OUTBOARD, 'run', '--server', 'http://x', '--', PROGRAM], capture_output=True, text=True, timeout=waiting.LONG)
    if done.returncode != 2 or 'tcp://' not in done.stderr:
        bad.append('a wrong address')
    print(f'{len(CASES) + 4 - len(bad)} right, {len(bad)} wrong')
    return 1 if bad else 0


sys.exit(main())
