# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""outboard-balancer with servers and clients that a test plays: reservations from the request to
their end, the queue, quotas, operators' commands, documents.

    pool.py BALANCER OUTBOARD
"""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from frames import Frame, pack
from outboard_test import ENV, Server, check, finish
from pool_peers import (CAPACITY, CLAIMED, COMMAND, CORDON, CREDITED, DENIED, DONE, DRAIN, ENDED, FOLLOW, GIB, GRANT, INVALID, KILL, LATER, MOVED, QUEUED, REFUSED, VOID, VOIDED, Balancer, Client, Link,
                        Member, asked,
                        connect, looked, nothing_reserved, ordered, preface, raw_refusal, receive_all, reserved, ticket_of)

BALANCER, OUTBOARD = sys.argv[1:3]


def refused(answer, code, words):
    return answer and answer['type'] == REFUSED and answer['code'] == code and words in answer['text']


def life():
    """One reservation: placed, used, ended, credited; and the same without use."""
    with Balancer(BALANCER, 'one') as b:
        check('an empty pool has no capacity', refused(asked(b.url), CAPACITY, ''))
        early = Client(b.url)
        early.ask(memory=GIB, wait=100)
        check('a request may wait for the servers of a balancer that has just started', early.receive()['type'] == QUEUED)
        with Member('gpu1', b.url, labels='zone=a,rack=3') as m:
            check('a server joins', m.ready(b.url))
            got = early.answer()
            check('and gets them', got and got['type'] == GRANT, got)
            m.claim(got['id'])
            m.end(got['id'])
            nothing_reserved(b.url, 'gpu1')
            got = asked(b.url, memory=4 * GIB)
            part = got['parts'][0]
            ticket = ticket_of(part)
            check('a grant', got['type'] == GRANT and got['tenant'] == 'default' and part['server'] == 'gpu1' and part['urls'] == 'tcp://gpu1.example:14800', got)
            check('its ticket', ticket['server'] == 'gpu1' and ticket['incarnation'] == m.incarnation and ticket['memory'] == 4 * GIB and ticket['devices'] == m.uuids and
                  ticket['reservation'] == got['id'] and ticket['expires'] - ticket['issued'] == 60, ticket)
            check('the memory is reserved', reserved(b.url, 'gpu1') == [4 * GIB])
            again = asked(b.url, reservation=got['id'], memory=4 * GIB)
            check('the same id gets the same grant', again['type'] == GRANT and ticket_of(again['parts'][0]) == ticket and reserved(b.url, 'gpu1') == [4 * GIB], again)
            m.claim(got['id'], ticket['fence'])
            check('it runs', waiting.until(lambda: [p['state'] for r in looked(b.url, 'sessions')['reservations'] for p in r['parts']] == ['running'], waiting.AT_ONCE))
            m.linger(got['id'])
            check('without a session it is kept', waiting.until(lambda: [(p['state'], p['sessions']) for r in looked(b.url, 'sessions')['reservations'] for p in r['parts']] == [('kept', 0)], waiting.AT_ONCE), looked(b.url, 'sessions'))
            m.end(got['id'])
            check('its end is credited', nothing_reserved(b.url, 'gpu1'), reserved(b.url, 'gpu1'))
            check('the server may forget it', waiting.until(lambda: m.got(CREDITED, got['id']), waiting.AT_ONCE))
            check('no reservation is left', looked(b.url, 'sessions')['reservations'] == [])

            with Client(b.url) as c:
                got = c.grant(memory=2 * GIB)
                check('another one', got['type'] == GRANT and reserved(b.url, 'gpu1') == [2 * GIB])
                c.send(type=68, id=got['id'])
                check('a cancelled grant is void', waiting.until(lambda: m.got(VOID, got['id']), waiting.AT_ONCE) and nothing_reserved(b.url, 'gpu1'))

            sizes = [asked(b.url)['parts'][0]['ticket'] for _ in range(2)]
            check('without a size an eighth of the device is reserved', len(sizes) == 2 and reserved(b.url, 'gpu1') == [4 * GIB], reserved(b.url, 'gpu1'))
            check('too much for any device', refused(asked(b.url, memory=17 * GIB), CAPACITY, 'memory'))
            check('too much for now', refused(asked(b.url, memory=13 * GIB), LATER, 'memory'))
            check('no such model', refused(asked(b.url, where='model=B200'), CAPACITY, ''))
            check('a wrong selector', refused(asked(b.url, where='model=='), INVALID, ''))
            check('a label', asked(b.url, where='zone=a')['type'] == GRANT and refused(asked(b.url, where='zone=b'), CAPACITY, ''))
            check('no devices', refused(asked(b.url, gpus=0), INVALID, 'GPUs'))
            check('more devices than there are', refused(asked(b.url, gpus=3), CAPACITY, ''))


def incarnations():
    with Balancer(BALANCER, 'one') as b:
        first = Member('gpu1', b.url)
        first.ready(b.url)
        asked(b.url, memory=4 * GIB)
        twin = Member('gpu1', b.url)
        check('a second server of the name is refused', waiting.until(lambda: twin.refused, waiting.AT_ONCE) and refused(twin.refused[0], LATER, 'gpu1'), twin.refused)
        twin.close()
        first.cut()
        check('the first may connect again', waiting.until(lambda: looked(b.url, 'info')['info']['servers_here'] == 1, waiting.AT_ONCE))
        check('and keeps its reservation', first.ready(b.url) and reserved(b.url, 'gpu1') == [4 * GIB])
        first.close()
        waiting.until(lambda: looked(b.url, 'info')['info']['servers_here'] == 0, waiting.AT_ONCE)
        check('a server that is gone keeps its reservations', reserved(b.url, 'gpu1') == [4 * GIB])
        check('and gets nothing new', refused(asked(b.url, memory=GIB), LATER, ''))
        with Member('gpu1', b.url) as second:
            check('a new incarnation has nothing reserved', second.ready(b.url) and nothing_reserved(b.url, 'gpu1') and
                  waiting.until(lambda: looked(b.url, 'sessions')['reservations'] == [], waiting.AT_ONCE), looked(b.url, 'sessions'))


def several():
    """Devices of several servers, and the queue."""
    with Balancer(BALANCER, 'one') as b, Member('gpu1', b.url, gpus=2) as m1, Member('gpu2', b.url, gpus=2) as m2:
        check('two servers', m1.ready(b.url) and m2.ready(b.url))
        got = asked(b.url, gpus=3, exclusive=1)
        parts = got['parts']
        check('three devices of two servers', sorted(len(ticket_of(p)['devices']) for p in parts) == [1, 2] and {p['server'] for p in parts} == {'gpu1', 'gpu2'}, got)
        check('exclusive devices are reserved completely', sorted(reserved(b.url, 'gpu1') + reserved(b.url, 'gpu2')) == [0, 16 * GIB, 16 * GIB, 16 * GIB])
        check('on one server is too much', refused(asked(b.url, gpus=3, one_server=1), CAPACITY, ''))
        with Client(b.url) as c, Client(b.url) as other:
            c.ask(gpus=2, exclusive=1, wait=100)
            queued = c.receive()
            check('a request waits', queued['type'] == QUEUED and queued['position'] == 1 and queued['length'] == 1 and queued['reason'], queued)
            check('it is in the queue', waiting.until(lambda: [q['gpus'] for q in looked(b.url, 'queue')['queue']] == [2], waiting.AT_ONCE))
            check('a small one passes it', other.grant(memory=GIB)['type'] == GRANT)
            check('a time-out', refused(asked(b.url, gpus=4, exclusive=1, wait=1), LATER, 'waited for 1 s'))
            for m, name in (m1, 'gpu1'), (m2, 'gpu2'):
                if any(p['server'] == name for p in parts):
                    m.claim(got['id'])
                    m.end(got['id'])
            answer = c.answer()
            check('it gets its devices when they are free', answer and answer['type'] == GRANT and sum(len(ticket_of(p)['devices']) for p in answer['parts']) == 2, answer)
        with Client(b.url) as c:
            c.ask(gpus=4, exclusive=1, wait=100)
            check('another waits', c.receive()['type'] == QUEUED)
            waiting.until(lambda: looked(b.url, 'queue')['queue'], waiting.AT_ONCE)
        check('a client that has gone leaves the queue', waiting.until(lambda: not looked(b.url, 'queue')['queue'], waiting.AT_ONCE))
        with Client(b.url) as c:
            c.ask(gpus=4, exclusive=1, wait=100)
            c.receive()
            b.process.terminate()
            check('a balancer that stops says so', refused(c.answer(), LATER, 'stops'))


def silent():
    with Balancer(BALANCER, 'one') as b, Member('gpu1', b.url) as m:
        m.ready(b.url)
        m.beating = False
        check('a silent server gets nothing', waiting.until(lambda: looked(b.url, 'servers')['servers'][0]['state'] == 'silent', waiting.AT_ONCE) and
              refused(asked(b.url), LATER, ''))
        m.beating = True
        check('it comes back', m.ready(b.url) and asked(b.url)['type'] == GRANT)
        m.healthy, m.health = 0, 'Xid 79'
        check('neither does one that is not well', waiting.until(lambda: looked(b.url, 'servers')['servers'][0]['state'] == 'unwell', waiting.AT_ONCE) and
              refused(asked(b.url), LATER, ''))
        kinds = waiting.until(lambda: {'joined', 'silent', 'back', 'unwell', 'placed', 'refused'} <= {e['kind'] for e in looked(b.url, 'events')['events']}, waiting.AT_ONCE)
        check('events tell it', kinds, looked(b.url, 'events'))
        last = looked(b.url, 'events')['events'][-1]['number']
        check('later events alone', all(e['number'] > last for e in looked(b.url, 'events', since=last)['events']))


def told(member, *orders):
    """Waits until these were its last orders of the kinds that operators give: kind and number, of a
    drain whether its seconds are within the range."""
    def last():
        got = [(o['kind'], o['number']) for o in list(member.orders) if o['kind'] in (CORDON, DRAIN)][-len(orders):]
        return len(got) == len(orders) and all(kind == wanted[0] and (number == wanted[1] if kind == CORDON else wanted[1] * 1000 < number <= wanted[2] * 1000)
                                               for (kind, number), wanted in zip(got, orders))
    return waiting.until(last, waiting.AT_ONCE)


def server_state(url):
    return looked(url, 'servers')['servers'][0]['state']


def drains():
    """Orders reach a server that was away, one that was restarted, and one that drains already."""
    with tempfile.TemporaryDirectory() as name:
        options = {'registry': f'static:{name}/registry', 'listen': f'unix:{name}/socket'}
        b = Balancer(BALANCER, 'one', **options)
        m = Member('gpu1', b.url)
        m.ready(b.url)
        check('a drain is one order', ordered(b.url, 'drain', 'gpu1', '600')['code'] == 0 and told(m, (DRAIN, 500, 600)) and len(m.orders) == 1, m.orders)
        check('a second one changes the time', ordered(b.url, 'drain', 'gpu1', '3600')['code'] == 0 and told(m, (DRAIN, 3500, 3600)), m.orders)
        check('to a shorter one, too', ordered(b.url, 'drain', 'gpu1', '100')['code'] == 0 and told(m, (DRAIN, 0, 100)), m.orders)
        m.registered.clear()
        m.cut()
        check('a server that connects again knows it', waiting.until(lambda: b.url in m.registered, waiting.AT_ONCE) and m.registered[b.url]['cordoned'] == 1, m.registered)
        m.ready(b.url, state='draining')
        check('a cordon calls the drain off', ordered(b.url, 'cordon', 'gpu1')['code'] == 0 and told(m, (DRAIN, 0, 100), (CORDON, 1)), m.orders)
        m.cordoned = m.drained = m.as_of = 0
        check('a server that has lost its orders is told again', told(m, (CORDON, 1), (CORDON, 1)), m.orders)
        ordered(b.url, 'drain', 'gpu1', '600')
        told(m, (DRAIN, 500, 600))
        away = m.incarnation
        m.close()
        waiting.until(lambda: looked(b.url, 'info')['info']['servers_here'] == 0, waiting.AT_ONCE)
        check('an order to a server that is away', ordered(b.url, 'uncordon', 'gpu1')['code'] == 0)
        with Member('gpu1', b.url, incarnation=away, closed=(m.cordoned, m.drained, m.as_of)) as m:
            check('it hears of it when it connects: a drain that it knows of is over', told(m, (CORDON, 0)) and not m.orders[-1]['force'], m.orders)
            check('and gets reservations', m.ready(b.url), looked(b.url, 'servers'))
        waiting.until(lambda: looked(b.url, 'info')['info']['servers_here'] == 0, waiting.AT_ONCE)
        check('a drain of a server that is away', ordered(b.url, 'drain', 'gpu1', '600')['code'] == 0)
        b.kill()
        with Balancer(BALANCER, 'one', **options) as b, Member('gpu1', b.url) as m:
            check('both were restarted', told(m, (DRAIN, 500, 600)) and len(m.orders) == 1 and waiting.until(lambda: server_state(b.url) == 'draining', waiting.AT_ONCE), m.orders)
            check('an uncordon ends it', ordered(b.url, 'uncordon', 'gpu1')['code'] == 0 and told(m, (CORDON, 0)) and m.ready(b.url), m.orders)
            check('a grace of more than a day', ordered(b.url, 'drain', 'gpu1', '86401')['code'] == INVALID and ordered(b.url, 'drain', 'gpu1', 'soon')['code'] == INVALID)


def unreachable():
    """A server that only its own machine reaches, at a balancer that others reach."""
    words = 'has loopback addresses only'
    with Balancer(BALANCER, 'one', '--insecure', listen='tcp://0.0.0.0:0') as b:
        url = b.url.replace('0.0.0.0', '127.0.0.1')
        with Member('far', url, address='tcp://127.0.0.1:1 tls://10.0.0.5:1'), Member('near', url, address='tcp://127.0.0.1:1 tls://[::1]:1'):
            check('it is named', b.line(f'server near {words}.*--advertise') and waiting.until(lambda: len(looked(url, 'servers')['servers']) == 2, waiting.AT_ONCE), b.lines)
            check('not one that has another address', not b.said(f'server far {words}'), b.lines)
    with Balancer(BALANCER, 'one') as b, Member('near', b.url, address='tcp://127.0.0.1:1') as m:
        check('nor where the balancer is for this machine alone', m.ready(b.url) and not b.said(words), b.lines)


def killed_twice():
    """A reservation on two servers is ended when both have ended it; a server that answers for the
    other one is not believed, nor an answer to another command."""
    with Balancer(BALANCER, 'one') as b, Member('gpu1', b.url) as m1, Member('gpu2', b.url) as m2:
        m1.ready(b.url), m2.ready(b.url)
        both = asked(b.url, gpus=2)['id']
        m1.deaf = m2.deaf = True
        with Client(b.url) as one, Client(b.url) as two:
            for client in one, two:
                client.send(type=COMMAND, verb='kill', target=both.hex(), argument='', token='')
            check('nobody answers', [client.receive()['code'] for client in (one, two)] == [LATER, LATER])
        numbers = [o['number'] for o in m1.orders if o['kind'] == KILL]
        check('each command has its own number', len(set(numbers)) == 2 and [o['number'] for o in m2.orders if o['kind'] == KILL] == numbers, (m1.orders, m2.orders))
        m1.deaf, m1.answers = False, 3
        answer = ordered(b.url, 'kill', both.hex())
        check('a server that answers thrice does not answer for the other', answer['code'] == LATER and 'has not answered in time' in answer['text'] and m1.got(KILL, both), answer)
        m2.deaf = False
        check('both answer', ordered(b.url, 'kill', both.hex())['code'] == 0)
        check('it is ended', waiting.until(lambda: not looked(b.url, 'sessions')['reservations'], waiting.AT_ONCE), looked(b.url, 'sessions'))


def operators():
    with Balancer(BALANCER, 'one') as b, Member('gpu1', b.url) as m:
        m.ready(b.url)
        check('cordon', ordered(b.url, 'cordon', 'gpu1')['code'] == 0 and told(m, (CORDON, 1)) and refused(asked(b.url), LATER, ''))
        m.cut()
        check('a server is told when it connects again', waiting.until(lambda: m.registered[b.url]['cordoned'] == 1, waiting.AT_ONCE))
        check('uncordon', ordered(b.url, 'uncordon', 'gpu1')['code'] == 0 and m.ready(b.url) and asked(b.url)['type'] == GRANT)
        got = asked(b.url)
        m.claim(got['id'])
        waiting.until(lambda: any(p['state'] == 'running' for r in looked(b.url, 'sessions')['reservations'] for p in r['parts']), waiting.AT_ONCE)
        check('kill', ordered(b.url, 'kill', got['id'].hex())['code'] == 0 and waiting.until(lambda: m.got(KILL, got['id']), waiting.AT_ONCE))
        unused = asked(b.url, memory=2 * GIB)['id']
        check('kill before any program has used the ticket', ordered(b.url, 'kill', unused.hex())['code'] == 0 and waiting.until(lambda: [o['kind'] for o in list(m.orders) if o['id'] == unused][:1]) == [KILL] and
              waiting.until(lambda: all(r['id'] != unused.hex() for r in looked(b.url, 'sessions')['reservations']), waiting.AT_ONCE), looked(b.url, 'sessions'))
        check('nothing to kill', ordered(b.url, 'kill', '00' * 16)['code'] == INVALID and ordered(b.url, 'kill', '77')['code'] == INVALID)
        check('drain', ordered(b.url, 'drain', 'gpu1', '7')['code'] == 0 and waiting.until(lambda: [5000 < o['number'] <= 7000 for o in m.orders if o['kind'] == DRAIN] == [True], waiting.AT_ONCE), m.orders)
        check('no such server', ordered(b.url, 'cordon', 'gpu9')['code'] == INVALID)
        check('no such command', ordered(b.url, 'paint', 'gpu1')['code'] == INVALID)
        ordered(b.url, 'uncordon', 'gpu1')
        m.ready(b.url)
        check('a quota', ordered(b.url, 'quota', 'default', 'gpus=1,memory=20GiB')['code'] == 0)
        answer = asked(b.url)
        check('is kept to', refused(answer, LATER, 'default'), answer)
        check('never more than the limit', refused(asked(b.url, memory=21 * GIB), DENIED, ''))
        shown = looked(b.url, 'quota')['tenants']
        check('is shown', [(t['tenant'], t['gpus_limit'], t['memory_limit_bytes'], t['limited']) for t in shown] == [('default', 1, 20 * GIB, True)], shown)
        check('a wrong one', ordered(b.url, 'quota', 'default', 'gpus=many')['code'] == INVALID)
        check('and removed', ordered(b.url, 'quota', 'default')['code'] == 0 and asked(b.url)['type'] == GRANT)
        check('a server that is here is not forgotten', ordered(b.url, 'forget', 'gpu1')['code'] == INVALID)
        m.close()
        waiting.until(lambda: looked(b.url, 'info')['info']['servers_here'] == 0, waiting.AT_ONCE)
        check('forget', ordered(b.url, 'forget', 'gpu1')['type'] == DONE and waiting.until(lambda: not looked(b.url, 'fleet')['reservations'], waiting.AT_ONCE) and
              looked(b.url, 'fleet')['servers'] == [])


def token(folder, name, scope, *limits):
    done = subprocess.run([OUTBOARD, 'token', 'create', '--file', folder / 'tokens', '--name', name, '--scope', scope, *limits], capture_output=True, text=True, timeout=60, env=ENV)
    return done.stdout.split()[-1] if done.returncode == 0 else done.stderr


def tokens():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        alice, bob, namesake, look, serve, admin = (token(folder, *words) for words in
                                                    (('alice/laptop', 'use'), ('bob', 'use'), ('gpu1', 'use'), ('eve', 'look'), ('rack', 'serve'), ('root', 'admin')))
        (folder / 'tenants').write_text('# quotas\nbob gpus=1\n* gpus=10\n')
        with Balancer(BALANCER, 'one', '--tokens', folder / 'tokens', '--tenants', folder / 'tenants') as b, Member('gpu1', b.url, gpus=2, token=serve) as m:
            check('a server with its token', m.ready(b.url, look))
            check('without a token', refused(asked(b.url), DENIED, 'OUTBOARD_TOKEN'))
            check('a token for looking', refused(asked(b.url, look), DENIED, "scope 'use'"))
            got = asked(b.url, alice)
            check('the tenant is the name up to the slash', got['type'] == GRANT and got['tenant'] == 'alice' and ticket_of(got['parts'][0])['tenant'] == 'alice')
            check("another tenant's id", refused(asked(b.url, bob, reservation=got['id']), INVALID, 'another tenant'))
            check("a quota of the file", asked(b.url, bob)['type'] == GRANT and refused(asked(b.url, bob), LATER, 'bob'))
            mine, all_of = looked(b.url, 'sessions', alice), looked(b.url, 'sessions', look)
            check('a tenant sees its own', [r['tenant'] for r in mine['reservations']] == ['alice'] and mine['other_reservations'] == 1 and len(all_of['reservations']) == 2, mine)
            check('and its own events beside those of servers', waiting.until(lambda: {(e['kind'], e['subject']) for e in looked(b.url, 'events', alice)['events']} >= {('joined', 'gpu1'), ('placed', 'alice')},
                                                                              waiting.AT_ONCE) and not any(e['subject'] == 'bob' for e in looked(b.url, 'events', alice)['events']))
            check('a user is no operator', ordered(b.url, 'cordon', 'gpu1', token=alice)['code'] == DENIED)
            check('nor a server', looked(b.url, 'servers', serve)['code'] == DENIED)
            check('an operator is', ordered(b.url, 'cordon', 'gpu1', token=admin)['code'] == 0)
            m.claim(got['id'])
            check("another tenant's reservation is not killed", ordered(b.url, 'kill', got['id'].hex(), token=bob)['code'] == DENIED and not m.got(KILL))
            check('the own one is', ordered(b.url, 'kill', got['id'].hex(), token=alice)['code'] == 0)
            with Member('gpu1', b.url, token=serve) as twin:
                waiting.until(lambda: twin.refused, waiting.AT_ONCE)
            check('a tenant has the name of a server', refused(asked(b.url, namesake), LATER, ''))

            def told(who):
                return {(e['kind'], e['subject']) for e in looked(b.url, 'events', who)['events']}
            secret = {('killed', 'gpu1'), ('twin', 'gpu1')}
            check('an operator sees the events of both', waiting.until(lambda: secret | {('refused', 'gpu1')} <= told(look), waiting.AT_ONCE), told(look))
            check('the tenant its own, and what all may see of the server', told(namesake) & (secret | {('refused', 'gpu1'), ('joined', 'gpu1')}) == {('refused', 'gpu1'), ('joined', 'gpu1')}, told(namesake))
            with Member('gpu2', b.url, token=alice) as wrong:
                check('a server with the wrong token', waiting.until(lambda: wrong.refused, waiting.AT_ONCE) and refused(wrong.refused[0], DENIED, "'serve'"), wrong.refused)
            for _ in range(6):
                last = looked(b.url, 'info', 'obt_00000000_' + '0' * 64)
            check('guessing is slowed down', refused(last, LATER, 'try again in') or refused(looked(b.url, 'info', look), LATER, 'try again in'), last)


def token_limits():
    """What a token allows holds for requests of every form, also for one that waits."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        serve, admin = token(folder, 'rack', 'serve'), token(folder, 'root', 'admin')
        small = token(folder, 'small', 'use', '--max-memory', '512MiB', '--share', '0.25', '--max-priority', 'low')
        with Balancer(BALANCER, 'one', '--tokens', folder / 'tokens') as b, Member('gpu1', b.url, token=serve) as m:
            m.ready(b.url, admin)

            def made(answer):
                ticket = answer and answer['type'] == GRANT and ticket_of(answer['parts'][0])
                return ticket and (ticket['memory'], ticket['share'], ticket['priority'])

            check('within its limits', made(asked(b.url, small, memory=1 << 28, share=100000)) == (1 << 28, 100000, 1))
            got = asked(b.url, small)
            check('a request without wishes gets no more', made(got) == (1 << 29, 250000, 1), got)
            check('more memory is refused', refused(asked(b.url, small, memory=(1 << 29) + 1), DENIED, 'less memory'))
            for fields in {'exclusive': 1}, {'policy': 8}, {'exclusive': 1, 'memory': 1 << 20}, {'exclusive': 1, 'wait': 60}:
                check(f'a whole device is refused, {fields}', refused(asked(b.url, small, **fields), DENIED, 'an exclusive request'))
            check('a priority is refused', all(refused(asked(b.url, small, priority=p, wait=wait), DENIED, 'priority') for p in (2, 3) for wait in (0, 60)))
            check('a share is lowered', made(asked(b.url, small, share=500000)) == (1 << 29, 250000, 1))
            same = asked(b.url, small, reservation=got['id'], memory=1 << 33)
            check('asking again for the same reservation is no way around', refused(same, DENIED, 'less memory'), same)
            with Client(b.url, admin) as holder, Client(b.url, small) as c:
                whole = holder.grant(memory=14 * GIB + (3 << 28))['id']
                c.ask(wait=100)
                check('with the device in use it waits', c.receive()['type'] == QUEUED)
                holder.send(type=68, id=whole)
                check('and gets no more afterwards', made(c.answer()) == (1 << 29, 250000, 1))


