# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A balancer that does what a test says: it registers servers, keeps their heartbeats, gives orders
and makes tickets (protocol/pool.h, protocol/ticket.h). It places and remembers nothing."""
import ctypes
import ctypes.util
import hashlib
import os
import ssl
import struct
import subprocess
import threading
import time

import waiting
from frames import PREFACE, Frame, pack, receive, unpack
from listening import Listener, end, free_ports
from outboard_test import ENV

REFUSED = 67
REGISTER, REGISTERED, BEAT, ORDER, OBEYED = range(73, 78)
VOID, CREDITED, CORDON, DRAIN, KILL, KILL_SESSION, KEEP, END = range(1, 9)
CLAIMED, ENDED, VOIDED = 1, 2, 3
INTENT_POOL = 17
PURPOSE = b'outboard ticket 1\0'
ED25519 = 1087  # OpenSSL's number of the algorithm

crypto = ctypes.CDLL(ctypes.util.find_library('crypto') or 'libcrypto.so.3')
for name in 'EVP_PKEY_new_raw_private_key', 'EVP_MD_CTX_new':
    getattr(crypto, name).restype = ctypes.c_void_p


class Key:
    """A private key of Ed25519."""

    def __init__(self):
        self.key = ctypes.c_void_p(crypto.EVP_PKEY_new_raw_private_key(ED25519, None, os.urandom(32), ctypes.c_size_t(32)))
        public, size = ctypes.create_string_buffer(32), ctypes.c_size_t(32)
        assert crypto.EVP_PKEY_get_raw_public_key(self.key, public, ctypes.byref(size)) == 1
        self.public = public.raw

    def sign(self, data):
        context = ctypes.c_void_p(crypto.EVP_MD_CTX_new())
        signature, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
        assert crypto.EVP_DigestSignInit(context, None, None, None, self.key) == 1
        assert crypto.EVP_DigestSign(context, signature, ctypes.byref(size), data, ctypes.c_size_t(len(data))) == 1
        crypto.EVP_MD_CTX_free(context)
        return signature.raw

    def seal(self, text):
        return b'OBT1' + hashlib.sha256(self.public).digest()[:8] + self.sign(PURPOSE + text) + text


class Balancer:
    """Listens until close(). .members: by server name what the last REGISTER said, .beats: by name
    the heartbeats of the present connection. port: listens there, as after a restart."""

    def __init__(self, name='b', key=None, port=None, skew=0, cordoned=0, refuse=None, certificate=None):
        self.name, self.key, self.skew, self.cordoned, self.refuse = name, key or Key(), skew, cordoned, refuse
        self.certificate = certificate  # files of certificate and key: TLS behind the preface
        self.members, self.beats, self.connections, self.obeyed = {}, {}, {}, []
        self.fence, self.lock = 0, threading.Lock()
        self.port = port or free_ports(1)[0]
        self.listener = Listener(self.serve, port=self.port)
        self.url = ('tls:' if certificate else 'tcp:') + self.listener.address

    def serve(self, connection):
        name = None
        try:
            preface = struct.unpack('<IHBBQ', receive(connection, PREFACE))
            assert preface[2] == INTENT_POOL, preface
            connection = self.secure(connection)
            name = self.register(connection)
            while name:
                self.take(name, unpack(Frame.read(connection).payload))
        except (OSError, EOFError):
            pass
        finally:
            if name and self.connections.get(name) is connection:
                del self.connections[name]
            end(connection)

    def secure(self, connection):
        if not self.certificate:
            return connection
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.certificate)
        return context.wrap_socket(connection, server_side=True)

    def register(self, connection):
        message = unpack(Frame.read(connection).payload)
        assert message['type'] == REGISTER, message
        if self.refuse:
            self.send(connection, type=REFUSED, code=3, retry=0, text=self.refuse)
            return None
        name = message['name']
        self.beats[name], self.members[name] = [], message
        self.send(connection, type=REGISTERED, balancer=self.name, key=self.key.public, time=int(time.time() + self.skew), cordoned=self.cordoned)
        self.connections[name] = connection
        return name

    def take(self, name, message):
        if message['type'] == BEAT:
            self.beats[name].append(message)
        elif message['type'] == OBEYED:
            self.obeyed.append(message)
        else:
            raise AssertionError(message)

    @staticmethod
    def send(connection, **message):
        connection.sendall(Frame(payload=pack(message)).bytes())

    def close(self):
        self.listener.close()
        for connection in list(self.connections.values()):
            end(connection)

    # ---- what tests ask ----

    def beat(self, name, condition=lambda beat: True, seconds=waiting.LONG):
        """Waits until the condition holds for the last heartbeat, and returns it; else None."""
        def last():
            beats = self.beats.get(name)
            return beats[-1] if beats and condition(beats[-1]) else None
        return waiting.until(last, seconds)

    def last(self, name):
        return self.beats[name][-1]

    def held(self, name, reservation):
        """The last report of a reservation, or None."""
        return next((h for h in self.last(name)['held'] if h['id'] == reservation), None)

    def state(self, name, reservation):
        held = self.held(name, reservation)
        return held and held['state']

    def order(self, name, kind, id=bytes(16), number=0, text='', **more):
        """Gives an order and returns the server's result."""
        known = len(self.obeyed)
        self.send(self.connections[name], type=ORDER, kind=kind, id=id, number=number, text=text, **more)
        answer = waiting.until(lambda: next((o for o in self.obeyed[known:] if o['kind'] == kind and o['id'] == id), None))
        return answer['result']

    def devices(self, name):
        """The UUIDs of the server's devices, from a heartbeat."""
        beat = self.beat(name, lambda beat: beat['load']['devices'])
        return [device['uuid'] for device in beat['load']['devices']]

    def ticket(self, name, devices, id=None, key=None, **changed):
        """A sealed ticket for these UUIDs. changed: other values than the usual ones."""
        now = int(time.time() + self.skew)
        self.fence += 1
        values = dict(server=name, tenant='alice', incarnation=self.members[name]['incarnation'], fence=self.fence, issued=now, expires=now + 60,
                      linger=0, memory=0, share=1000000, priority=2, exclusive=0)
        values.update(changed)
        body = pack(dict(reservation=id or os.urandom(16), devices=list(devices), **values))
        return (key or self.key).seal(body)


def reservation_of(ticket):
    return unpack(ticket[76:])['reservation']


def environment(url, ticket):
    return {'OUTBOARD_TICKET': f'{url} {ticket.hex()}'}


class Program:
    """A run of tests/e2e/pooled.c with a ticket. do(line) returns what it prints."""

    def __init__(self, outboard, program, url, ticket=None, env=None):
        self.process = subprocess.Popen([outboard, 'run', '--server', url, '--', program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**ENV, **(environment(url, ticket) if ticket else {}), **(env or {})})
        self.first = self.process.stdout.readline().strip()

    def do(self, line):
        try:
            self.process.stdin.write(line + '\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            return ''
        return self.process.stdout.readline().strip()

    def end(self):
        """Returns what the program wrote to stderr."""
        return self.process.communicate(timeout=waiting.LONG)[1]

    @staticmethod
    def of(outboard, program, server, ticket, line):
        """What one line prints."""
        with Program(outboard, program, server.url, ticket) as p:
            return p.do(line)

    def kill(self):
        self.process.kill()
        return self.end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()
