# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A drained server gives its restartable programs away first; a program that begins slowly is moved
like any other; one whose new server dies goes back; and clients that follow their reservations leave room for servers and requests.

    moves_drain.py OUTBOARD SERVER BALANCER RACK_LOAD
"""
import contextlib
import os
import pathlib
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from moving import Rack
from outboard_test import check, finish
from pool_peers import FOLLOW, GIB, GRANT, INVALID, LATER, REFUSED, Balancer, Client, Member, looked

OUTBOARD, SERVER, BALANCER, LOAD = sys.argv[1:5]
CONNECTIONS = 16  # the fewest that a balancer can have


def drained(r):
    """Nothing is said about rebalancing: the operator's drain and the program's --restartable suffice."""
    r.only('gpu1')
    goes, stays = r.start(10, 20), r.start(10, 20, options=())
    check('two programs on one server', goes.works() and stays.works() and waiting.until(lambda: r.where() == {'gpu1': 2, 'gpu2': 0}), r.where())
    r.only('gpu1', 'gpu2')
    done = r.tool('server', 'drain', '--yes', 'gpu1', '--grace', '600')
    check('a drain with time', done.returncode == 0, done.stderr)
    check('moves the one that may be started again', waiting.until(lambda: r.where() == {'gpu1': 1, 'gpu2': 1}) and goes.server() == 'gpu2', (r.where(), goes.err.read_text()))
    check('and says why', 'from gpu1 to gpu2, because gpu1 is drained' in r.events('moving')[0]['text'], r.events('moving'))
    check('the other one stays', stays.works() and len(stays.begins()) == 1)
    check('and ends by itself', stays.end() == 0 and goes.works() and len(goes.begins()) == 2, (stays.process.returncode, goes.begins()))
    check('the server is empty', waiting.until(lambda: not any(g['reserved_bytes'] for g in r.look('gpu', 'list')['gpus'] if g['server'] == 'gpu1')), r.look('gpu', 'list'))
    r.only('gpu1', 'gpu2')
    check('the program ends well', goes.end() == 0 and r.empty(), goes.err.read_text())
    check('both have ended, one was moved', waiting.until(lambda: r.count('ended') == 2) and r.count('moved') == 1, r.events('ended'))


def slow(r):
    """The old place is free long before the program uses the new one."""
    moved, ended, gate = r.count('moved'), r.count('ended'), pathlib.Path(r.folder) / 'gate'
    gate.touch()
    p = r.start(10, 20, command=('sh', '-c', f'until [ -e {gate} ]; do sleep 0.1; done; exec {{load}}'))
    check('a program works', p.works(), p.err.read_text())
    first = p.server()
    old = p.id()
    gate.unlink()
    check('it is moved', r.move(p).returncode == 0)
    check('its old place is free', waiting.until(lambda: old not in [s['id'] for s in r.sessions()]), r.sessions())
    check('which is no end', r.count('ended') == ended and r.count('moved') == moved, r.events('ended'))
    gate.touch()
    check('it works at the new one', waiting.until(lambda: len(p.begins()) == 2 and p.works() and p.server() not in (None, first)), p.err.read_text())
    check('and has been moved once', waiting.until(lambda: r.count('moved') == moved + 1) and r.count('ended') == ended, (r.events('moved'), r.events('ended')))
    check('then it ends', p.end() == 0 and r.empty() and waiting.until(lambda: r.count('ended') == ended + 1) and r.count('moved') == moved + 1, r.events('ended'))


def back(r):
    """The new server dies while the program ends: it goes back to its old place, which is still there."""
    gate = pathlib.Path(r.folder) / 'end'
    p = r.start(10, 20, options=('--restartable', '--grace', '40', '--hold', '60'),
                command=('sh', '-c', f'{{load}} & load=$!; trap "until [ -e {gate} ]; do sleep 0.1; done; kill $load; wait $load; exit 3" TERM; wait $load'))
    check('a program works', p.works(), p.err.read_text())
    old, first = p.id(), p.server()
    other = next(name for name in r.servers if name != first)
    check('it is moved', r.move(p).returncode == 0 and waiting.until(lambda: 'is ended (SIGTERM' in p.err.read_text()), p.err.read_text())
    r.servers[other].process.kill()
    r.servers[other].process.wait()
    check('its new server is lost', waiting.until(lambda: [s['state'] for s in r.look('server', 'list')['servers'] if s['name'] == other] == ['lost']))
    gate.touch()
    check('it is started again and works', waiting.until(lambda: len(p.begins()) == 2) and p.works(), p.err.read_text())
    check('where it was', p.begins()[0][1] == p.begins()[1][1], p.begins())
    check('with the same reservation', waiting.until(lambda: [s['parts'][0]['state'] for s in r.sessions() if s['id'] == old] == ['running']), r.sessions())
    check('its steps go on, and it ends well', p.begins()[1][0] > 0 and p.end() == 0, (p.begins(), p.err.read_text()))


def followed(url, reservation):
    client = Client(url)
    client.send(type=FOLLOW, id=reservation, token='')
    return client


def refusal(client):
    answer = client.receive()
    return answer and answer['type'] == REFUSED and (answer['code'], answer['text'])


def followers():
    with Balancer(BALANCER, 'one', '--connections', str(CONNECTIONS)) as b, Member('gpu1', b.url, memory=64 * GIB) as m, contextlib.ExitStack() as stack:
        m.ready(b.url)

        def reserved(**more):
            with Client(b.url) as client:
                grant = client.grant(memory=GIB, **more)
            m.claim(grant['id'])
            return grant['id']

        ids = [reserved(restartable=1) for _ in range(CONNECTIONS // 2 + 1)]
        fixed = stack.enter_context(followed(b.url, reserved()))
        told = refusal(fixed)
        check('only restartable ones are followed', told and told[0] == INVALID and '--restartable' in told[1], told)
        fixed.close()
        links = [stack.enter_context(followed(b.url, i)) for i in ids[:-1]]
        again = stack.enter_context(followed(b.url, ids[0]))
        told = refusal(links[0])
        check('the newest follower of a reservation replaces the one before', told and told[0] == LATER and 'another connection' in told[1], told)
        links[0].close()
        more = stack.enter_context(followed(b.url, ids[-1]))
        told = refusal(more)
        check('they have half of the connections', told and told[0] == LATER and '--connections' in told[1], told)
        more.close()
        check('those are closed', waiting.until(lambda: looked(b.url, 'info')['info']['connections'] == 1 + CONNECTIONS // 2 + 1))
        others = [stack.enter_context(Client(b.url)) for _ in range(CONNECTIONS // 2 - 1)]
        check('others have the rest', all(other.query('info') for other in others))
        with Client(b.url) as asks:
            grant = asks.grant(memory=GIB)
            check('a request still gets in', grant and grant['type'] == GRANT, grant)
            check('the oldest follower gives way', links[1].receive() is None)
            before = m.registered[b.url]
            m.cut()
            check('a server that comes back is ready', waiting.until(lambda: m.registered[b.url] is not before) and waiting.until(lambda: asks.query('servers')['servers'][0]['state'] == 'ready'), asks.query('servers'))
        again.close()


def main():
    followers()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with Rack(folder, OUTBOARD, SERVER, BALANCER, LOAD, ('gpu1', 'gpu2')) as r:
            check('two servers are ready', r.ready(), r.look('server', 'list'))
            drained(r)
            slow(r)
            back(r)


main()
finish()