def state_folder():
    """Without --registry the reservations are in a file, which is found again after a restart."""
    with tempfile.TemporaryDirectory() as name:
        places = {'STATE_DIRECTORY': ({'STATE_DIRECTORY': f'{name}/unit:{name}/other', 'XDG_STATE_HOME': f'{name}/xdg', 'HOME': name}, 'unit/registry'),
                  'XDG_STATE_HOME': ({'XDG_STATE_HOME': f'{name}/xdg/state', 'HOME': name}, 'xdg/state/outboard-balancer/registry'),
                  'HOME': ({'XDG_STATE_HOME': 'relative', 'HOME': name}, '.local/state/outboard-balancer/registry')}
        pathlib.Path(name, 'unit').mkdir()
        for what, (env, file) in places.items():
            options = {'listen': f'unix:{name}/socket', 'env': {'STATE_DIRECTORY': '', 'XDG_STATE_HOME': '', **env}}
            with Server(BALANCER, '--name', 'one', **options) as b, Member('gpu1', b.url) as m:
                check(f'by {what} the registry is {file}', b.line(f'registry static:{name}/{file}') and m.ready(b.url), b.lines)
                asked(b.url, memory=4 * GIB)
            with Server(BALANCER, '--name', 'one', **options) as b:
                check('and keeps reservations', waiting.until(lambda: reserved(b.url, 'gpu1') == [4 * GIB], waiting.AT_ONCE))
        nowhere = {'STATE_DIRECTORY': '', 'XDG_STATE_HOME': '', 'HOME': ''}
        for env, words in (nowhere, '--registry static:FILE, etcd:URLS or memory'), ({**nowhere, 'XDG_STATE_HOME': f'{name}/xdg/state/outboard-balancer/registry'}, 'name another place with --registry'):
            done = subprocess.run([BALANCER, '--listen', f'unix:{name}/socket'], capture_output=True, text=True, timeout=60, env={**ENV, **env})
            check('no place for it', done.returncode == 1 and words in done.stderr, done.stderr)


