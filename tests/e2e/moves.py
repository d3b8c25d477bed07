# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Programs that may be started again are moved between real servers: by an operator, and by rounds of
rebalancing.

    moves.py OUTBOARD SERVER BALANCER RACK_LOAD
"""
import os
import signal
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from moving import Rack, programs_of
from outboard_test import check, finish
from pool_peers import CANCEL, FOLLOW, GIB, GRANT, INVALID, LATER, MOVED, QUEUED, REFUSED, Balancer, Client, Member, looked, ordered

OUTBOARD, SERVER, BALANCER, LOAD = sys.argv[1:5]


def rack(folder, *names, **more):
    return Rack(folder, OUTBOARD, SERVER, BALANCER, LOAD, names, **more)


def other_of(r, name):
    return next(n for n in r.servers if n != name)


def busy_as_it_is(r):
    """A program with a short call now and then is not busy; one that always works is."""
    idle = r.start(0, 50, options=())
    check('a hundred short calls', waiting.until(lambda: idle.steps() >= 100), idle.steps())
    at = idle.server()
    check('leave the device idle', waiting.until(lambda: r.busy()[at] < 500), r.busy())
    idle.end()
    works = r.start(1000, 0, options=())
    check('a device that works all the time', waiting.until(lambda: r.busy().get(works.server() or '', 0) > 800), r.busy())
    works.end()


def by_operator(r):
    p = r.start(10, 20)
    check('a program works', p.works(), p.err.read_text())
    first = p.server()
    other = other_of(r, first)
    refused = r.move(p, 'nowhere')
    check('there must be such a server', refused.returncode == 64 and 'no server of this name' in refused.stderr, (refused.returncode, refused.stderr))
    refused = r.move(p, first)
    check('and another one', refused.returncode == 64 and 'on this server already' in refused.stderr, (refused.returncode, refused.stderr))
    check('nothing has happened', not r.events('moving') and len(p.begins()) == 1)
    done = r.move(p)
    check('the move is offered', done.returncode == 0 and f'a place on {other}' in done.stdout + done.stderr, (done.returncode, done.stdout, done.stderr))
    check('it is started again', waiting.until(lambda: len(p.begins()) == 2), (p.begins(), p.err.read_text()))
    check('on the other server', waiting.until(lambda: p.server() == other) and p.begins()[0][1] != p.begins()[1][1], (p.server(), p.begins()))
    check('where it was', p.begins()[1][0] > 0, p.begins())
    check('and works', p.works())
    check('the old place is free', waiting.until(lambda: r.where() == {first: 0, other: 1}), r.where())
    check('one event of each kind', waiting.until(lambda: [len(r.events(k)) for k in ('moving', 'moved')] == [1, 1]), r.events('moved'))
    check('which names both servers', f'from {first} to {other}' in r.events('moved')[0]['text'], r.events('moved'))
    done = r.move(p, first)
    check('and back', done.returncode == 0 and waiting.until(lambda: len(p.begins()) == 3 and p.server() == first), (done.stderr, p.begins()))
    check('its user is told', p.err.read_text().count('started again there, restart') == 2, p.err.read_text())
    check('it ends with its own exit code', p.end() == 0 and p.out.read_text().count('done\n') == 1, (p.process.returncode, p.out.read_text()))
    check('nothing stays reserved', r.empty(), r.look('gpu', 'list'))


def hard_to_end(r):
    p = r.start(10, 20, 'stubborn', options=('--restartable', '--grace', '1'))
    p.works()
    first = p.server()
    r.move(p)
    check('a program that ignores SIGTERM is killed', waiting.until(lambda: len(p.begins()) == 2 and p.server() == other_of(r, first)), (p.begins(), p.err.read_text()))
    check('and ends well', p.end() == 0, p.process.returncode)
    p = r.start(10, 20, command=('sh', '-c', '{load}; exit 7'))
    p.works()
    before = programs_of(p.process.pid)
    r.move(p)
    check('a program in a script', waiting.until(lambda: len(p.begins()) == 2 and p.works()), (p.begins(), p.err.read_text()))
    check('nothing of it is left', len(before) == 1 and not os.path.exists(f'/proc/{before[0]}') and len(programs_of(p.process.pid)) == 1, (before, programs_of(p.process.pid)))
    check('the exit code is the script\'s', p.end() == 7, p.process.returncode)


def ends(r):
    moved = 4  # by_operator, hard_to_end
    check('each earlier move is noted once', waiting.until(lambda: r.count('moved') == moved), r.events('moved'))
    p = r.start(10, 20, options=('--restartable', '--restarts', '1'))
    p.works()
    r.move(p)
    waiting.until(lambda: len(p.begins()) == 2 and p.works())
    check('a program that has used up its restarts is known', waiting.until(lambda: (now := p.reservation()) and not now['restartable']), p.reservation())
    refused = r.move(p)
    check('its last move is noted', waiting.until(lambda: r.count('moved') == moved + 1), r.events('moved'))
    check('which is no warning', 'not moved any more' not in p.err.read_text(), p.err.read_text())
    check('and offered nothing', refused.returncode != 0 and 'cannot be started again' in refused.stderr and p.works() and len(p.begins()) == 2, (refused.stderr, p.begins()))
    p.process.send_signal(signal.SIGTERM)
    check('a signal is passed on', p.process.wait(waiting.LONG) == -signal.SIGTERM, p.process.returncode)
    p = r.start(10, 20, options=())
    p.works()
    refused = r.move(p)
    check('only with --restartable', refused.returncode == 64 and '--restartable' in refused.stderr, (refused.returncode, refused.stderr))
    p.process.kill()
    p.process.wait()
    p = r.start(10, 20)
    p.works()
    child = programs_of(p.process.pid)[0]
    p.process.kill()
    p.process.wait()
    check('with the command ends the program', waiting.until(lambda: not os.path.exists(f'/proc/{child}') or b'rack_load' not in open(f'/proc/{child}/cmdline', 'rb').read()))
    done = r.tool('run', '--grace', '3', '--', 'true')
    check('--grace needs --restartable', done.returncode == 2 and '--restartable' in done.stderr, (done.returncode, done.stderr))
    done = r.tool('run', '--restartable', '--', '/nowhere')
    check('a command that does not exist', done.returncode == 127, (done.returncode, done.stderr))


def rounds(folder):
    """Three programs on one of three servers: one stays."""
    with rack(folder, 'gpu1', 'gpu2', 'gpu3', options=('--rebalance', '1', '--policy', 'round-robin')) as r:
        check('three servers are ready', r.ready() and r.only('gpu1'), r.look('server', 'list'))
        programs = [r.start(1000, 0) for _ in range(3)]
        check('all on one server', waiting.until(lambda: r.where() == {'gpu1': 3, 'gpu2': 0, 'gpu3': 0}), r.where())
        stays = r.start(0, 100, options=())
        check('and one that may not be moved', waiting.until(stays.server) == 'gpu1')
        r.only('gpu1', 'gpu2', 'gpu3')
        check('are spread', waiting.until(lambda: r.where() == {'gpu1': 2, 'gpu2': 1, 'gpu3': 1}), (r.where(), r.events('moving')))
        check('by one move each', waiting.until(lambda: r.count('moved') == 2) and r.count('moving') == 2, (r.events('moving'), r.events('moved')))
        check('not the one that may not', len(stays.begins()) == 1 and stays.works())
        check('all work', all(p.works() for p in programs))
        info = looked(r.pool, 'info')['info']
        check('the counts tell', info['moves_offered_total'] == 2 and info['moves_total'] == 2, info)
        check('all end well', [p.end() for p in [*programs, stays]] == [0] * 4, [p.err.read_text() for p in programs])


def offers():
    """Balancer and client alone, with played servers: an offer that is not taken, and who may know."""
    with Balancer(BALANCER, 'one') as b, Member('gpu1', b.url) as one, Member('gpu2', b.url, memory=4 * GIB) as two, Client(b.url) as c:
        one.ready(b.url), two.ready(b.url)
        grant = c.grant(restartable=1, memory=3 * GIB, where='server!=gpu3')
        old, at = grant['id'], grant['parts'][0]['server']
        (one if at == 'gpu1' else two).claim(old)
        c.send(type=FOLLOW, id=old, token='')
        waiting.until(lambda: looked(b.url, 'sessions')['reservations'][0]['parts'][0]['state'] == 'running')
        check('a move is made', ordered(b.url, 'move', old.hex())['code'] == 0)
        moved = c.receive()
        check('the follower is told', moved['type'] == MOVED and moved['id'] == old and moved['successor'] != old and moved['server'] != at, moved)
        check('once at a time', 'already' in ordered(b.url, 'move', old.hex())['text'])
        both = {r['id']: r for r in looked(b.url, 'sessions')['reservations']}
        check('both are reserved', len(both) == 2 and both[old.hex()]['moving_to'] == moved['server'], both)
        with Client(b.url) as other:
            check('the offer can be had', other.grant(moved['successor'])['parts'][0]['server'] == moved['server'])
            other.send(type=CANCEL, id=moved['successor'], token='')
            other.receive()
        check('given back, the old one stays', waiting.until(lambda: [r['id'] for r in looked(b.url, 'sessions')['reservations']] == [old.hex()]), looked(b.url, 'sessions'))
        with Client(b.url) as other:
            second = other.grant(restartable=1, memory=3 * GIB)
            told = ordered(b.url, 'move', second['id'].hex())
            check('where there is no room nothing is offered', told['code'] == LATER and 'free memory' in told['text'] and len(looked(b.url, 'sessions')['reservations']) == 2, told)
            check('nothing is promised twice', all(g['reserved_bytes'] <= g['memory_bytes'] for g in looked(b.url, 'gpus')['gpus']))
        with Client(b.url) as other:
            other.send(type=FOLLOW, id=os.urandom(16), token='')
            answer = other.receive()
        check('what does not exist cannot be followed', answer['type'] == REFUSED and answer['code'] == INVALID, answer)


def waiting_ones():
    """A request that has waited goes to the server with less load."""
    with Balancer(BALANCER, 'one', '--policy', 'least-load') as b, Member('gpu1', b.url) as one, Member('gpu2', b.url) as two, Client(b.url) as c, Client(b.url) as d:
        one.busy, two.busy = 950, 20
        one.ready(b.url), two.ready(b.url)
        waiting.until(lambda: {g['server']: g['busy_per_mille'] for g in looked(b.url, 'gpus')['gpus']} == {'gpu1': 950, 'gpu2': 20})
        ordered(b.url, 'quota', 'default', 'sessions=1')
        first = c.grant(memory=GIB, where='server=gpu2')['id']
        two.claim(first)
        d.ask(memory=GIB, wait=60)
        check('a request waits for its quota', d.receive()['type'] == QUEUED)
        two.end(first)
        grant = d.answer()
        check('and goes to the idle server', grant['type'] == GRANT and grant['parts'][0]['server'] == 'gpu2', grant)
        one.busy, two.busy = 20, 950
        waiting.until(lambda: {g['server']: g['busy_per_mille'] for g in looked(b.url, 'gpus')['gpus']} == {'gpu1': 20, 'gpu2': 950})
        two.claim(grant['id'])
        with Client(b.url) as e:
            e.ask(memory=GIB, wait=60)
            check('another one waits', e.receive()['type'] == QUEUED)
            two.end(grant['id'])
            grant = e.answer()
            check('the other way round', grant['type'] == GRANT and grant['parts'][0]['server'] == 'gpu1', grant)


def main():
    offers()
    waiting_ones()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with rack(folder, 'gpu1', 'gpu2') as r:
            check('two servers are ready', r.ready(), r.look('server', 'list'))
            busy_as_it_is(r)
            by_operator(r)
            hard_to_end(r)
            ends(r)
    with tempfile.TemporaryDirectory() as folder:
        rounds(folder)


main()
finish()
