# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Moves with two balancers on one etcd, of which one is killed: while the registry has its transaction;
after the offer was made, before the client has heard of it; while it leads the rounds; and the client
itself. And a follower at a balancer that has lost the registry.

    moves_deaths.py OUTBOARD SERVER BALANCER RACK_LOAD
"""
import os
import signal
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import etcd
import waiting
from moving import Rack
from outboard_test import check, finish
from pool_peers import FOLLOW, GIB, LATER, MOVED, REFUSED, Balancer, Client, Member, looked, ordered

OUTBOARD, SERVER, BALANCER, LOAD = sys.argv[1:5]


def kill(balancer):
    balancer.process.kill()
    balancer.process.wait()


def leads(balancer):
    return balancer.process.poll() is None and looked(balancer.url, 'info')['info']['leads']


def in_the_transaction(cluster):
    """The registry answers nobody; the balancer that has sent it the move dies before it does."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with Rack(folder, OUTBOARD, SERVER, BALANCER, LOAD, ('gpu1', 'gpu2'), ('one', 'two'), cluster.url, ('--registry-prefix', 'middle/')) as r:
            check('two servers at two balancers', r.ready(), r.look('server', 'list'))
            p = r.start(10, 20)
            check('a program works', p.works(), p.err.read_text())
            name = p.id()
            cluster.pause(0)
            done = r.tool('session', 'move', '--yes', name, pool=r.balancers['one'].url)
            check('the operator is told that it is not known', done.returncode == 75 and ('not known' in done.stderr or 'registry' in done.stderr), (done.returncode, done.stderr))
            kill(r.balancers['one'])
            cluster.resume(0)
            cluster.wait()
            check('the program works on, where it was or at its new place', p.works() and waiting.until(lambda: sum(r.where().values()) == 1) and p.works(), (r.sessions(), p.err.read_text()))
            check('one place is left', waiting.until(lambda: len(r.sessions()) == 1), r.sessions())
            check('and it ends well', p.end() == 0 and p.out.read_text().count('done\n') == 1 and r.empty(), (p.process.returncode, r.look('gpu', 'list')))


def blind():
    """One balancer loses the registry, another has it: who follows at the first is sent on, and hears of the move."""
    with etcd.Cluster(3) as cluster, \
            Balancer(BALANCER, 'one', registry=f'etcd:{cluster.clients[0]}') as one, Balancer(BALANCER, 'two', registry=f'etcd:{cluster.clients[1]},{cluster.clients[2]}') as two, \
            Member('gpu1', one.url, two.url) as a, Member('gpu2', one.url, two.url) as b, Client(one.url) as client:
        check('two servers at two balancers', all(m.ready(url) for m in (a, b) for url in (one.url, two.url)))
        grant = client.grant(restartable=1, memory=GIB)
        (a if grant['parts'][0]['server'] == 'gpu1' else b).claim(grant['id'])
        client.send(type=FOLLOW, id=grant['id'], token='')
        cluster.kill(0)
        told = client.receive()
        check('the follower is sent to another balancer', told['type'] == REFUSED and told['code'] == LATER and 'lost the registry' in told['text'], told)
        with Client(two.url) as follower:
            follower.send(type=FOLLOW, id=grant['id'], token='')
            check('which makes a move', waiting.until(lambda: ordered(two.url, 'move', grant['id'].hex())['code'] == 0))
            check('and tells of it', follower.receive()['type'] == MOVED)


def after_the_offer(r):
    """The balancer that has made the offer dies before the client hears of it."""
    p = r.start(10, 20)
    check('a program works', p.works(), p.err.read_text())
    first = p.server()
    other = next(n for n in r.servers if n != first)
    p.process.send_signal(signal.SIGSTOP)  # `outboard run` alone; the program works on
    done = r.move(p, pool=r.balancers['one'].url)
    check('one balancer makes the offer', done.returncode == 0, done.stderr)
    kill(r.balancers['one'])
    reserved = {s['parts'][0]['server'] for s in r.sessions() if s['pid'] == p.process.pid}
    check('both places are in the registry', reserved == {first, other}, reserved)
    check('the program works on', p.works() and len(p.begins()) == 1, p.begins())
    p.process.send_signal(signal.SIGCONT)
    check('it goes to its place by the other balancer', waiting.until(lambda: len(p.begins()) == 2 and p.server() == other), (p.begins(), p.err.read_text(), r.sessions()))
    check('which ends the old one', waiting.until(lambda: r.where() == {first: 0, other: 1}) and waiting.until(lambda: len(r.events('moved')) == 1), (r.where(), r.events('moved')))
    check('nothing is lost', p.works() and p.begins()[1][0] > 0 and p.end() == 0, (p.begins(), p.process.returncode))
    check('nothing stays reserved', r.empty(), r.look('gpu', 'list'))


def client_in_the_middle(r):
    """The client dies after the offer: both places become free."""
    p = r.start(10, 20)
    p.works()
    p.process.send_signal(signal.SIGSTOP)
    check('an offer', r.move(p).returncode == 0)
    p.process.kill()
    p.process.wait()
    check('that nobody takes is taken back with its ticket', r.empty(), r.look('gpu', 'list'))
    check('and no move has happened', len(r.events('moved')) == 1, r.events('moved'))


def leader(folder, cluster):
    """Rounds go on at the other balancer when the one that leads dies."""
    with Rack(folder, OUTBOARD, SERVER, BALANCER, LOAD, ('gpu1', 'gpu2'), ('one', 'two'), cluster.url, ('--rebalance', '1', '--registry-prefix', 'rounds/')) as r:
        check('two servers at two balancers', r.ready(), r.look('server', 'list'))
        check('one leads', waiting.until(lambda: sum(leads(b) for b in r.balancers.values()) == 1))
        r.only('gpu1')
        programs = [r.start(1000, 0) for _ in range(2)]
        check('two programs on one server', waiting.until(lambda: r.where() == {'gpu1': 2, 'gpu2': 0}), r.where())
        gone, = (b for b in r.balancers.values() if leads(b))
        stays, = (b for b in r.balancers.values() if b is not gone)
        kill(gone)
        check('the other one leads', waiting.until(lambda: leads(stays)))
        r.only('gpu1', 'gpu2')
        check('and one program is moved', waiting.until(lambda: r.where() == {'gpu1': 1, 'gpu2': 1}), (r.where(), r.events('moving'), [p.err.read_text() for p in programs]))
        check('all work and end well', all(p.works() for p in programs) and [p.end() for p in programs] == [0, 0], [p.err.read_text() for p in programs])


def main():
    etcd.needed()
    with etcd.Cluster(1) as cluster:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            with Rack(folder, OUTBOARD, SERVER, BALANCER, LOAD, ('gpu1', 'gpu2'), ('one', 'two'), cluster.url) as r:
                check('two servers at two balancers', r.ready(), r.look('server', 'list'))
                after_the_offer(r)
                client_in_the_middle(r)
        with tempfile.TemporaryDirectory() as folder:
            leader(folder, cluster)
        in_the_transaction(cluster)
    blind()


main()
finish()