def unreadable():
    """A file of quotas that cannot be read has no tenants, and so no limits: it is an error."""
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run([BALANCER, '--listen', f'unix:{name}/socket', '--tenants', name, '--registry', 'memory'], capture_output=True, text=True, timeout=60, env=ENV)
        check('a file of quotas that cannot be read', done.returncode == 1 and 'Is a directory' in done.stderr, done.stderr)


def followers():
    """Who is told that a reservation moves, and who may order it."""
    def follow(url, reservation, token):
        client = Client(url, token)
        client.send(type=FOLLOW, id=reservation, token=token)
        return client

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        alice, bob, serve, admin = (token(folder, *words) for words in (('alice', 'use'), ('bob', 'use'), ('rack', 'serve'), ('root', 'admin')))
        (folder / 'tenants').write_text('alice gpus=1\n')
        with Balancer(BALANCER, 'one', '--tokens', folder / 'tokens', '--tenants', folder / 'tenants') as b, Member('gpu1', b.url, token=serve) as one, Member('gpu2', b.url, token=serve) as two:
            one.ready(b.url, alice), two.ready(b.url, alice)
            fixed, free = asked(b.url, bob)['id'], asked(b.url, alice, restartable=1)['id']
            check('a program that may not be started again stays', INVALID == ordered(b.url, 'move', fixed.hex(), token=admin)['code'])
            check('a user is no operator of moves', ordered(b.url, 'move', free.hex(), token=alice)['code'] == DENIED)
            check('nor a nobody a follower', refused(follow(b.url, free, '').receive(), DENIED, 'OUTBOARD_TOKEN'))
            check("nor another tenant", refused(follow(b.url, free, bob).receive(), INVALID, 'no such reservation'))
            with follow(b.url, free, alice) as early, follow(b.url, fixed, bob):
                check('a tenant at its quota can be moved', ordered(b.url, 'move', free.hex(), token=admin)['code'] == 0)
                told = early.receive()
                check('the follower is told', told['type'] == MOVED and told['id'] == free, told)
            with follow(b.url, free, alice) as late:
                again = late.receive()
                check('one that comes later too', {**again, 'left': told['left']} == told and 0 < again['left'] <= told['left'], again)
            check('but gets nothing else meanwhile', refused(asked(b.url, alice), LATER, 'alice'))
            new = asked(b.url, alice, reservation=told['successor'])
            check('the offer is granted', new['type'] == GRANT and new['parts'][0]['server'] == told['server'], new)
            servers = {'gpu1': one, 'gpu2': two}
            to = servers.pop(told['server'])
            was, = servers.values()
            was.claim(free)
            to.claim(told['successor'])
            check('the old one is ended when the new one is in use', waiting.until(lambda: was.got(KILL, free)))
            check('and is gone', waiting.until(lambda: [r['id'] for r in looked(b.url, 'sessions', alice)['reservations']] == [told['successor'].hex()]))
            check('its quota is free again', refused(asked(b.url, alice), LATER, 'alice') and looked(b.url, 'quota', alice)['tenants'][0]['gpus'] == 1)


