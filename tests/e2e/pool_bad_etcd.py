# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A whole balancer on an etcd that lies, is slow, or holds what no balancer wrote: what a client is
told, that nothing is promised, and that all is well as soon as etcd is. The registry alone: registry_hostile.py.

    pool_bad_etcd.py BALANCER OUTBOARD
"""
import json
import os
import re
import subprocess
import sys
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from fake_etcd import CLOSE, SILENT, FakeEtcd
from outboard_test import ENV, check, finish
from pool_peers import CORDON, GIB, GRANT, INVALID, LATER, REFUSED, Balancer, Client, Member, asked, looked, nothing_reserved, ordered, reserved

BALANCER, OUTBOARD = sys.argv[1:3]
RANGE, TXN = '/v3/kv/range', '/v3/kv/txn'
# Seconds until a refusal: four attempts at a transaction of 0.8 s each, and as many to look at its
# outcome (loadbalancer/registry/calls.h), with the pauses between them.
ANSWERED = 2 * 4 * 0.8 + 4


def body(**fields):
    return lambda request, sane: json.dumps(fields).encode()


def server(b):
    return looked(b.url, 'servers')['servers'][0]


def events(b, kind):
    """How many of the kind the balancer itself has told."""
    return len([line for line in b.lines if f' {kind} gpu1: ' in line])


def usable(b):
    return waiting.until(lambda: looked(b.url, 'info')['info']['registry_usable'], waiting.AT_ONCE)


def works(b, m, what):
    """The registry is sane again: a client gets a grant, and what was asked before is not counted twice."""
    def granted():
        answer = asked(b.url, memory=GIB)
        return answer and answer['type'] == GRANT
    check(f'{what}: works again', usable(b) and waiting.until(granted))
    for r in looked(b.url, 'sessions')['reservations']:
        m.claim(bytes.fromhex(r['id']))
        m.end(bytes.fromhex(r['id']))
    check(f'{what}: nothing stays reserved', nothing_reserved(b.url, 'gpu1'), reserved(b.url, 'gpu1'))


def answered(b, what, made):
    """A client asks while etcd lies. made: etcd has made the transaction all the same. Then the balancer
    may find that out and give the grant; otherwise it must refuse."""
    began = time.monotonic()
    answer = asked(b.url, memory=GIB)
    took = time.monotonic() - began
    print(f'     {what}: {took:.1f} s, {answer and answer.get("text", "a grant")}')
    later = answer and answer['type'] == REFUSED and answer['code'] == LATER and any(words in answer['text'] for words in ('the reservation could not be stored: ', 'registry'))
    check(f'{what}: {"a grant, or " if made else ""}a refusal for now, in words', later or (made and answer and answer['type'] == GRANT), answer)
    check(f'{what}: in time', took < ANSWERED, took)
    check(f'{what}: the pool is still shown', looked(b.url, 'servers')['servers'][0]['name'] == 'gpu1')
    if answer and answer['type'] == GRANT:
        check(f'{what}: what was granted is in etcd', waiting.until(lambda: sum(reserved(b.url, 'gpu1')) == GIB), reserved(b.url, 'gpu1'))


def slow(request, sane):
    waiting.let_pass(5, 'an etcd that answers, but after longer than every time-out')
    return json.dumps(sane).encode()


def lies(fake, b, m):
    """Transactions and lists that are answered wrongly."""
    wrong = {'no JSON': lambda request, sane: b'<html>', 'an empty object': body(), 'a revision that is text': body(header={'revision': 'x'}, succeeded=True),
             'a revision below zero': body(header={'revision': '-7'}, succeeded=True), 'no answer': lambda request, sane: SILENT, 'a closed connection': lambda request, sane: CLOSE,
             'no quorum': lambda request, sane: (503, b'{"error": "etcdserver: no leader", "message": "etcdserver: no leader", "code": 14}'), 'answers after 5 s': slow}
    for what, answer in wrong.items():
        for made in (True, False):
            for path in (TXN, RANGE):
                fake.answers[path] = answer
            fake.frozen = set() if made else {TXN}
            name = f'{what}, {"made" if made else "not made"}'
            answered(b, name, made)
            fake.frozen = set()
            fake.answers.clear()
            works(b, m, name)


def values(fake, b, m):
    """Values of another schema, and keys that cannot be: they count as missing, and nobody gets
    memory by them. The balancer stays."""
    fake.put(b'outboard/reservations/' + b'1' * 32, b'{"schema": 99, "tenant": ["x"], "parts": 7}')
    fake.put(b'outboard/reservations/not-an-id', b'{}')
    fake.put(b'outboard/reservations/' + b'f' * 4000, b'{}')
    fake.put(b'outboard/tenants/' + b'\xff\xfe', b'{"memory": -1}')
    fake.put(b'outboard/queue/zzz', b'[' * 5000)
    fake.put(b'outboard/servers/evil', b'{"incarnation": 1e400, "devices": {}}')
    fake.put(b'outboard/operator/gpu1', b'{"cordon": "perhaps"}')
    fake.put(b'outboard/unknown/kind', b'x')
    works(b, m, 'values of another schema')
    check('none of them is shown as a server', [s['name'] for s in looked(b.url, 'servers')['servers']] == ['gpu1'])
    check('or a reservation', looked(b.url, 'sessions')['reservations'] == [])
    # A ledger that cannot be read is made anew from the reservations, of which there are none: all of the
    # device's memory is given, but once.
    fake.put(b'outboard/ledger/gpu1', b'{"incarnation": 7, "fence": -1, "devices": [{"reserved": -5}]}')
    check('a ledger of another schema is made anew', waiting.until(lambda: json.loads(fake.rows[b'outboard/ledger/gpu1'][0])['fence'] > 0))
    check('its memory is given', waiting.until(lambda: asked(b.url, memory=16 * GIB)['type'] == GRANT))
    check('and once only', all(asked(b.url, memory=GIB)['type'] == REFUSED for _ in range(3)) and reserved(b.url, 'gpu1') == [16 * GIB], reserved(b.url, 'gpu1'))


def too_many(b):
    for gpus in (65, 10**9, 0):
        answer = asked(b.url, gpus=gpus)
        check(f'{gpus} GPUs at once', answer['type'] == REFUSED and answer['code'] == INVALID and '1 to 64 GPUs' in answer['text'], answer)
    with Client(b.url) as client:
        client.ask(gpus=1 << 40)
        answer = client.receive()
        check('a number of more than 32 bits', answer and answer['type'] == REFUSED and answer['code'] == INVALID, answer)
    done = subprocess.run([OUTBOARD, 'run', '--pool', b.url, '--gpus', '1000000000', '--', 'true'], env=ENV, capture_output=True, text=True, timeout=waiting.LONG)
    check('the command refuses it', done.returncode not in (0, 127), done.returncode)
    check('in words', "--gpus takes a number from 1 to 64, not '1000000000'" in done.stderr, done.stderr)


def deaf():
    """A balancer whose watch has fallen behind does not call off a drain that it has not heard of, and
    does not drain again what was opened since."""
    fake = FakeEtcd()
    with Balancer(BALANCER, 'one', registry=fake.url) as one, Balancer(BALANCER, 'two', registry=fake.side_url) as two, Member('gpu1', one.url, two.url) as m:
        check('both are usable', usable(one) and usable(two) and m.ready(one.url) and m.ready(two.url))

        def meet(what):
            """The server connects to the deaf one again, which then looks at it several times."""
            known = events(two, 'unknown')
            m.registered.pop(two.url)
            m.cut(two.url)
            check(f'{what}: the server is connected to the deaf one', waiting.until(lambda: two.url in m.registered))
            m.claim(os.urandom(16))
            check(f'{what}: which has looked at it', waiting.until(lambda: events(two, 'unknown') > known))
            for reservation in list(m.held):
                m.held.pop(reservation)

        fake.muted = True
        check('a drain', ordered(one.url, 'drain', 'gpu1', '600')['code'] == 0 and waiting.until(lambda: m.drained))
        meet('drained')
        check('it has not heard of the drain', m.registered[two.url]['cordoned'] == 0, m.registered)
        check('it orders nothing', m.drained and not [o for o in m.orders if o['url'] == two.url], m.orders)
        fake.unmute()
        check('it hears of it', waiting.until(lambda: server(two)['draining']), server(two))
        fake.muted = True
        check('the drain is taken back', ordered(one.url, 'uncordon', 'gpu1')['code'] == 0 and waiting.until(lambda: not m.drained))
        meet('opened')
        check('it has not heard of that', m.registered[two.url]['cordoned'] == 1, m.registered)
        check('it does not drain the server again', not m.drained and not m.cordoned and m.ready(one.url), m.orders)
    fake.close()


def begun_anew():
    """A server that obeys an order of a registry that was lost is opened all the same."""
    fake = FakeEtcd()
    with Balancer(BALANCER, 'one', registry=fake.url) as b, Member('gpu1', b.url, closed=(1, 1, 10**6)) as m:
        check('it is opened', usable(b) and waiting.until(lambda: not m.drained) and not m.cordoned, m.orders)
        check('by one order', [(o['kind'], o['number'], o['force']) for o in m.orders] == [(CORDON, 0, 1)], m.orders)
    fake.close()


def overtaken():
    """An order is obeyed also if the new registry reaches the old one's revision before it is forced."""
    with Balancer(BALANCER, 'one') as b, Member('gpu2', b.url) as other:
        check('a server is cordoned', other.ready(b.url) and ordered(b.url, 'cordon', 'gpu2')['code'] == 0 and waiting.until(lambda: other.cordoned))
        with Member('gpu1', b.url, closed=(0, 0, other.as_of + 60)) as m:
            check('another was opened by an order of the future', m.ready(b.url))
            check('it is cordoned', ordered(b.url, 'cordon', 'gpu1')['code'] == 0)
            check('the registry goes on', all(ordered(b.url, 'quota', f'tenant{n}', 'gpus=1')['code'] == 0 for n in range(80)))
            check('it is told all the same', waiting.until(lambda: m.cordoned), m.orders)
            check('by one order', [(o['kind'], o['number'], o['force']) for o in m.orders] == [(CORDON, 1, 1)], m.orders)


def main():
    deaf()
    begun_anew()
    overtaken()
    fake = FakeEtcd()
    with Balancer(BALANCER, 'one', registry=fake.url) as b, Member('gpu1', b.url) as m:
        check('usable', usable(b) and m.ready(b.url))
        too_many(b)
        lies(fake, b, m)
        values(fake, b, m)
        check('the balancer is still there', b.process.poll() is None)
    fake.close()
    finish()


main()
