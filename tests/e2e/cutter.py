# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A proxy between clients and a server that breaks connections at any time: it closes or resets
them, or keeps them open but forwards nothing."""
import contextlib
import os
import random
import socket
import struct
import threading

import waiting
from listening import Listener

PREFACE = 16
MODES = ('fin', 'rst', 'half')


def dial(url, timeout=10):
    scheme, rest = url.split(':', 1)
    if scheme in ('unix', 'shm'):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(timeout)
        s.connect(rest)
    else:
        host, port = rest.lstrip('/').rsplit(':', 1)
        s = socket.create_connection((host, int(port)), timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.settimeout(None)
    return s


def receive(source, size):
    """Receives bytes, and the descriptors that come with them on a Unix socket."""
    if source.family != socket.AF_UNIX:
        return source.recv(size), []
    data, fds, _, _ = socket.recv_fds(source, size, 4)
    return data, fds


def send(sink, data, fds):
    if fds:
        sent = socket.send_fds(sink, [data], fds)
        for fd in fds:
            os.close(fd)
        data = data[sent:]
    sink.sendall(data)


class Link:
    """One connection through the proxy. kind: new (a session's first), data, control or stripe
    (joins)."""

    def __init__(self, proxy, client):
        self.proxy, self.client, self.server = proxy, client, None
        self.kind, self.budget, self.mode, self.dead, self.answered = None, None, 'fin', False, False
        # True: this breaks as soon as the client sends anything after the answer to its join.
        self.fragile = proxy.fragile
        self.lock = threading.Lock()

    def run(self):
        try:
            head, fds = b'', []
            while len(head) < PREFACE:  # no more than that: later bytes may come with descriptors
                part = self.client.recv(PREFACE - len(head))
                if not part:
                    return self.client.close()
                head += part
            # Under TLS the purpose of a join is not visible: each counts as one for data.
            secret = self.proxy.url.startswith('tls')
            if head[6] == 2 and not secret:
                while b'code' not in head:
                    part, more = receive(self.client, 65536)
                    fds += more
                    if not part:
                        return self.client.close()
                    head += part
            self.kind = 'new' if head[6] == 1 else 'data' if secret or b'\xa4code\x01' in head else \
                'stripe' if b'\xa4code\x02' in head else 'control'
            self.proxy.plan(self)
            self.server = dial(self.proxy.target)
            self.server.sendall(head[:PREFACE])
        except OSError:
            self.client.close()
            return None
        self.proxy.links.append(self)
        threading.Thread(target=self.forward, args=(self.server, self.client), daemon=True).start()
        return self.forward(self.client, self.server, head[PREFACE:], fds)

    def forward(self, source, sink, first=b'', fds=()):
        data = first
        try:
            while not self.dead:
                if not data:
                    data, fds = receive(source, 1 << 18)
                if not data or self.dead:
                    break
                if self.fragile and self.answered and source is self.client:
                    return self.cut('rst')
                with self.lock:
                    room = len(data) if self.budget is None else min(len(data), self.budget)
                    if self.budget is not None:
                        self.budget -= room
                    last = self.budget == 0
                self.answered = self.answered or source is self.server
                send(sink, data[:room], fds)
                self.proxy.bytes += room
                if last:
                    return self.cut(self.mode)
                data = b''
        except OSError:
            pass
        if not self.dead:
            self.cut('fin', counted=False)
        return None

    def cut(self, mode, counted=True):
        with self.lock:
            if self.dead:
                return
            self.dead = True
        if counted:
            self.proxy.note(self, mode)
        if self in self.proxy.links:
            self.proxy.links.remove(self)
        if mode in ('half', 'split'):
            self.proxy.kept.append(self)  # open, but not read
        for s in {'half': (), 'split': (self.server,)}.get(mode, (self.client, self.server)):
            if mode == 'rst':
                with contextlib.suppress(OSError):
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                s.close()


class Proxy:
    """cuts: the number of breaks at most. mean: bytes between two breaks. half: the share of
    connections that stay open but dead. control: break control connections, too. kinds: which
    other kinds to break."""

    def __init__(self, listen, target, cuts=0, mean=1 << 20, half=0.0, control=True, seed=1, kinds=('new', 'data', 'stripe')):
        self.kept = []
        self.fragile = False
        self.target, self.cuts_left, self.mean, self.half, self.control = target, cuts, mean, half, control
        self.dice, self.kinds = random.Random(seed), kinds
        self.lock = threading.Lock()
        self.links, self.bytes, self.made, self.refusing = [], 0, {}, False
        # Over shared memory the bytes do not pass the proxy: connections break by time.
        self.shared = listen.startswith('shm:')
        scheme, path = listen.split(':', 1)
        self.listener = Listener(self.carry, path if scheme in ('unix', 'shm') else None)
        self.url = f'{scheme}:{self.listener.address}'
        if control and cuts:
            threading.Thread(target=self.cut_by_clock, args=('control',), daemon=True).start()
        if self.shared and cuts:
            threading.Thread(target=self.cut_by_clock, args=('new', 'data'), daemon=True).start()

    def carry(self, client):
        if self.refusing:
            client.close()
        else:
            Link(self, client).run()

    def plan(self, link):
        """Decides when and how this connection breaks. A session's first connection survives its
        hello; a later one may break during its join."""
        with self.lock:
            if not self.cuts_left or link.kind not in self.kinds or (self.shared and (link.kind == 'new' or self.dice.random() > 0.15)):
                return
            link.budget = int(self.dice.expovariate(1 / self.mean)) + 1
            if link.kind == 'new':
                link.budget += 32 << 10
            elif self.shared or self.dice.random() < 0.15:
                link.budget = self.dice.randrange(1, 400)
            link.mode = 'half' if self.dice.random() < self.half else self.dice.choice(MODES[:2])

    def note(self, link, mode):
        with self.lock:
            self.cuts_left = max(self.cuts_left - 1, 0)
            key = ('data ' if link.kind == 'new' else link.kind + ' ') + mode
            self.made[key] = self.made.get(key, 0) + 1

    def cut_by_clock(self, *kinds):
        while self.cuts_left:
            waiting.let_pass(self.dice.uniform(0.02, 0.12 if self.shared else 0.5), 'cuts fall on other places of the work; none must change the result')
            for link in list(self.links):
                if link.kind in kinds and self.cuts_left and (link.answered or link.kind != 'new'):
                    link.cut('half' if self.dice.random() < self.half else self.dice.choice(MODES[:2]))

    def cut_all(self, mode='fin', kinds=('new', 'data', 'control', 'stripe')):
        for link in list(self.links):
            if link.kind in kinds:
                link.cut(mode)

    def total(self):
        return sum(self.made.values())

    def close(self):
        self.cuts_left = 0
        self.cut_all()
        self.listener.close()