def peers():
    """Those that are no clients of a balancer."""
    with Balancer(BALANCER, 'one') as b:
        for intent, what in (1, 'a session'), (2, 'a join'), (16, 'a question about the load'):
            answer = raw_refusal(b.url, preface(intent))
            check(f'{what} is told to use --pool', '--pool' in answer['text'], answer)
        check('another protocol', 'balancer' in raw_refusal(b.url, b'GET / HTTP/1.1\r\n\r\n')['text'])
        check('another version', 'version' in raw_refusal(b.url, preface(version=9))['text'])
        with Link(b.url) as link:
            link.send(type=74)
            check('a message of the other direction', link.receive()['code'] == INVALID and link.receive() is None)
    for options, words in (('--listen', 'tcp://0.0.0.0:0', '--registry', 'memory'), 'no TLS'), (('--listen', 'shm:/tmp/x', '--registry', 'memory'), 'unix:'), (('--listen', 'tcp://127.0.0.1:0', '--name', 'a b'), '--name'), ((), '--listen'), \
            (('--listen', 'tcp://127.0.0.1:0', '--registry', 'zookeeper:x'), 'zookeeper'):
        done = subprocess.run([BALANCER, *options], capture_output=True, text=True, timeout=60, env=ENV)
        check(f'it does not start with {" ".join(options)}', done.returncode in (1, 2) and words in done.stderr, done.stderr)
    with tempfile.TemporaryDirectory() as name:
        file = pathlib.Path(name) / 'b.ini'
        file.write_text('[balancer]\nlisten = tcp://127.0.0.1:0\npolicy = spread\n')
        done = subprocess.run([BALANCER, '--check-config', file], capture_output=True, text=True, timeout=60, env=ENV)
        check('a configuration', done.returncode == 0 and 'no errors' in done.stdout, done.stderr)
        file.write_text('[balancer]\npolitics = spread\n')
        done = subprocess.run([BALANCER, '--check-config', file], capture_output=True, text=True, timeout=60, env=ENV)
        check('a wrong one', done.returncode == 2 and f'{file}:2' in done.stderr, done.stderr)


