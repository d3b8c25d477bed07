# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A balancer whose answers a test decides, for tests of what asks it (protocol/pool.h).

    def answer(link, message):            # called for each message of a connection
        link.granted(message, [('gpu1', server.url, '')])

    with Balancer(answer) as balancer:
        ... balancer.url, balancer.heard  # the messages so far, as dictionaries

Messages are dictionaries with the keys of protocol/pool.c. Tickets have no valid signature.
"""
import json
import pathlib
import ssl
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'e2e'))
import frames
from listening import Listener

ASK, QUEUED, GRANT, REFUSED, CANCEL, QUERY, ANSWER, COMMAND, DONE = range(64, 73)
CAPACITY, LATER, DENIED, INVALID, FAULT = range(1, 6)
INTENT = 17
PIECE = 65536  # bytes of one ANSWER


def ticket(reservation, server, devices, memory=0):
    """A signed ticket in form, with zeros for the signature."""
    now = int(time.time())
    return b'OBT1' + bytes(72) + frames.pack({'reservation': reservation, 'server': server, 'incarnation': 1, 'fence': 1, 'tenant': 'lab', 'issued': now,
                                              'expires': now + 60, 'linger': 10, 'memory': memory, 'share': 1000000, 'priority': 2, 'exclusive': 0,
                                              'devices': devices})


class Link:
    """One connection."""

    def __init__(self, sock):
        self.sock = sock

    def send(self, kind, **fields):
        self.sock.sendall(frames.Frame(payload=frames.pack({'type': kind, **fields})).bytes())

    def receive(self):
        frame = frames.Frame.read(self.sock)
        return frames.unpack(frame.payload[:frame.raw_size])

    def queued(self, position, length, estimate=0, reason=''):
        self.send(QUEUED, position=position, length=length, estimate=estimate, reason=reason)

    def refused(self, code, text, retry=0):
        self.send(REFUSED, code=code, retry=retry, text=text)

    def done(self, text='', code=0):
        self.send(DONE, code=code, retry=0, text=text)

    def granted(self, ask, parts, devices=1, **other):
        """parts: (server, addresses, pin) each."""
        made = [{'server': server, 'urls': urls, 'pin': pin,
                 'ticket': ticket(ask['id'], server, [bytes([n + 1, i + 1] + [0] * 14) for i in range(devices)])} for n, (server, urls, pin) in enumerate(parts)]
        self.send(GRANT, **{'id': ask['id'], 'tenant': 'lab', 'parts': made, **other})

    def answer(self, document):
        """A JSON document, or bytes, in pieces."""
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        pieces = [data[i:i + PIECE] for i in range(0, len(data), PIECE)] or [b'']
        for i, piece in enumerate(pieces):
            self.send(ANSWER, more=int(i + 1 < len(pieces)), bytes=piece)


class Balancer:
    """answer(link, message) is called in a thread of the connection. `files`: (certificate, key)
    makes it a tls:// address. path: a Unix socket."""

    def __init__(self, answer, files=None, path=None):
        self.answer, self.heard, self.links = answer, [], []
        self.context = None
        if files:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*files)
        self.listener = Listener(self.serve, path)
        self.url = ('unix:' if path else 'tls:' if files else 'tcp:') + self.listener.address

    def serve(self, sock):
        preface = frames.receive(sock, frames.PREFACE)
        if preface[6] != INTENT:
            return
        if self.context:
            sock = self.context.wrap_socket(sock, server_side=True)
        link = Link(sock)
        self.links.append(link)
        while True:
            message = link.receive()
            self.heard.append(message)
            self.answer(link, message)

    def of(self, kind):
        return [message for message in list(self.heard) if message['type'] == kind]

    def close(self):
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
