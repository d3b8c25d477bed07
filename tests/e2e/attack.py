# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Thousands of hostile connections of all kinds. Meanwhile an honest client must get a session at
once, and a client must be able to resume its session. The attack must take no place and no worker,
and must not grow the audit log without limit.

    attack.py OUTBOARD SERVER [CONNECTIONS] [SECONDS]

CONNECTIONS (default 2,000) are made in SECONDS (default 6) from ten addresses of this machine,
which the server is configured to count like remote ones. The full run, by hand: 20000 20.
"""
import contextlib
import json
import os
import random
import re
import resource
import selectors
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import Server, bad, check, children

ATTACKS = sys.argv[1] == 'attack'  # a child of this process
OUTBOARD, SERVER = sys.argv[1:3]
CONNECTIONS = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
SECONDS = float(sys.argv[4]) if len(sys.argv) > 4 else 6
ADDRESSES = [f'127.0.0.{i}' for i in range(2, 12)]  # honest clients come from 127.0.0.1
HOLD = 600      # connections that each attacking process keeps open at a time
SESSIONS = 64
KINDS = ('silent', 'half a preface', 'a preface', 'TLS garbage', 'TLS, then silence', 'a wrong token', 'a join of nothing', 'a wrong join', 'questions')
os.environ.pop('OUTBOARD_TOKEN', None)


def preface(intent, route=0):
    return struct.pack('<IHBBQ', 0x4452424f, 2, intent, 0, route)


def control(**keys):
    """A control message: one msgpack map of short texts, small numbers and bytes."""
    def pack(value):
        if isinstance(value, str):
            return bytes([0xd9, len(value)]) + value.encode()
        if isinstance(value, bytes):
            return bytes([0xc4, len(value)]) + value
        return b'\xcf' + struct.pack('>Q', value)
    body = bytes([0x80 | len(keys)]) + b''.join(pack(key) + pack(value) for key, value in keys.items())
    raw = len(body)
    body += bytes(-raw % 8)
    return struct.pack('<IBBHIIQQQII', 0x4452424f, 1, 4, 0, len(body), 0, 0, 0, 0, raw, 0) + body


WRONG_HELLO = control(type=1, version='0', program='x', token='obt_01234567_' + '0' * 64)
WRONG_JOIN = control(type=4, code=1, secret=bytes(16), received=0, attempt=1 << 40)


class Peer:
    """One hostile connection, driven without blocking. Over TLS its bytes come from a state machine
    in memory."""

    def __init__(self, kind, source, address, secure, route):
        self.kind = kind
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.bind((source, 0))
        self.tls, self.hello_sent = None, False
        self.secure = secure
        self.first = {'silent': b'', 'half a preface': preface(1)[:9], 'a preface': preface(1), 'TLS garbage': preface(1) + bytes([22, 3, 1, 2, 0]) + os.urandom(517),
                      'TLS, then silence': preface(1), 'a wrong token': preface(1), 'a join of nothing': preface(2, random.getrandbits(63) | 1),
                      'a wrong join': preface(2, route) + (b'' if secure else WRONG_JOIN), 'questions': preface(16, 1)}[kind]
        if secure and kind in ('TLS, then silence', 'a wrong token'):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
            self.tls = context.wrap_bio(self.into, self.out)
        elif kind == 'a wrong token':
            self.first += WRONG_HELLO
        with contextlib.suppress(BlockingIOError):
            self.socket.connect(address)

    def begin(self):
        """Sends the first bytes after the connection is made."""
        data = self.first
        if self.tls:
            data += self.turn()
        if data:
            self.socket.send(data)

    def turn(self):
        try:
            self.tls.do_handshake()
            if self.kind == 'a wrong token' and not self.hello_sent:
                self.tls.write(WRONG_HELLO)
                self.hello_sent = True
        except ssl.SSLWantReadError:
            pass
        return self.out.read()

    def came(self):
        """Handles received bytes. Returns False if the connection has ended."""
        data = self.socket.recv(65536)
        if not data:
            return False
        if self.kind == 'questions':
            self.socket.send(self.first)
        elif self.tls and not self.hello_sent and data[:1] != b'O':
            self.into.write(data)
            answer = self.turn()
            if answer:
                self.socket.send(answer)
        return True


def attack(address, secure, route, connections, seconds, seed):
    """Runs in a separate process. Reports how many connections of each kind it made."""
    dice = random.Random(seed)
    selector, made, began, held = selectors.DefaultSelector(), {}, time.monotonic(), []
    total = 0
    while time.monotonic() < began + seconds or total < connections:
        due = min(connections, int(connections * (time.monotonic() - began) / seconds) + 1)
        while total < due:
            kind = KINDS[total % len(KINDS)]
            try:
                peer = Peer(kind, dice.choice(ADDRESSES), address, secure, route)
                selector.register(peer.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)
            except OSError:
                break  # no descriptors or no ports left: the oldest connections are closed below
            held.append(peer)
            made[kind] = made.get(kind, 0) + 1
            total += 1
        for key, events in selector.select(0.01):
            peer = key.data
            try:
                if events & selectors.EVENT_WRITE:
                    peer.begin()
                    selector.modify(peer.socket, selectors.EVENT_READ, peer)
                alive = not events & selectors.EVENT_READ or peer.came()
            except (OSError, ssl.SSLError):
                alive = False
            if not alive:
                selector.unregister(peer.socket)
                peer.socket.close()
        while len(held) > HOLD:
            peer = held.pop(0)
            if peer.socket.fileno() >= 0:
                selector.unregister(peer.socket)
                peer.socket.close()
    print(json.dumps(made))


class Attack:
    """Several attacking processes, so that Python is not the bottleneck."""

    def __init__(self, url, secure, route, connections, seconds, n=2):
        address = url.split('://')[1].rsplit(':', 1)
        self.children = [subprocess.Popen([sys.executable, __file__, 'attack', json.dumps([(address[0], int(address[1])), secure, route, connections // n, seconds, i])],
                                          stdout=subprocess.PIPE, text=True) for i in range(n)]

    def over(self):
        return all(child.poll() is not None for child in self.children)

    def made(self):
        made = {}
        for child in self.children:
            for kind, count in json.loads(child.communicate(timeout=300)[0]).items():
                made[kind] = made.get(kind, 0) + count
        return made


def honest(url, **env):
    """Returns the seconds that a program takes to get a session, and whether it got one."""
    began = time.monotonic()
    done = subprocess.run([OUTBOARD, 'check', '--server', url], capture_output=True, text=True, timeout=60, env=dict(os.environ, OUTBOARD_TIMEOUT='60', **env))
    found = re.search(r'connected in ([0-9.]+) ms, session in ([0-9.]+) ms', done.stdout)
    return time.monotonic() - began, (float(found[1]) + float(found[2])) / 1000 if found else None, done


def route_of(url, **keys):
    """Opens a session over unencrypted TCP without the client library. Returns it with its route
    and secret."""
    host, port = url.split('://')[1].rsplit(':', 1)
    s = socket.create_connection((host, int(port)), 10)
    s.sendall(preface(1) + control(type=1, version='0', program='owner', grace=60, **keys))
    head = s.recv(48, socket.MSG_WAITALL)
    body = s.recv(struct.unpack_from('<I', head, 8)[0], socket.MSG_WAITALL)
    at = body.index(b'\xa5route') + 6
    route = int.from_bytes(body[at + 1:at + 9], 'big')
    at = body.index(b'\xa6secret') + 7
    return s, route, body[at + 2:at + 18]


def join(url, route, secret, attempt):
    host, port = url.split('://')[1].rsplit(':', 1)
    began = time.monotonic()
    s = socket.create_connection((host, int(port)), 10)
    s.sendall(preface(2, route) + control(type=4, code=1, secret=secret, received=0, attempt=attempt))
    head = s.recv(48, socket.MSG_WAITALL)
    body = s.recv(struct.unpack_from('<I', head, 8)[0], socket.MSG_WAITALL) if len(head) == 48 else b''
    return s, b'\xa4type\x05' in body, time.monotonic() - began


def crowd(name, server, secure, connections, seconds, owner=None, **env):
    """Runs the attack and honest clients at the same time; with `owner` also a session that is
    resumed repeatedly."""
    alone = min(honest(server.url, **env)[1] or 60 for _ in range(3))
    before = len(children(server.process.pid))
    took, joined, failed, most, attempt = [], [], [], 0, 1
    hostile = Attack(server.url, secure, owner[1] if owner else 1, connections, seconds)
    while not hostile.over():
        whole, session, done = honest(server.url, **env)
        took.append(session)
        if session is None or done.returncode:
            failed.append(done.stdout + done.stderr)
        if owner:
            attempt += 1
            s, fine, seconds_taken = join(server.url, owner[1], owner[2], attempt)
            joined.append(seconds_taken)
            owner[0].close()
            owner[0] = s
            if not fine:
                failed.append('the owner was not let in')
        most = max(most, len(children(server.process.pid)))
    made = hostile.made()
    slowest = max((t for t in took if t is not None), default=None)
    check(f'{name}: {len(took)} honest clients, {len(joined)} resumed connections among {sum(made.values())} of others: each got in', not failed and took, failed[:3])
    print(f'    alone {alone * 1000:.1f} ms, slowest beside the others {slowest * 1000 if slowest else -1:.1f} ms, slowest resumed {max(joined, default=0) * 1000:.1f} ms; {made}')
    return slowest, max(joined, default=0), most - before


def size_of(folder, name):
    return sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder) if f.startswith(name))


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as folder:
        tokens, cert, key = f'{folder}/tokens', f'{folder}/cert', f'{folder}/key'
        token = subprocess.run([OUTBOARD, 'token', 'create', '--file', tokens], capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run([OUTBOARD, 'cert', '--cert', cert, '--key', key], check=True, stdout=subprocess.DEVNULL)
        common = ('--driver', 'null', '--count-local', '--max-sessions', str(SESSIONS), '--tokens', tokens, '--hello-timeout', '60')
        slowest = []
        for name, url, secure in (('tls', 'tls://127.0.0.1:0', True), ('tcp', 'tcp://127.0.0.1:0', False)):
            server = Server(SERVER, *common, '--audit', f'{folder}/audit-{name}', '--tls-cert', cert, '--tls-key', key, listen=url)
            owner = None
            if not secure:
                owner = list(route_of(server.url, token=token))
            session, resumed, workers = crowd(name, server, secure, CONNECTIONS // 2, SECONDS / 2, owner, OUTBOARD_TOKEN=token, OUTBOARD_TLS_CA=cert)
            slowest += [session or 60, resumed]
            check(f'{name}: no worker for any of them', workers <= 4, workers)
            written = size_of(folder, f'audit-{name}')
            check(f'{name}: the audit log has grown by {written} bytes', written < 256 << 10, written)
            if owner:
                owner[0].close()
            check(f'{name}: the server stops', server.stop())
        # AT_ONCE is much less than the 60 s after which the server closes silent connections. The
        # measured values are printed above.
        check('nobody honest waited for a time-out', max(slowest) < waiting.AT_ONCE, slowest)
    print(f'{len(bad)} wrong')
    return 1 if bad else 0


if ATTACKS:
    attack(*[tuple(x) if isinstance(x, list) else x for x in json.loads(sys.argv[2])])
else:
    sys.exit(main())