def crowds():
    """Requests that arrive together are placed together."""
    with Balancer(BALANCER, 'one') as b, Member('gpu1', b.url, gpus=4) as m1, Member('gpu2', b.url, gpus=4) as m2:
        m1.ready(b.url), m2.ready(b.url)
        clients = [Client(b.url) for _ in range(40)]
        same = os.urandom(16)
        for i, c in enumerate(clients):
            c.ask(same if i % 10 == 0 else None, memory=4 * GIB)
        answers = [c.answer() for c in clients]
        granted = [x for x in answers if x['type'] == GRANT]
        check('each place is given once', len({x['id'] for x in granted}) == 32 and len(granted) == 35, len(granted))
        check('the same id gets one reservation', len({ticket_of(x['parts'][0])['fence'] for x in granted if x['id'] == same}) == 1)
        check('the others are refused for now', all(refused(x, LATER, 'memory') for x in answers if x['type'] != GRANT), [x for x in answers if x['type'] != GRANT][:1])
        check('all is reserved', reserved(b.url, 'gpu1') + reserved(b.url, 'gpu2') == [16 * GIB] * 8)
        fences = {(x['parts'][0]['server'], ticket_of(x['parts'][0])['fence']) for x in granted}
        check('each ticket has a fence of its own', len(fences) == 32)
        for m in m1, m2:
            for x in granted:
                if x['parts'][0]['server'] == m.name:
                    m.claim(x['id'])
                    m.end(x['id'])
        check('and all ends', nothing_reserved(b.url, 'gpu1') and nothing_reserved(b.url, 'gpu2'))
        ordered(b.url, 'quota', 'default', 'sessions=3')
        for c in clients:
            c.ask(memory=GIB)
        check('a quota holds in a crowd', sum(c.answer()['type'] == GRANT for c in clients) == 3)
        ordered(b.url, 'quota', 'default')
        for c in clients[:10]:
            c.ask(memory=GIB, apart='x')
        check('and so does "apart"', sum(c.answer()['type'] == GRANT for c in clients[:10]) == 2)
        for c in clients:
            c.close()


