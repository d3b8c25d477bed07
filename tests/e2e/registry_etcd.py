# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The pool's registry in a real etcd: members die, the quorum is lost and comes back, changes are
compacted while a client is away, leases end, one balancer leads.

    registry_etcd.py CLIENT CONTRACT
"""
import os
import signal
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import etcd
import registry
import waiting
from outboard_test import check, finish

CLIENT, CONTRACT = sys.argv[1:3]
SOON = waiting.AT_ONCE  # seconds; on an idle machine it is at most 3


def client(cluster, **options):
    return registry.Client(CLIENT, options.pop('url', cluster.url), prefix=options.pop('prefix', 'p/'), **options)


def told(what, event, since):
    late = event.time - since if event else None
    print(f'     {what}: {late:.2f} s' if event else f'     {what}: never')
    check(what, event is not None and late <= SOON, late)


def contract(cluster):
    done = subprocess.run([CONTRACT], env={**os.environ, 'REGISTRY': cluster.url}, capture_output=True, text=True, timeout=waiting.LONG)
    print(done.stdout)
    check('the contract holds', done.returncode == 0, done.stderr)


def leases(cluster):
    with client(cluster, balancer='b1', lease_s=2) as one, client(cluster, balancer='b2', lease_s=2) as two:
        check('both are usable', one.is_usable() and two.is_usable())
        check('a leased key', one.do('lease', 'alive/s/b1', '1').succeeded)
        check('the other sees it', waiting.until(lambda: 'alive/s/b1' in two.state))
        # Trap 1: etcd answers the keepalive of a lease that has ended without an error.
        for number in cluster.ctl('lease', 'list').split()[3:]:
            cluster.ctl('lease', 'revoke', number)
        check('a new lease is told', one.until('lease') and two.until('lease'))
        check('the key of the old one is gone', 'alive/s/b1' not in two.state)
        check('leased keys can be put again', waiting.until(lambda: one.do('lease', 'alive/s/b1', '2').succeeded))
        check('both are usable again', one.is_usable() and two.is_usable())
        check('one leads', waiting.until(lambda: one.leads() != two.leads()))
        first, second = (one, two) if one.leads() else (two, one)
        first.kill()
        check('the other leads when the lease has ended', waiting.until(second.leads))
        check('the key ends with the lease', first is two or waiting.until(lambda: 'alive/s/b1' not in two.state))
        with client(cluster, balancer='b3') as third:
            third.is_usable()
            check('a third one does not', not third.leads())
            second.process.send_signal(signal.SIGSTOP)
            check('it leads when the leader hangs', waiting.until(third.leads))
            second.process.send_signal(signal.SIGCONT)
            check('the old leader notices', waiting.until(lambda: not second.leads()))
            check('and has a new lease', second.until('lease', third.until('leads').time))


def foreign_values(cluster):
    """What others write into the prefix neither stops the watch nor is taken for something else."""
    with client(cluster, prefix='f/') as one:
        one.is_usable()
        cluster.call(0, '/v3/kv/put', {'key': etcd.coded('f/odd'), 'value': '/w=='})
        cluster.call(0, '/v3/kv/put', {'key': '', 'value': 'eA=='})
        cluster.call(0, '/v3/kv/put', {'key': 'Zi//', 'value': 'eA=='})  # f/ and the byte 255
        cluster.call(0, '/v3/kv/put', {'key': etcd.coded('f/' + 'k' * 257), 'value': 'eA=='})
        cluster.call(0, '/v3/kv/put', {'key': etcd.coded('f/long'), 'value': etcd.coded('v' * 20000)})
        one.put('good', '1')
        check('values that cannot be read are empty, keys are left out', waiting.until(lambda: one.state == {'odd': '', 'long': '', 'good': '1'}), one.state)
        check('a range shows the same', sorted(word.partition('=')[0] for word in one.do('range', '').rest.split()) == ['good', 'long', 'odd'])


def many_keys(cluster):
    """More keys than one page, and one transaction's limit of etcd."""
    for start in range(0, 1200, 100):
        operations = [{'request_put': {'key': etcd.coded(f'm/k{i:05}'), 'value': 'eA=='}} for i in range(start, start + 100)]
        cluster.call(0, '/v3/kv/txn', {'success': operations})
    with client(cluster, prefix='m/') as one:
        check('all pages', one.is_usable() and len(one.state) == 1200, len(one.state))
        check('a range of several pages', len(one.do('range', 'k').rest.split()) == 1200)


def leader_killed(cluster, one):
    revision = one.put('ledger/s', '0').revision
    leader = cluster.leader()
    began = registry.now()
    cluster.kill(leader)
    tries = unknown = 0
    while True:
        answer = one.do('cas', 'ledger/s', revision, '1')
        tries += 1
        unknown += answer.error == 'TIMEOUT'
        if answer.error == 'NONE':
            break
    took = answer.time - began
    print(f'     a transaction after the death of the leader: {took:.2f} s, {tries} tries, {unknown} of unknown outcome')
    check('transactions go on in less than 7 s', took < 7, took)
    check('it was made once', answer.succeeded or answer.rest.startswith('ledger/s=1@'), answer.rest)
    check('the watch goes on', waiting.until(lambda: one.state.get('ledger/s') == '1'))
    check('without reading all again', one.count('reset', began) == 0)
    check('usable', one.is_usable())
    cluster.start(leader)


