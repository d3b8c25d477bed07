# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""How a pool tells and chooses by what its devices offer: how shares are kept (a real server with the
software device), and MIG instances (a server that a test plays).

    kept_shares_pool.py OUTBOARD SERVER BALANCER PARTITION_PROGRAM
"""
import json
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish
from pool_peers import CAPACITY, GRANT, Balancer, Member, asked, looked

OUTBOARD, SERVER, BALANCER, PROGRAM = sys.argv[1:5]


def tool(b, *arguments):
    return subprocess.run([OUTBOARD, *arguments], capture_output=True, text=True, timeout=waiting.LONG, env={**ENV, 'OUTBOARD_POOL': b.url}).stdout


def run(b, file, where):
    return subprocess.Popen([OUTBOARD, 'run', '--pool', b.url, '--share', '0.25', '--vram', '64MiB', '--where', where, '--', PROGRAM, 'work', file, 'default', '2000'],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)


def shares():
    env = {'OUTBOARD_SOFT_SMS': '64', 'OUTBOARD_SOFT_THREADS': '8'}
    with Balancer(BALANCER, 'one') as b, \
            Server(SERVER, '--driver', 'soft', '--share-by', 'green,throttle', '--pool', b.url, '--pool-name', 'green', env=env), \
            Server(SERVER, '--driver', 'soft', '--pool', b.url, '--pool-name', 'plain', env=env), \
            tempfile.NamedTemporaryFile() as file:
        file.truncate(16)
        told = waiting.until(lambda: {g['server']: g['share_by'] for g in looked(b.url, 'gpus')['gpus']} == {'green': ['throttle', 'green'], 'plain': ['throttle']})
        check('the devices tell how shares are kept', told, looked(b.url, 'gpus'))
        table = tool(b, 'gpu', 'list')
        check('gpu list shows it', 'SHARE BY' in table and 'throttle green' in table, table)
        for where, by, server in ('share-by=green', 'green', 'green'), ('share-by!=green', 'throttle', 'plain'):
            file.seek(0)
            file.write(bytes(16))
            file.flush()
            program = run(b, file.name, where)
            told = waiting.until(lambda: program.poll() is not None or
                                 [(p['server'], p['share_by']) for r in looked(b.url, 'sessions')['reservations'] for p in r['parts'] if p['state'] == 'running'] == [(server, by)])
            check(f'{where}: the session tells that its share is kept by {by}', told and program.poll() is None, looked(b.url, 'sessions'))
            one = looked(b.url, 'sessions')['reservations'][0]['id']
            for verb in ('list',), ('info', one):
                check(f'{where}: session {verb[0]} shows it', f'0.25 by {by}' in tool(b, 'session', *verb), tool(b, 'session', *verb))
            document = json.loads(tool(b, 'session', 'list', '--json'))
            check(f'{where}: so does its document', document['reservations'][0]['parts'][0]['share_by'] == by, document)
            file.seek(8)
            file.write(b'\1')
            file.flush()
            out, err = program.communicate(timeout=waiting.LONG)
            check(f'{where}: the program ends well', out == 'work: ok\n', out + err)
            waiting.until(lambda: not looked(b.url, 'sessions')['reservations'])
        answer = asked(b.url, where='share-by=mps')
        check('share-by=mps: no device of the pool has it', answer['type'] != GRANT and answer['code'] == CAPACITY, answer)


def mig():
    with Balancer(BALANCER, 'one') as b, Member('whole', b.url) as whole, Member('parts', b.url, gpus=2, memory=10 << 30, model='NVIDIA H100 80GB HBM3 MIG 1g.10gb') as parts:
        check('two servers join', whole.ready(b.url) and parts.ready(b.url))
        check('MIG instances are devices of their own', waiting.until(lambda: sorted((g['server'], g['kind']) for g in looked(b.url, 'gpus')['gpus']) ==
              [('parts', 'mig'), ('parts', 'mig'), ('whole', 'gpu')]), looked(b.url, 'gpus'))
        check('a list names them', tool(b, 'gpu', 'list').count('MIG 1g.10gb') == 2, tool(b, 'gpu', 'list'))
        for where, server in ('kind=mig', 'parts'), ('kind=gpu', 'whole'), ('kind!=mig', 'whole'):
            answer = asked(b.url, where=where, memory=1 << 30)
            check(f'{where} gets one', answer['type'] == GRANT and answer['parts'][0]['server'] == server, answer)
        answer = asked(b.url, where='kind=mig', gpus=3, memory=1 << 30)
        check('more instances than there are', answer['type'] != GRANT and answer['code'] == CAPACITY, answer)


def newer():
    """A server of a later version keeps a share in a way that this balancer has no name for."""
    with Balancer(BALANCER, 'one') as b, Member('later', b.url) as later:
        check('a later server joins', later.ready(b.url))
        answer = asked(b.url, share=250000)
        check('it gets a reservation', answer['type'] == GRANT, answer)
        later.claim(answer['id'])
        later.held[answer['id']]['share_by'] = 9
        told = waiting.until(lambda: [p['share_by'] for r in looked(b.url, 'sessions')['reservations'] for p in r['parts'] if p['state'] == 'running'] == [None])
        check('a method without a name is null', told, looked(b.url, 'sessions'))
        for verb in ('list',), ('info', answer['id'].hex()):
            text = tool(b, 'session', *verb)
            check(f'session {verb[0]} shows the share alone', '0.25' in text and ' by ' not in text, text)


shares()
mig()
newer()
finish()