def restarts():
    """A balancer that was killed: with a file it knows its reservations, in memory it does not."""
    with tempfile.TemporaryDirectory() as name:
        listen, registry = f'unix:{name}/socket', f'static:{name}/registry'
        b = Balancer(BALANCER, 'one', '--ticket-key', f'{name}/key', registry=registry, listen=listen)
        with Member('gpu1', listen) as m:
            m.ready(b.url)
            got = asked(b.url, memory=4 * GIB)
            m.claim(got['id'], ticket_of(got['parts'][0])['fence'])
            key = m.registered[listen]['key']
            done = subprocess.run([BALANCER, '--listen', f'unix:{name}/other', '--registry', registry], capture_output=True, text=True, timeout=60, env=ENV)
            check('a second balancer cannot have the file', done.returncode == 1 and f'{name}/registry' in done.stderr, done.stderr)
            b.kill()
            with Balancer(BALANCER, 'one', '--ticket-key', f'{name}/key', registry=registry, listen=listen) as b:
                check('after a restart the reservation is there', m.ready(b.url) and reserved(b.url, 'gpu1') == [4 * GIB])
                again = asked(b.url, reservation=got['id'], memory=4 * GIB)
                check('and its grant', ticket_of(again['parts'][0]) == ticket_of(got['parts'][0]) and m.registered[listen]['key'] == key)
                m.end(got['id'])
                check('and its end', nothing_reserved(b.url, 'gpu1'))
            m.claim(got['id'], 7)
            with Balancer(BALANCER, 'one', registry='memory', listen=listen) as b:
                m.ready(b.url)
                check('without it an event tells of what it does not know', waiting.until(lambda: [e for e in looked(b.url, 'events')['events'] if e['kind'] == 'unknown'], waiting.AT_ONCE))
                check('another key signs', m.registered[listen]['key'] != key)


