# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The other sides of a balancer (protocol/pool.h), as a test wants them: servers, clients, tools."""
import contextlib
import json
import os
import re
import socket
import ssl
import struct
import threading

import waiting
from frames import CONTROL, Frame, pack, receive, unpack
from outboard_test import Server

ASK, QUEUED, GRANT, REFUSED, CANCEL, QUERY, ANSWER, COMMAND, DONE, REGISTER, REGISTERED, BEAT, ORDER, OBEYED, FOLLOW, MOVED = range(64, 80)
CAPACITY, LATER, DENIED, INVALID, FAULT = range(1, 6)
VOID, CREDITED, CORDON, DRAIN, KILL, KILL_SESSION, KEEP, END = range(1, 9)
CLAIMED, ENDED, VOIDED = 1, 2, 3
GIB = 1 << 30
PREFACE = struct.Struct('<IHBBQ')
INTENT_POOL = 17
SEAL = 76  # bytes before a ticket's text


def preface(intent=INTENT_POOL, magic=0x4452424F, version=2, route=0):
    return PREFACE.pack(magic, version, intent, 0, route)


def connect(url):
    if url.startswith('unix:'):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(url.removeprefix('unix:'))
    else:
        host, port = re.fullmatch(r't(?:cp|ls)://(.*):(\d+)', url).groups()
        sock = socket.create_connection((host, int(port)))
    sock.settimeout(waiting.LONG)
    return sock


class Balancer(Server):
    """outboard-balancer; kill() ends it without a word."""

    def __init__(self, program, name, *options, registry='memory', **more):
        super().__init__(program, '--name', name, '--registry', registry, *options, **more)
        self.name = name

    def kill(self):
        self.process.kill()
        self.process.wait(waiting.LONG)


class Link:
    """A connection that has sent its preface."""

    def __init__(self, url, ca=None):
        self.sock = connect(url)
        self.sock.sendall(preface())
        if url.startswith('tls:'):
            self.sock = ssl.create_default_context(cafile=ca).wrap_socket(self.sock, server_hostname='127.0.0.1')

    def send(self, **message):
        self.sock.sendall(Frame(type=CONTROL, payload=pack(message)).bytes())

    def receive(self):
        """The next message; None at the end of the connection."""
        try:
            frame = Frame.read(self.sock)
        except (EOFError, ConnectionError):
            return None
        return unpack(frame.payload)

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Client(Link):
    def __init__(self, url, token='', ca=None):
        super().__init__(url, ca)
        self.token = token

    def ask(self, reservation=None, **fields):
        """Sends a request without waiting. Returns its id."""
        reservation = reservation or os.urandom(16)
        self.send(type=ASK, id=reservation, **{'gpus': 1, 'token': self.token, 'program': 'train', 'host': 'desk', 'user': 'me', 'pid': 7, **fields})
        return reservation

    def answer(self):
        """The answer to a request, with the messages that it waits before."""
        self.waits = []
        while (message := self.receive()) and message['type'] == QUEUED:
            self.waits.append(message)
        return message

    def grant(self, reservation=None, **fields):
        """Asks and returns the answer."""
        self.ask(reservation, **fields)
        return self.answer()

    def query(self, what, target='', since=0):
        self.send(type=QUERY, what=what, target=target, since=since, token=self.token)
        text = b''
        while True:
            message = self.receive()
            if not message or message['type'] != ANSWER:
                return message
            text += message['bytes']
            if not message['more']:
                return json.loads(text)

    def command(self, verb, target, argument=''):
        self.send(type=COMMAND, verb=verb, target=target, argument=argument, token=self.token)
        return self.receive()


def asked(url, token='', **fields):
    """One request on a connection of its own: the answer."""
    with Client(url, token) as client:
        return client.grant(**fields)


def looked(url, what, token='', **fields):
    with Client(url, token) as client:
        return client.query(what, **fields)


def ordered(url, verb, target, argument='', token=''):
    with Client(url, token) as client:
        return client.command(verb, target, argument)


