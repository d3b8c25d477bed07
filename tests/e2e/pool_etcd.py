# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Several balancers on one etcd: many clients at once, retries, a killed balancer, an etcd that
stops and comes back.

    pool_etcd.py BALANCER
"""
import json
import os
import sys
import threading
import time

sys.path.append(sys.path[0] + '/../lib')
import etcd
import waiting
from outboard_test import check, finish
from pool_peers import CLAIMED, GIB, GRANT, INVALID, LATER, QUEUED, REFUSED, VOID, VOIDED, Balancer, Client, Member, asked, looked, nothing_reserved, ordered, reserved, ticket_of

BALANCER = sys.argv[1]
CLIENTS, EACH = 8, 6


def balancers(cluster, *names):
    return [Balancer(BALANCER, name, registry=cluster.url) for name in names]


def usable(*all_of):
    return all(waiting.until(lambda b=b: looked(b.url, 'info')['info']['registry_usable'], waiting.AT_ONCE) for b in all_of)


def crowd(a, b, m):
    """Clients of both balancers ask at once for more than there is: nothing is promised twice."""
    got, refused, lock = [], [], threading.Lock()

    def ask_many(url):
        for _ in range(EACH):
            answer = asked(url, memory=GIB)
            with lock:
                (got if answer and answer['type'] == GRANT else refused).append(answer)

    threads = [threading.Thread(target=ask_many, args=((a, b)[i % 2].url,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check('as many grants as fit', len(got) == 32 and len(refused) == CLIENTS * EACH - 32, (len(got), len(refused)))
    check('the others are refused for now', all(r and r['type'] == REFUSED and r['code'] == LATER for r in refused), refused[:3])
    check('exactly the memory is reserved', reserved(a.url, 'gpu1') == [16 * GIB, 16 * GIB], reserved(a.url, 'gpu1'))
    fences = [ticket_of(g['parts'][0])['fence'] for g in got]
    check('each transaction has a fence of its own', len(set(fences)) == len(fences))
    conflicts = sum(looked(x.url, 'info')['info']['conflicts_total'] for x in (a, b))
    print(f'    {conflicts} conflicts between the two balancers')
    for g in got:
        m.claim(g['id'])
    for g in got:
        m.end(g['id'])
    check('all ends are credited once', nothing_reserved(a.url, 'gpu1') and nothing_reserved(b.url, 'gpu1'))
    check('the server may forget them', waiting.until(lambda: not m.held, waiting.AT_ONCE), len(m.held))


def same_id(a, b, m):
    """A client that asks both with the same id has one reservation."""
    for _ in range(5):
        reservation = os.urandom(16)
        with Client(a.url) as one, Client(b.url) as two:
            one.ask(reservation, memory=GIB)
            two.ask(reservation, memory=GIB)
            answers = [one.answer(), two.answer()]
        if not check_same(answers):
            break
    check('one reservation', all(x['type'] == GRANT for x in answers) and len({ticket_of(x['parts'][0])['fence'] for x in answers}) == 1, answers)
    check('and each time', reserved(a.url, 'gpu1') and sum(reserved(b.url, 'gpu1')) == 5 * GIB, reserved(b.url, 'gpu1'))
    for r in looked(a.url, 'sessions')['reservations']:
        m.claim(bytes.fromhex(r['id']))
        m.end(bytes.fromhex(r['id']))
    nothing_reserved(a.url, 'gpu1')


def check_same(answers):
    return all(x and x['type'] == GRANT for x in answers)


def killed(a, b, m):
    """A client whose balancer dies asks the other one, and gets its grant; what waits there leaves
    the queue."""
    got = asked(a.url, gpus=2, exclusive=1)
    waits = Client(a.url)
    waits.ask(gpus=1, memory=GIB, wait=100)
    check('a request waits at the first', waits.receive()['type'] == QUEUED)
    check('the second sees it', waiting.until(lambda: [q['balancer'] for q in looked(b.url, 'queue')['queue']] == ['a'], waiting.AT_ONCE))
    a.kill()
    check('its client notices', waits.answer() is None)
    again = asked(b.url, reservation=got['id'], gpus=2, exclusive=1)
    check('the second gives the same grant', again['type'] == GRANT and ticket_of(again['parts'][0]) == ticket_of(got['parts'][0]), again)
    check('and the reservation is held once', reserved(b.url, 'gpu1') == [16 * GIB] * 2)
    m.claim(got['id'])
    check('a session goes on', waiting.until(lambda: [p['state'] for r in looked(b.url, 'sessions')['reservations'] for p in r['parts']] == ['running'], waiting.AT_ONCE))
    check('the queue of the dead one ends with its lease', waiting.until(lambda: not looked(b.url, 'queue')['queue'], waiting.LONG))
    check('so does its name', waiting.until(lambda: looked(b.url, 'info')['info']['balancers'] == ['b'], waiting.LONG))
    m.end(got['id'])
    check('the second credits', nothing_reserved(b.url, 'gpu1'))


def ids(b):
    return [r['id'] for r in looked(b.url, 'sessions')['reservations']]


def expiry(cluster, b, m):
    """Tickets that nobody uses for their life. Times in the registry, of whatever clock, have no part in it."""
    got = asked(b.url, memory=GIB)
    key = f'outboard/reservations/{got["id"].hex()}'
    value = json.loads(cluster.ctl('get', '--print-value-only', key))
    check('the reservation in etcd', value['tenant'] == 'default' and value['parts'][0]['memory'] == GIB, value)
    cluster.ctl('put', key, json.dumps({**value, 'issued': 1, 'expires': 61}))
    late = asked(b.url, memory=GIB)['id']
    m.void_answers[late] = CLAIMED
    began = time.monotonic()
    check('an unused ticket is made void', waiting.until(lambda: m.got(VOID, got['id'])) and m.held[got['id']]['state'] == VOIDED, m.orders)
    check('not before its life is over by this balancer\'s clock', time.monotonic() > began + 50, time.monotonic() - began)
    check('one that came into use at the last moment is not', waiting.until(lambda: m.got(VOID, late)) and
          waiting.until(lambda: got['id'].hex() not in ids(b), waiting.AT_ONCE) and late.hex() in ids(b), ids(b))
    m.end(late)
    check('it ends as others do', nothing_reserved(b.url, 'gpu1'))
    cluster.ctl('put', 'outboard/ledger/gpu1', json.dumps({**json.loads(cluster.ctl('get', '--print-value-only', 'outboard/ledger/gpu1')), **wrong_sums(cluster)}))
    check('a ledger that is not the sum of the reservations', waiting.until(lambda: any(reserved(b.url, 'gpu1')), waiting.AT_ONCE))
    check('is corrected', nothing_reserved(b.url, 'gpu1'))
    cluster.ctl('put', 'outboard/reservations/' + '0' * 32, 'nonsense')
    cluster.ctl('put', 'outboard/ledger/other', '{"fence": -1}')
    check('nonsense in etcd does no harm', asked(b.url, memory=GIB)['type'] == GRANT)
    for r in looked(b.url, 'sessions')['reservations']:
        m.claim(bytes.fromhex(r['id']))
        m.end(bytes.fromhex(r['id']))
    nothing_reserved(b.url, 'gpu1')


def wrong_sums(cluster):
    ledger = json.loads(cluster.ctl('get', '--print-value-only', 'outboard/ledger/gpu1'))
    return {'devices': [{**device, 'reserved': 5 * GIB, 'sharers': 3} for device in ledger['devices']]}


def namesakes(cluster, a):
    with Balancer(BALANCER, 'a', registry=cluster.url) as twin:
        check('two balancers of one name work', usable(twin) and looked(twin.url, 'info')['info']['balancers'] == ['a', 'b'])
        check('without fighting', not waiting.until(lambda: looked(a.url, 'info')['info']['conflicts_total'] > 100, 1))


def outage(cluster, b, m):
    got = asked(b.url, memory=GIB)
    m.claim(got['id'])
    cluster.kill(0)
    check('without its registry', waiting.until(lambda: not looked(b.url, 'info')['info']['registry_usable'], waiting.LONG))
    answer = asked(b.url, memory=GIB)
    check('a request is refused for now', answer['type'] == REFUSED and answer['code'] == LATER and 'registry' in answer['text'], answer)
    check('the pool is still shown', looked(b.url, 'servers')['servers'][0]['state'] == 'ready')
    with Client(b.url) as c:
        c.ask(memory=GIB, wait=100)
        queued = c.receive()
        check('or waits', queued['type'] == QUEUED and 'registry' in queued['reason'], queued)
        cluster.start(0)
        check('until the registry is back', c.answer()['type'] == GRANT)
    check('the running one is still there', reserved(b.url, 'gpu1') and sum(reserved(b.url, 'gpu1')) == 2 * GIB)
    m.end(got['id'])
    check('and ends', waiting.until(lambda: sum(reserved(b.url, 'gpu1')) == GIB, waiting.AT_ONCE))


def operator(a, b, m):
    """A command at one balancer reaches the servers of all."""
    check('cordon at one', ordered(a.url, 'cordon', 'gpu1')['code'] == 0)
    check('holds at the other', waiting.until(lambda: looked(b.url, 'servers')['servers'][0]['state'] == 'cordoned', waiting.AT_ONCE) and asked(b.url, memory=GIB)['type'] == REFUSED)
    with Member('lone', a.url, memory=1 << 20) as lone:
        lone.ready(a.url)
        waiting.until(lambda: len(looked(b.url, 'servers')['servers']) == 2, waiting.AT_ONCE)
        check('a server of another balancer is not forgotten', ordered(b.url, 'forget', 'lone')['code'] == INVALID)
    check('until it has gone', waiting.until(lambda: ordered(b.url, 'forget', 'lone')['code'] == 0, waiting.AT_ONCE))
    check('until uncordon there', ordered(b.url, 'uncordon', 'gpu1')['code'] == 0 and m.ready(a.url) and m.ready(b.url))


etcd.needed()
with etcd.Cluster(1) as cluster:
    a, b = balancers(cluster, 'a', 'b')
    check('two balancers on one etcd', usable(a, b))
    with Member('gpu1', a.url, b.url, gpus=2) as m:
        check('a server is connected to both', m.ready(a.url) and m.ready(b.url))
        with Member('gpu1', b.url) as twin:
            check('no other of its name joins at the other one', waiting.until(lambda: twin.refused, waiting.AT_ONCE) and "'gpu1'" in twin.refused[0]['text'])
        crowd(a, b, m)
        same_id(a, b, m)
        operator(a, b, m)
        expiry(cluster, b, m)
        namesakes(cluster, a)
        killed(a, b, m)
        outage(cluster, b, m)
    b.process.terminate()
    check('it stops on SIGTERM', b.process.wait(waiting.LONG) == 0)
finish()