def tls():
    with tempfile.TemporaryDirectory() as name:
        files = f'{name}/cert', f'{name}/key'
        subprocess.run([OUTBOARD, 'cert', '--cert', files[0], '--key', files[1], '--names', 'localhost,127.0.0.1'], check=True, capture_output=True, timeout=60, env=ENV)
        with Balancer(BALANCER, 'one', '--tls-cert', files[0], '--tls-key', files[1], listen='tls://127.0.0.1:0') as b, Member('gpu1', b.url, ca=files[0]) as m:
            with Client(b.url, ca=files[0]) as c:
                check('over TLS', waiting.until(lambda: c.query('info')['info']['servers'] == 1, waiting.AT_ONCE) and waiting.until(lambda: c.query('servers')['servers'][0]['state'] == 'ready', waiting.AT_ONCE))
                check('a grant', c.grant(memory=GIB)['type'] == GRANT)
            for what, data in ('no TLS', preface() + Frame(payload=pack({'type': 69, 'what': 'info'})).bytes()), ('half a handshake', preface() + b'\x16\x03\x01\x02\x00\x01'):
                with connect(b.url) as sock:
                    sock.sendall(data)
                    with contextlib.suppress(OSError):  # it may be closed already
                        sock.shutdown(socket.SHUT_WR)
                    check(f'{what} is closed', receive_all(sock) is not None)
            with Client(b.url, ca=files[0]) as c:
                check('and others are served', c.query('info')['schema'] == 1)
            m.close()


for test in life, incarnations, several, silent, unreachable, operators, killed_twice, drains, tokens, token_limits, state_folder, unreadable, followers, peers, crowds, restarts, tls:
    test()
finish()
