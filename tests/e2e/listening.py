# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Listening sockets for test proxies and fake servers, and an address at which nobody listens.

Closing a socket does not wake a thread that is blocked in accept on it. Any signal then restarts the call with the same descriptor number, which may have
become the next listener's, so that the old thread takes that one's connection. tools/dev/check-style therefore refuses accept elsewhere in tests.
"""
import contextlib
import socket
import threading

import waiting


def end(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class Listener:
    """Gives every connection to serve(connection), in a thread of its own, until close().

    path: of a unix socket; without one a free port of 127.0.0.1. .address: what follows the scheme and its colon in a URL. .open: the connections so far.
    """

    def __init__(self, serve, path=None):
        if path:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.bind(path)
            self.socket.listen(64)
            self.address = path
        else:
            self.socket = socket.create_server(('127.0.0.1', 0), backlog=64)
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
        """No thread waits for the socket afterwards, and all connections are ended."""
        end(self.socket)
        self.thread.join(waiting.LONG)
        self.socket.close()
        for connection in self.open:
            end(connection)
            connection.close()


class Nobody:
    """An address that refuses connections for as long as this lives: bound, so that no other program gets it, and not listening."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(('127.0.0.1', 0))
        self.url = 'tcp://127.0.0.1:%d' % self.socket.getsockname()[1]