def minority_lost(cluster, one):
    """One member less: every call goes on at another one."""
    for i in range(cluster.n):
        if i == cluster.leader():
            continue
        began = registry.now()
        cluster.kill(i)
        answer = one.put('a', f'{i}')
        check(f'member {i} is dead: a put', answer.error in ('NONE', 'TIMEOUT'), answer.error)
        check('the next one', one.put('b', f'{i}').error == 'NONE')
        check('it arrives', waiting.until(lambda: one.state.get('b') == f'{i}'))
        check('never unusable', one.count('unusable', began) == 0)
        cluster.start(i)
        check('never read again', one.count('reset', began) == 0)


def majority_lost(cluster, one, stop, start, what):
    leader = cluster.leader()
    lost = [leader, (leader + 1) % 3]
    check(f'{what}: usable before', one.is_usable())
    resets = one.count('reset')
    one.do('lease', 'alive/s', '1')
    began = registry.now()
    stop(*lost)
    told(f'{what}: unusable', one.until('unusable', began), began)
    answer = one.put('c', '1')
    check('a transaction is refused or of unknown outcome', answer.error in ('REFUSED', 'TIMEOUT', 'CONNECT'), answer.error)
    check('says what to do', 'etcd' in answer.rest, answer.rest)
    waiting.let_pass(3.5, 'longer than the lease of 3 s, which must not end without a leader')
    start(*lost)
    cluster.wait()
    back = registry.now()
    told(f'{what}: usable again', one.until('usable', began), back)
    check('a transaction', waiting.until(lambda: one.put('c', '2').error == 'NONE'))
    check('the watch goes on', waiting.until(lambda: one.state.get('c') == '2'))
    check('without reading all again', one.count('reset') == resets)
    # A leader that was stopped counts the time; without a leader, no time counts.
    ended = stop == cluster.pause and one.count('lease', began)
    check('the lease has not ended', ended or (one.count('lease', began) == 0 and 'alive/s' in one.state))


def compacted(cluster):
    """Changes that a client has missed are gone when it comes back."""
    with client(cluster, url='etcd:' + cluster.clients[0], lease_s=30) as one:
        one.is_usable()
        one.put('gone', '1')
        one.put('kept', '1')
        waiting.until(lambda: 'kept' in one.state)
        began = registry.now()
        cluster.kill(0)
        check('unusable', one.until('unusable', began))
        with client(cluster, url='etcd:' + ','.join(cluster.clients[1:])) as two:
            two.is_usable()
            two.do('delete', 'gone')
            for i in range(20):
                two.put('kept', f'{i}')
        cluster.ctl('compaction', str(cluster.revision()))
        cluster.start(0)
        check('all keys are read again', one.until('reset', began) and one.is_usable())
        check('the state is the present one', 'gone' not in one.state and one.state.get('kept') == '19', one.state)
        # Without a compaction the watch goes on.
        began = registry.now()
        cluster.stop(0)
        one.until('unusable', began)
        cluster.ctl('put', 'p/kept', 'x')
        cluster.start(0)
        check('usable', one.is_usable() and waiting.until(lambda: one.state.get('kept') == 'x'))
        check('and missed changes come without reading all again', one.count('reset', began) == 0)


def restored():
    """An etcd that begins again at a lower revision, as after a restore from a copy."""
    with etcd.Cluster(1) as cluster, client(cluster, prefix='p/') as one:
        one.is_usable()
        for i in range(10):
            one.put('old', f'{i}')
        began = registry.now()
        cluster.kill(0)
        etcd.shutil.rmtree(f'{cluster.folder}/m0')
        cluster.begun = False
        cluster.start(0)
        cluster.ctl('put', 'p/new', '1')
        check('restored: all keys are read again', one.until('reset', began) and one.is_usable())
        check('restored: the state', waiting.until(lambda: one.state == {'new': '1'}), one.state)
        check('restored: a new lease', one.until('lease', began))


def main():
    etcd.needed()
    with etcd.Cluster(1) as cluster:
        contract(cluster)
        foreign_values(cluster)
        many_keys(cluster)
        leases(cluster)
    restored()
    with etcd.Cluster(3) as cluster:
        with client(cluster, lease_s=3) as one:
            check('usable', one.is_usable())
            leader_killed(cluster, one)
            minority_lost(cluster, one)
            majority_lost(cluster, one, cluster.kill, lambda *lost: [cluster.start(i, wait=False) for i in lost], 'two of three killed')
            majority_lost(cluster, one, cluster.pause, cluster.resume, 'two of three silent')
            began = registry.now()
            cluster.kill(0, 1, 2)
            told('all killed: unusable', one.until('unusable', began), began)
            for i in range(3):
                cluster.start(i, wait=False)
            cluster.wait()
            told('all started: usable', one.until('usable', began), registry.now())
            check('closes cleanly', one.close() == 0)
        compacted(cluster)
    finish()


main()
