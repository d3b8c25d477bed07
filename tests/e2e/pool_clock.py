# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A pool of real parts on etcd with what operators get wrong: a balancer whose clock is an hour off,
two balancers of one name, two servers of one name.

    pool_clock.py OUTBOARD SERVER BALANCER POOL_CLIENT CLOCK_LIBRARY
"""
import contextlib
import os
import re
import subprocess
import sys
import time

sys.path.append(sys.path[0] + '/../lib')
import etcd
import waiting
from outboard_test import ENV, Server, check, finish
from pool_peers import CANCEL, FOLLOW, GRANT, KILL, MOVED, VOID, Balancer, Client, Member, asked, looked, ordered, ticket_of

OUTBOARD, SERVER, BALANCER, CLIENT, CLOCK = sys.argv[1:6]
LEASE = 10  # seconds, of a balancer


def run(url, *options):
    done = subprocess.run([OUTBOARD, 'run', '--pool', url, '--vram', '64MiB', '--hold', '1', *options, '--', CLIENT, '0'], capture_output=True, text=True, timeout=waiting.LONG, env=ENV)
    return done.returncode, done.stdout + done.stderr


def serve(pool, name):
    return Server(SERVER, '--driver', 'soft', '--nvml', 'none', '--pool', pool, '--pool-name', name)


def ready(url, *names):
    return waiting.until(lambda: sorted(s['name'] for s in looked(url, 'servers')['servers'] if s['state'] == 'ready') == sorted(names))


def members(url):
    return sorted(looked(url, 'info')['info']['balancers'])


def wrong_clock(stack, cluster, right, seconds, words):
    """Tickets of such a balancer are refused, with the reason; nothing else depends on its clock."""
    preload = ':'.join(filter(None, (ENV.get('LD_PRELOAD'), CLOCK)))
    wrong = Balancer(BALANCER, 'wrong', registry=cluster.url, env={'LD_PRELOAD': preload, 'OUTBOARD_TEST_CLOCK': str(seconds)})
    server = stack.enter_context(serve(f'{right.url},{wrong.url}', 'gpu1'))
    check('the server is ready at both', ready(right.url, 'gpu1') and ready(wrong.url, 'gpu1'))
    hour = r'3[56]\d\d'  # the server subtracts its own clock some time after the balancer has read its
    check('the server says whose clock is wrong', server.line(f'the clock of balancer wrong is {hour} s {words}'), server.lines)
    code, said = run(wrong.url)
    check('a program that asks this one is told', code == 3 and f's {words}' in said and 'set both by the network' in said, (code, said))
    code, said = run(right.url, '--wait-for', '60')
    check('one that asks the other runs', code == 0 and 'right' in said, (code, said))
    unused(right, wrong)
    offered(right, wrong)
    drained(right, wrong, server)
    events_go_on(right, wrong)
    waiting.let_pass(LEASE + 2, 'a lease by the wrong clock would have ended, or never')
    check('its leases live', members(right.url) == members(wrong.url) == ['right', 'wrong'] and ready(right.url, 'gpu1') and ready(wrong.url, 'gpu1'))
    check('the reservation that could not be used is freed', waiting.until(lambda: not looked(right.url, 'sessions')['reservations']), looked(right.url, 'sessions'))
    wrong.kill()
    check('and end when it is gone', waiting.until(lambda: members(right.url) == ['right']))
    server.stop()


def has_looked(balancer):
    """Returns after the balancer has looked at its servers and its reservations several times from now."""
    with Member('witness-' + os.urandom(4).hex(), balancer.url) as witness:
        witness.ready(balancer.url)
        witness.claim(os.urandom(16))
        return waiting.until(lambda: balancer.said(f' unknown {witness.name}: '))


def unused(right, wrong):
    """A ticket that is not used at once, as by a program that begins slowly, is not taken back."""
    with Member('slow', right.url, wrong.url) as slow:
        slow.ready(right.url), slow.ready(wrong.url)
        got = asked(right.url, where='server=slow')['id']
        check('the wrong one knows of it', waiting.until(lambda: any(r['id'] == got.hex() for r in looked(wrong.url, 'sessions')['reservations'])))
        check('and has looked at it', has_looked(wrong))
        check('it is not taken back', not slow.got(VOID), slow.orders)
        check('the program may come', looked(right.url, 'sessions')['reservations'][0]['parts'][0]['state'] == 'granted', looked(right.url, 'sessions'))
        with Client(right.url) as client:
            client.send(type=CANCEL, id=got, token='')
            check('it is given back', waiting.until(lambda: not looked(right.url, 'sessions')['reservations']))


def offered(right, wrong):
    """A place that one balancer has offered is kept, and its ticket renewed, by another one."""
    with Member('old', right.url, wrong.url, labels='played=yes') as old, Member('new', right.url, wrong.url, labels='played=yes') as new, Client(right.url) as asking, Client(wrong.url) as follower:
        check('both servers are ready', all(m.ready(b.url) for m in (old, new) for b in (right, wrong)))
        grant = asking.grant(restartable=1, where='played=yes')
        here, there = (old, new) if grant['parts'][0]['server'] == 'old' else (new, old)
        here.claim(grant['id'])
        check('a move', waiting.until(lambda: ordered(right.url, 'move', grant['id'].hex())['code'] == 0))
        follower.send(type=FOLLOW, id=grant['id'], token='')
        moved = follower.receive()
        check('who follows at the wrong one has its time', moved['type'] == MOVED and 50 < moved['left'] <= 60, moved)
        waiting.let_pass(12, 'the ticket is renewed if less than 50 s are left')
        answer = asked(wrong.url, reservation=moved['successor'], offered=1)
        check('and gets the place', answer['type'] == GRANT, answer)
        ticket = ticket_of(answer['parts'][0])
        check('with a ticket that lasts', ticket['issued'] + 60 + 10 <= ticket['expires'] <= time.time() + 62, ticket)
        there.claim(moved['successor'])
        check('the move ends', waiting.until(lambda: here.got(KILL, grant['id'])), here.orders)
        there.end(moved['successor'])
        ids = {grant['id'].hex(), moved['successor'].hex()}
        check('both are credited', waiting.until(lambda: not ids & {r['id'] for r in looked(right.url, 'sessions')['reservations']}))


def events_go_on(right, wrong):
    """Who watches the events sees those of both balancers."""
    waiting.until(lambda: any(e['kind'] == 'balancer' and e['subject'] == 'wrong' for e in looked(right.url, 'events')['events']))
    last = max(e['number'] for e in looked(right.url, 'events')['events'])
    check('an event of the right one', ordered(right.url, 'quota', 'default', '')['code'] == 0)
    check('comes after those of the wrong one', waiting.until(lambda: any(e['kind'] == 'quota' for e in looked(right.url, 'events', since=last)['events']), waiting.AT_ONCE), last)


def drained(right, wrong, server):
    """The grace time of a drain is the same for all balancers."""
    with subprocess.Popen([OUTBOARD, 'run', '--pool', right.url, '--vram', '64MiB', '--hold', '1', '--', CLIENT, '600'], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENV) as program:
        check('a program runs', waiting.until(lambda: any(p['state'] == 'running' for r in looked(right.url, 'sessions')['reservations'] for p in r['parts'])))
        check('a drain', ordered(right.url, 'drain', 'gpu1', '600')['code'] == 0)
        check('the wrong one knows of it', waiting.until(lambda: any(s['draining'] for s in looked(wrong.url, 'servers')['servers'])))
        check('and has looked at it', has_looked(wrong))
        check('the program is not ended', program.poll() is None, server.lines)
        graces = [int(found[1]) for line in server.lines if (found := re.search(r'sessions are ended in (\d+) s', line))]
        check('there is one drain, with its time', len(graces) == 1 and 500 < graces[0] <= 600, graces)
        check('without time it is', ordered(right.url, 'drain', 'gpu1', '0')['code'] == 0 and 'drained by its operator' in program.communicate(timeout=waiting.LONG)[1])
    check('it is opened', ordered(wrong.url, 'uncordon', 'gpu1')['code'] == 0 and ready(right.url, 'gpu1'))


def two_balancers(cluster, right):
    with Balancer(BALANCER, 'right', registry=cluster.url) as twin:
        check('a second balancer of a name says so', twin.line('another balancer of this pool has the name right: give one of them another \\(--name\\)'), twin.lines)
        check('the first one serves', run(right.url, '--wait-for', '60')[0] == 0 and members(right.url) == ['right'])


def two_servers(pool):
    with serve(pool, 'gpu2') as second:
        check('a second server of a name is told', second.line("another server with the name 'gpu2' is connected.*--pool-name"), second.lines)
        code, said = run(pool, '--wait-for', '60', '--where', 'server=gpu2')
        check('the first one serves', code == 0 and 'right' in said, (code, said))


etcd.needed()
with contextlib.ExitStack() as STACK:
    CLUSTER = STACK.enter_context(etcd.Cluster(1))
    RIGHT = STACK.enter_context(Balancer(BALANCER, 'right', registry=CLUSTER.url))
    wrong_clock(STACK, CLUSTER, RIGHT, 3600, 'ahead of')
    wrong_clock(STACK, CLUSTER, RIGHT, -3600, 'behind')
    with serve(RIGHT.url, 'gpu2'):
        ready(RIGHT.url, 'gpu2')
        two_servers(RIGHT.url)
        two_balancers(CLUSTER, RIGHT)
finish()
