# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Peers that break the protocol, are slow, or come in crowds: a balancer goes on serving others.

    pool_hostile.py BALANCER
"""
import contextlib
import os
import random
import socket
import struct
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from frames import CONTROL, Frame, pack
from outboard_test import check, finish, resident
from pool_peers import BEAT, GIB, GRANT, INVALID, OBEYED, REGISTER, Balancer, Client, Link, Member, asked, connect, looked, ordered, preface, receive_end

BALANCER = sys.argv[1]
ROUNDS = int(os.environ.get('OUTBOARD_FUZZ_ROUNDS', '300'))


def serves(b, what):
    began = time.monotonic()
    answer = asked(b.url, memory=1 << 20)
    check(what, answer and answer['type'] == GRANT and time.monotonic() - began < waiting.AT_ONCE, answer)


def frames(b):
    """Wrong headers, one field at a time."""
    good = pack({'type': 69, 'what': 'info'})
    for name, value in (('magic', 1), ('version', 9), ('type', 1), ('flags', 1), ('size', 0xfffffff8), ('size', 8193 + 7), ('raw_size', 0), ('raw_size', 0xffffffff), ('reserved', 1)):
        with Link(b.url) as link:
            frame = Frame(type=CONTROL, payload=good)
            setattr(frame, name, value)
            link.sock.sendall(frame.bytes())
            answer = link.receive()
            check(f'a header with {name} {value:#x}', answer and answer['code'] == INVALID and link.receive() is None, answer)
    for what, body in (('no map', b'\x93\x01\x02\x03'), ('a map that ends early', b'\xdf\xff\xff\xff\xff'), ('garbage', os.urandom(64)), ('deep arrays', b'\x91' * 4000), ('nothing', b'\xc0'),
                       ('an unknown type', pack({'type': 200})), ('no type', pack({'gpus': 1})), ('a type that is text', pack({'type': 'ask'}))):
        with Link(b.url) as link:
            link.sock.sendall(Frame(type=CONTROL, payload=body).bytes())
            check(what, link.receive()['code'] == INVALID and link.receive() is None)


def mutations(b):
    """Good messages with changed bytes: some answer comes, or the end, and the balancer lives."""
    chance = random.Random(20261127)
    with Member('other', b.url) as m:
        m.ready(b.url)
        beat = pack({'type': BEAT, 'number': 1, 'healthy': 1, 'health': '', 'load': m.load(), 'held': [{'id': os.urandom(16), 'fence': 1, 'state': 2, 'sessions': 0, 'used': 0}]})
    ask = pack({'type': 64, 'id': os.urandom(16), 'gpus': 1, 'memory': GIB, 'where': 'model=H100,zone!=b', 'program': 'p', 'wait': 1})
    register = pack({'type': REGISTER, 'name': 'm', 'incarnation': 5, 'version': '1', 'urls': 'tcp://h:1', 'pin': '', 'labels': 'zone=a', 'token': ''})
    obeyed = pack({'type': OBEYED, 'kind': 1, 'id': os.urandom(16), 'number': 0, 'result': 3})
    for i in range(ROUNDS):
        first, *rest = ((ask,), (register, beat, obeyed), (pack({'type': 71, 'verb': 'kill', 'target': 'f' * 32}),), (pack({'type': 69, 'what': 'fleet', 'since': 1}),))[i % 4]
        with Link(b.url) as link, contextlib.suppress(OSError, EOFError):
            for body in (first, *rest):
                body = bytearray(body)
                for _ in range(chance.randrange(4)):
                    body[chance.randrange(len(body))] = chance.choice((0, 1, 0x7f, 0x80, 0xc0, 0xdf, 0xff, chance.randrange(256)))
                link.sock.sendall(Frame(type=CONTROL, payload=bytes(body)).bytes())
            link.sock.shutdown(socket.SHUT_WR)
            while link.receive():
                pass
    check(f'{ROUNDS} changed messages', b.process.poll() is None)


def slow(b):
    """Peers that send nothing, a byte, half a frame, or do not read what they ask for."""
    held = []
    for i in range(300):
        sock = connect(b.url)
        sock.sendall((b'', b'O', preface(), preface() + Frame(type=CONTROL, payload=bytes(4096)).bytes()[:60])[i % 4])
        held.append(sock)
    serves(b, 'beside 300 slow ones')
    greedy = Link(b.url)
    greedy.sock.settimeout(5)
    with contextlib.suppress(OSError):
        for _ in range(2000):
            greedy.send(type=69, what='fleet')
    serves(b, 'beside one that asks and does not read')
    greedy.close()
    for sock in held:
        sock.close()


def limits():
    with Balancer(BALANCER, 'small', '--connections', '16') as b, Member('gpu1', b.url) as m:
        m.ready(b.url)
        held = [connect(b.url) for _ in range(60)]
        serves(b, 'silent connections give way')
        for sock in held:
            sock.close()
        waiting.until(lambda: looked(b.url, 'info')['info']['connections'] < 4, waiting.AT_ONCE)
        held = [Link(b.url) for _ in range(15)]  # and the server's
        for link in held:
            link.send(type=69, what='info')
            link.receive()
        with Link(b.url) as one:
            check('those that speak do not: a new one is closed', receive_end(one.sock))
        for link in held:
            link.send(type=69, what='info')
        check('and they stay', all(link.receive() for link in held))
        for link in held:
            link.close()
        waiting.until(lambda: looked(b.url, 'info')['info']['connections'] < 4, waiting.AT_ONCE)
        serves(b, 'afterwards there is room')


def lying_server(b, m):
    """A server reports ends of reservations that are not its own."""
    got = asked(b.url, memory=GIB)
    before = {gpu['server']: gpu['reserved_bytes'] for gpu in looked(b.url, 'gpus')['gpus']}
    other = 'liar' if got['parts'][0]['server'] == 'gpu1' else 'gpu1'
    assert other == 'liar', got
    with Member('liar', b.url, memory=GIB, model='small') as liar:
        liar.claim(got['id'])
        liar.end(got['id'])
        check('the liar joins', waiting.until(lambda: any(s['name'] == 'liar' for s in looked(b.url, 'servers')['servers']), waiting.AT_ONCE))
        waiting.until(lambda: liar.got(2, got['id']), waiting.AT_ONCE)
        after = {gpu['server']: gpu['reserved_bytes'] for gpu in looked(b.url, 'gpus')['gpus']}
        check('what another server holds stays reserved', after['gpu1'] == before['gpu1'], (before, after))
    strange = Member('strange')
    strange.uuids = [bytes(16)] * 2
    with strange.join(b.url):
        check('a server with one device twice is refused', waiting.until(lambda: strange.refused, waiting.AT_ONCE) and 'UUID' in strange.refused[0]['text'], strange.refused)


def registry_values():
    """Values that somebody wrote to the registry's file."""
    with tempfile.TemporaryDirectory() as folder:
        file = f'{folder}/registry'
        with Balancer(BALANCER, 'one', registry=f'static:{file}') as b, Member('gpu1', b.url) as m:
            m.ready(b.url)
            asked(b.url, memory=GIB)
        text = open(file, 'rb').read()
        assert b'reserved' in text
        open(file, 'wb').write(text.replace(b'reserved', b'reservex'))
        with Balancer(BALANCER, 'one', registry=f'static:{file}', must_start=False) as b:
            if b.url:
                check('a ledger that cannot be read', asked(b.url, memory=GIB)['type'] != GRANT)


with Balancer(BALANCER, 'one') as b, Member('gpu1', b.url, memory=1 << 40) as m:
    m.ready(b.url)
    frames(b)
    mutations(b)
    slow(b)
    lying_server(b, m)
    serves(b, 'after all that')
    ordered(b.url, 'cordon', 'gpu1')
    check('its memory stays small', resident(b.process.pid) < 256 << 20, resident(b.process.pid))
limits()
registry_values()
finish()