def ticket_of(part):
    """The fields of a part's ticket."""
    return unpack(part['ticket'][SEAL:])


class Member:
    """A GPU server's side: registers, sends heartbeats, obeys orders. It is connected to each of
    `urls`. .held: by id what it reports of a reservation; .orders: those it got."""

    def __init__(self, name, *urls, gpus=1, memory=16 * GIB, incarnation=None, token='', labels='', beats=True, soft=0, model='NVIDIA H100 PCIe', uptime=3600, cuda=12040, ca=None, closed=(0, 0, 0), address=None):
        self.name, self.incarnation, self.labels, self.token = name, incarnation or int.from_bytes(os.urandom(7), 'big') | 1, labels, token
        self.uuids = [os.urandom(16) for _ in range(gpus)]
        self.address = address or f'tcp://{name}.example:14800'
        self.memory, self.soft, self.model, self.uptime, self.cuda = memory, soft, model, uptime, cuda
        self.held, self.orders, self.registered, self.refused = {}, [], {}, []
        self.busy = 0  # per mille
        self.cordoned, self.drained, self.as_of = closed  # by the last order
        self.answers, self.deaf = 1, False  # how often an order is answered; orders are lost
        self.ca, self.void_answers, self.healthy, self.health, self.listed = ca, {}, 1, '', []
        self.lock = threading.Lock()
        self.links, self.stop = {}, threading.Event()
        self.beating = beats
        self.join(*urls)

    def join(self, *urls):
        for url in urls:
            threading.Thread(target=self.run, args=(url,), daemon=True).start()
        return self

    # ---- messages ----

    def load(self):
        devices = [{'name': self.model, 'uuid': uuid, 'total': self.memory, 'used': 0, 'units': 114, 'clock': 1755000, 'capability': 90, 'sharers': 0,
                    'ptx_only': self.soft, 'facts': {}} for uuid in self.uuids]
        return {'type': 32, 'version': '0.1.0', 'driver': 'gpu', 'nvidia': '', 'draining': 0, 'sessions': 0, 'max_sessions': 64, 'warm': 1, 'starting': 0, 'busy': self.busy,
                'uptime': self.uptime * 10**9, 'sessions_total': 0, 'refused_total': 0, 'deaths_total': 0, 'cuda': self.cuda, 'memory_limit': 0, 'devices': devices, 'listed': self.listed}

    def beat(self, link):
        with self.lock:
            held = [{'id': key, **value} for key, value in self.held.items()]
            link.beats += 1
            link.send(type=BEAT, number=link.beats, healthy=self.healthy, health=self.health, cordoned=self.cordoned, drained=self.drained, as_of=self.as_of, load=self.load(), held=held)

    def run(self, url):
        """Connects again and again, as servers do."""
        while not self.stop.is_set():
            with contextlib.suppress(OSError), Link(url, self.ca) as link:
                link.beats = 0
                link.send(type=REGISTER, name=self.name, incarnation=self.incarnation, version='0.1.0', urls=self.address, pin='', labels=self.labels,
                          token=self.token)
                answer = link.receive()
                if answer and answer['type'] == REGISTERED:
                    self.serve(url, link, answer)
                elif answer:
                    self.refused.append(answer)
            self.links.pop(url, None)
            self.stop.wait(0.1)

    def serve(self, url, link, answer):
        self.registered[url] = answer
        self.links[url] = link
        beats = threading.Thread(target=self.beat_on, args=(link,), daemon=True)
        beats.start()
        while message := link.receive():
            message['url'] = url
            if message['type'] == ORDER and self.deaf:
                self.orders.append(message)
            elif message['type'] == ORDER:
                self.obey(link, message)
            else:
                self.refused.append(message)
        link.close()
        beats.join()

    def beat_on(self, link):
        with contextlib.suppress(OSError):
            while not self.stop.is_set():
                if self.beating:
                    self.beat(link)
                self.stop.wait(0.2)

    def obey(self, link, order):
        with self.lock:
            result = 1
            if order['kind'] == VOID:
                state = self.held.setdefault(order['id'], {'fence': 0, 'state': self.void_answers.get(order['id'], VOIDED), 'sessions': 0, 'used': 0})
                result = state['state']
            elif order['kind'] == CREDITED:
                result = int(self.held.pop(order['id'], None) is not None)
            elif order['kind'] == KILL:
                held = self.held.setdefault(order['id'], {'fence': 0, 'state': VOIDED, 'sessions': 0, 'used': 0})
                held['state'] = ENDED if held['state'] == CLAIMED else held['state']
            elif order['kind'] == END:
                held = self.held.setdefault(order['id'], {'fence': 0, 'state': VOIDED, 'sessions': 0, 'used': 0})
                held['state'] = ENDED if held['state'] == CLAIMED and not held['sessions'] else held['state']
                result = held['state']
            elif order['kind'] in (CORDON, DRAIN):
                result = self.close_or_open(order)
            for _ in range(self.answers):
                link.send(type=OBEYED, kind=order['kind'], id=order['id'], number=order['number'], result=result)
        self.orders.append(order)  # after it was obeyed

    def close_or_open(self, order):
        """server/supervisor/member.c."""
        drained, cordoned = int(order['kind'] == DRAIN), int(order['kind'] == DRAIN or order['number'] != 0)
        known = order['as_of'] and order['as_of'] == self.as_of
        if known and (drained, cordoned) == (self.drained, self.cordoned):
            return 1
        if not order['force'] and order['as_of'] and (order['as_of'] < self.as_of or (known and cordoned)):
            return 0
        self.drained, self.cordoned, self.as_of = drained, cordoned, order['as_of']
        return 1

    # ---- what happens on the server ----

    def claim(self, reservation, fence=0):
        with self.lock:
            self.held[reservation] = {'fence': fence, 'state': CLAIMED, 'sessions': 1, 'used': GIB}

    def linger(self, reservation):
        """Its sessions are gone; it has not ended yet."""
        with self.lock:
            self.held[reservation] = {**self.held[reservation], 'sessions': 0, 'used': 0}

    def end(self, reservation):
        with self.lock:
            self.held[reservation] = {**self.held[reservation], 'state': ENDED, 'sessions': 0, 'used': 0}

    def got(self, kind, reservation=None):
        return any(o['kind'] == kind and (reservation is None or o['id'] == reservation) for o in list(self.orders))

    def ready(self, url, token='', state='ready'):
        """Waits until the balancer would place something here."""
        def is_so():
            return any(s['name'] == self.name and s['state'] == state for s in looked(url, 'servers', token)['servers'])
        return waiting.until(is_so, waiting.AT_ONCE)

    def cut(self, *urls):
        """The connections break, all or those to these, and it connects again."""
        for link in [link for url, link in list(self.links.items()) if not urls or url in urls]:
            with contextlib.suppress(OSError):
                link.sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.stop.set()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def reserved(url, name, token=''):
    """Reserved bytes of the server's GPUs."""
    return [gpu['reserved_bytes'] for gpu in looked(url, 'gpus', token)['gpus'] if gpu['server'] == name]


def nothing_reserved(url, name, token=''):
    return waiting.until(lambda: not any(reserved(url, name, token)), waiting.AT_ONCE)


def raw_refusal(url, first):
    """What a peer is told that begins with these bytes."""
    with connect(url) as sock:
        sock.sendall(first)
        frame = Frame.read(sock)
        return unpack(frame.payload)


def receive_all(sock):
    """All bytes until the other side closes; None if it does not."""
    data = b''
    try:
        while piece := sock.recv(65536):
            data += piece
    except ConnectionError:
        pass
    except TimeoutError:
        return None
    return data


def receive_end(sock):
    """True when the other side closes."""
    try:
        receive(sock, 1)
    except (EOFError, ConnectionError):
        return True
    return False
