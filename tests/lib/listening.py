# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Listening sockets for test proxies and fake servers, and an address that refuses connections.

Closing a socket does not wake a thread that is blocked in accept on it. Any signal then restarts
the call with the same descriptor number, which may have become the next listener's, so that the
old thread accepts a connection meant for that listener. tools/dev/check-style therefore rejects
accept elsewhere in tests.
"""
import contextlib
import pathlib
import random
import socket
import threading

import waiting


def end(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def free_ports(n):
    """Ports of 127.0.0.1 for what cannot choose its own, or comes back at the same one. They are below
    the range from which the kernel takes those of connections and of sockets that choose none, so that
    none of these gets one before it is used."""
    first = int(pathlib.Path('/proc/sys/net/ipv4/ip_local_port_range').read_text().split()[0])
    found = []
    for port in random.sample(range(first // 3, first), 1000):
        with contextlib.suppress(OSError), socket.create_server(('127.0.0.1', port)):
            found.append(port)
        if len(found) == n:
            return found
    raise SystemExit(f'only {len(found)} of {n} free ports were found')


class Listener:
    """Passes every connection to serve(connection) in a separate thread, until close().

    path: of a Unix socket; without it `port` of 127.0.0.1 is used, 0 for a free one. .address: the part of
    the URL after the scheme and its colon. .open: the connections so far.
    """

    def __init__(self, serve, path=None, port=0):
        if path:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.bind(path)
            self.socket.listen(64)
            self.address = path
        else:
            self.socket = socket.create_server(('127.0.0.1', port), backlog=64)
            self.address = '//127.0.0.1:%d' % self.socket.getsockname()[1]
        self.serve, self.open = serve, []
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            if connection.family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.open.append(connection)
            threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection):
        with contextlib.suppress(OSError, EOFError):
            self.serve(connection)

    def close(self):
        """Afterwards no thread waits for the socket, and all connections are closed."""
        end(self.socket)
        self.thread.join(waiting.LONG)
        self.socket.close()
        for connection in self.open:
            end(connection)
            connection.close()


def pass_on(one, other):
    """Sends what comes on one connection to the other, until it ends."""
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


def join(one, other):
    """Passes on in both directions, until `one` ends."""
    threading.Thread(target=pass_on, args=(other, one), daemon=True).start()
    pass_on(one, other)


class Nobody:
    """An address that refuses connections during this object's life: bound, so that no other
    program gets it, but not listening."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(('127.0.0.1', 0))
        self.url = 'tcp://127.0.0.1:%d' % self.socket.getsockname()[1]
