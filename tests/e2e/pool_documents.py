# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""What the commands of a pool show and order, against balancers whose answers the test decides.

    pool_documents.py OUTBOARD
"""
import json
import re
import signal
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import fake_pool
import waiting
from fake_pool import Balancer
from listening import Nobody
from outboard_test import ENV, check, finish
from pool_user import OUTBOARD, on_terminal, refuse, tool

NOBODY = Nobody()
NOW = 1_700_000_000_000
IDS = ['ab' * 16, 'ab' * 8 + 'cd' * 8, '12' * 16]
DOCUMENTS = {
    'info': {'info': {'balancer': 'b1', 'registry_usable': True}},
    'servers': {'servers': [
        {'name': 'gpu1', 'state': 'ready', 'health': '', 'version': '0.1.0', 'addresses': ['tls://gpu1:14800', 'unix:/x'], 'labels': {'zone': 'a', 'rack': '3'},
         'driver': '580.1', 'devices': 2, 'sessions': 3, 'max_sessions': 64, 'busy_per_mille': 425, 'uptime_s': 7200, 'cuda': 13000, 'heartbeat_age_ms': 400,
         'incarnation': '0123456789abcdef'},
        {'name': 'gpu2\x1b[31m', 'state': 'unwell', 'health': 'Xid 79', 'version': '0.1.0', 'addresses': [], 'labels': {}, 'driver': '', 'devices': 1, 'sessions': 0,
         'max_sessions': 64, 'busy_per_mille': 0, 'uptime_s': 5, 'cuda': 0, 'heartbeat_age_ms': None, 'incarnation': ''}]},
    'gpus': {'gpus': [
        {'server': 'gpu1', 'index': i, 'uuid': f'GPU-{i}', 'name': 'NVIDIA H100', 'capability': '9.0', 'memory_bytes': 80 << 30, 'reserved_bytes': i * (10 << 30),
         'used_bytes': i * (3 << 30), 'reservations': i, 'share_millionths': 500000, 'share_by': ['throttle', 'green'], 'exclusive': i == 2, 'faulty': False, 'busy_per_mille': 990, 'celsius': 61,
         'milliwatts': 300500} for i in range(3)]},
    'sessions': {'other_reservations': 2, 'reservations': [
        {'id': one, 'tenant': 'lab', 'program': f'train{i}', 'host': 'desk', 'user': 'ann', 'pid': 77, 'since': NOW // 1000 - 600, 'priority': 'normal', 'share_millionths': 0 if i else 250000,
         'hold_s': 10, 'parts': [{'server': 'gpu1', 'gpus': ['GPU-0', 'GPU-1'], 'memory_bytes': 4 << 30, 'used_bytes': 1 << 30, 'sessions': 1, 'share_by': 'green', 'state': 'granted'},
                                 {'server': 'gpu3', 'gpus': ['GPU-9'], 'memory_bytes': 4 << 30, 'used_bytes': 0, 'sessions': 1, 'share_by': 'throttle' if i == 0 else None, 'state': 'kept' if i == 2 else 'running'}]}
        for i, one in enumerate(IDS)]},
    'queue': {'queue_length': 1, 'other_requests': 1, 'queue': [
        {'position': 1, 'id': IDS[2], 'tenant': 'lab', 'program': 'sim', 'host': 'desk', 'user': 'bob', 'gpus': 4, 'memory_bytes': 8 << 30, 'priority': 'high', 'where': 'zone=a',
         'waited_ms': 65000, 'estimate_ms': None}]},
    'quota': {'tenants': [
        {'tenant': 'lab', 'limited': True, 'gpus': 2, 'gpus_limit': 4, 'memory_bytes': 8 << 30, 'memory_limit_bytes': 100 << 30, 'share_millionths': 500000,
         'share_limit_millionths': None, 'reservations': 1, 'reservations_limit': None, 'weight': 2, 'max_priority': 'high'}]},
    'events': {'events': [{'number': n, 'time_ms': NOW + n, 'kind': 'joined', 'subject': f'gpu{n}', 'text': 'hello', 'count': n} for n in (1, 2)]},
}
DOCUMENTS['fleet'] = {key: value for part in DOCUMENTS.values() for key, value in part.items()}


def document(message):
    found = {'schema': 1, 'time_ms': NOW, **DOCUMENTS[message['what']]}
    if message['what'] == 'fleet' and message['target']:
        found['servers'] = [one for one in found['servers'] if one['name'] == message['target']]
    if message['what'] == 'sessions' and message['target']:
        found['reservations'] = [one for one in found['reservations'] if message['target'] in (one['id'], one['tenant'])]
    if message['what'] == 'events':
        found['events'] = [one for one in found['events'] if one['number'] > message['since']]
    return found


def shows(link, message):
    if message['type'] == fake_pool.QUERY:
        link.answer(document(message))
    else:
        link.done('as you say')


VERBS = {('server', 'list'): 'servers', ('gpu', 'list'): 'gpus', ('session', 'list'): 'sessions', ('queue',): 'queue', ('quota',): 'quota', ('events',): 'events',
         ('top', '--once'): 'fleet'}


def tables():
    with Balancer(shows) as pool:
        env = {'OUTBOARD_POOL': pool.url, 'TZ': 'UTC'}
        said = {}
        for verb, what in VERBS.items():
            done = tool(*verb, env=env)
            said[what] = done.stdout
            check(f'{verb} shows a table', done.returncode == 0 and not done.stderr and '\x1b' not in done.stdout and pool.heard[-1]['what'] == what, done)
            done = tool(*verb, '--json', env=env)
            check(f'{verb} --json: the document as it came', done.returncode == 0 and done.stdout == json.dumps(document(pool.heard[-1])) + '\n', done.stdout[:200])
            for columns in (60, 100):
                done = tool(*verb, env={**env, 'COLUMNS': str(columns)})
                check(f'{verb} fits into {columns} columns', done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= columns, done.stdout)
        rows = {what: [re.split(r' {2,}', line.strip()) for line in text.splitlines()] for what, text in said.items()}
        check('servers', rows['servers'][1] == ['gpu1', 'ready', '2', '3 of 64', '43 %', '2 h', '580.1', '0.1.0', 'zone=a,rack=3', 'tls://gpu1:14800', '-'] and
              rows['servers'][2][:2] == ['gpu2?[31m', 'unwell'] and rows['servers'][2][-1] == 'Xid 79', said['servers'])
        check('GPUs', rows['gpus'][3][:7] == ['gpu1', '2', 'NVIDIA H100', 'exclusive', '80.0 GiB', '20.0 GiB', '6.0 GiB'] and '300 W' in rows['gpus'][3] and 'throttle green' in rows['gpus'][3], said['gpus'])
        check('sessions', rows['sessions'][1] == ['abababababab', 'lab', 'train0', 'ann@desk', 'running', '3', 'gpu1,gpu3', '1.0 GiB of 12.0 GiB', '10 min', 'normal', '0.25 by green, throttle'] and
              rows['sessions'][2][-1] == '-' and rows['sessions'][3][4] == 'kept' and
              'and 2 of other tenants' in said['sessions'], said['sessions'])
        check('queue', rows['queue'][1] == ['1', '121212121212', 'lab', 'sim', 'bob@desk', '4', '8.0 GiB', 'zone=a', 'high', '65 s', '-'], said['queue'])
        check('quota', rows['quota'][1] == ['lab', '2 of 4', '8.0 GiB of 100.0 GiB', '0.50', '1', '2', 'high'], said['quota'])
        check('events', rows['events'][2] == ['2023-11-14 22:13:20', 'joined', 'gpu2', 'hello (2 times)'], said['events'])
        check('top', all(words in said['fleet'] for words in ('balancer b1: 2 servers, 3 GPUs; 30.0 GiB of 240.0 GiB reserved', 'SERVERS', 'ESTIMATE')), said['fleet'])
        done = tool('server', 'info', 'gpu1', env=env)
        check('server info', done.returncode == 0 and re.search(r'addresses +tls://gpu1:14800 unix:/x', done.stdout) and 'RESERVED' in done.stdout, done.stdout)
        done = tool('server', 'info', 'gpu7', env=env)
        check('server info of none', done.returncode == 1 and "no server 'gpu7'" in done.stderr, done)
        done = tool('session', 'info', '12', env=env)
        check('session info by the start of its id', done.returncode == 0 and IDS[2] in done.stdout and 'GPU-9' in done.stdout, done.stdout)
        check('which must be unique', tool('session', 'info', 'abab', env=env).returncode == 1 and tool('session', 'info', 'f', env=env).returncode == 1)
        done = tool('session', 'info', '12', '--json', env=env)
        check('its JSON has that one only', done.returncode == 0 and [one['id'] for one in json.loads(done.stdout)['reservations']] == [IDS[2]], done.stdout)
        for words in ('session', 'info', 'f'), ('session', 'info', 'ab'), ('server', 'info', 'gpu7'):
            done = tool(*words, '--json', env=env)
            check(f'{words} --json: an error and no document', done.returncode == 1 and not done.stdout and 'list' in done.stderr, done)
        tool('quota', 'lab', env=env)
        check('the quota of one tenant', pool.heard[-1]['target'] == 'lab', pool.heard[-1])
        done = tool('events', '--since', '1', env=env)
        check('events since', pool.heard[-1]['since'] == 1 and 'gpu1' not in done.stdout, done.stdout)
        done = tool('check', env=env)
        check('check of a pool', done.returncode == 0 and re.search(r'servers +2, of which 1 take programs\n', done.stdout) and 'verdict     all is well' in done.stdout and
              'programs    5 running, 1 waiting' in done.stdout, done)
        check('info of a pool', tool('info', env=env).stdout == tool('gpu', 'list', env=env).stdout)
        done = tool('smi', env=env)
        check('smi shows no pool, and says so', done.returncode == 2 and 'outboard gpu list' in done.stderr, done)
        said, status = on_terminal('server', 'list', env=env)
        check('colours on a terminal', status == 0 and '\x1b[32mready\x1b[0m' in said and '\x1b[31munwell\x1b[0m' in said, repr(said))
        said, status = on_terminal('server', 'list', env={**env, 'NO_COLOR': '1'})
        check('but not with NO_COLOR', status == 0 and '\x1b' not in said, repr(said))
        watches(pool)
    one = {key: value[:1] if isinstance(value, list) else value for key, value in DOCUMENTS['fleet'].items()}
    with Balancer(lambda link, message: link.answer({'schema': 1, **one})) as pool:
        done = tool('top', '--once', '--pool', pool.url)
        check('top of one of each', 'b1: 1 server, 1 GPU; 0 bytes of 80.0 GiB reserved, 0 bytes used; 1 program, 1 waiting\n' in done.stdout, done)
    done = tool('queue')
    check('without a pool', done.returncode == 2 and 'outboard login' in done.stderr, done.stderr)
    done = tool('server', 'list', '--server', f'{NOBODY.url},tcp://x.invalid:1')
    check('a list of servers instead', done.returncode == 1 and 'Connection refused' in done.stdout, done)


def watching(pool, *words):
    return subprocess.Popen([OUTBOARD, *words, '--interval', '0.1', '--pool', pool.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)


def watches(pool):
    watch = watching(pool, 'queue', '--watch', '--json')
    check('--watch shows it again', [json.loads(watch.stdout.readline())['schema'] for _ in range(3)] == [1, 1, 1])
    watch.send_signal(signal.SIGINT)
    out, err = watch.communicate(timeout=waiting.LONG)
    check('an interrupt ends it, with whole documents', watch.returncode == -signal.SIGINT and not err and all(json.loads(line) for line in out.splitlines()), (out, err))
    for options in ((), ('--json',)):
        watch = watching(pool, 'events', '--watch', *options)
        lines = [watch.stdout.readline() for _ in range(1 if options else 3)]
        before = len(pool.heard)
        waiting.until(lambda before=before: len(pool.heard) > before + 2)
        check('events --watch asks for new ones only', pool.heard[-1]['since'] == 2, (lines, pool.heard[-1]))
        # nothing more is written, and it ends all the same
        watch.stdout.close()
        check('it ends when nobody reads it', watch.wait(waiting.LONG) == 0 and watch.stderr.read() == '', watch.returncode)
        watch.stderr.close()
    for words in ('queue', '--watch'), ('queue', '--watch', '--json'), ('top',), ('top', '--json'):
        watch = watching(pool, *words)
        watch.stdout.readline()
        watch.stdout.close()
        check(f'{words} ends when nobody reads it', watch.wait(waiting.LONG) in (0, -signal.SIGPIPE) and watch.stderr.read() == '', watch.returncode)
        watch.stderr.close()


def orders():
    with Balancer(shows) as pool:
        env = {'OUTBOARD_POOL': pool.url}
        for words, verb, target, argument in ((['server', 'cordon', 'gpu1'], 'cordon', 'gpu1', ''), (['server', 'uncordon', 'gpu1'], 'uncordon', 'gpu1', ''),
                                              (['server', 'drain', 'gpu1'], 'drain', 'gpu1', '3600'), (['server', 'drain', 'gpu1', '--grace', '5'], 'drain', 'gpu1', '5'),
                                              (['server', 'forget', 'gpu1'], 'forget', 'gpu1', ''), (['session', 'kill', '12'], 'kill', IDS[2], ''),
                                              (['session', 'kill', '77'], 'kill', '77', ''), (['quota', 'lab', 'gpus=4'], 'quota', 'lab', 'gpus=4'),
                                              (['quota', 'lab', 'none'], 'quota', 'lab', '')):
            done = tool(*words, env=env, stdin='')
            last = pool.heard[-1]
            check(' '.join(words), done.returncode == 0 and f'{target}: as you say' in done.stdout and (last['type'], last['verb'], last['target'], last['argument']) ==
                  (fake_pool.COMMAND, verb, target, argument), (done, last))
        given = len(pool.of(fake_pool.COMMAND))
        for words in ('cordon', 'uncordon', 'drain', 'forget', 'info'):
            done = tool('server', words, '', env=env)
            check(f'server {words} without a name', done.returncode == 2 and 'name a server' in done.stderr, done)
        with Balancer(lambda link, message: link.answer({**document({'what': 'sessions', 'target': IDS[2]}), 'schema': 1})) as one:
            for words in 'kill', 'info':
                done = tool('session', words, '', '--pool', one.url)
                check(f'session {words} without an id, where there is one session', done.returncode == 2 and 'name a session' in done.stderr and not one.heard, done)
        check('nothing of that was done', len(pool.of(fake_pool.COMMAND)) == given)
        check('an id that several sessions have', tool('session', 'kill', 'ab', env=env).returncode == 1 and len(pool.of(fake_pool.COMMAND)) == given)
        said, status = on_terminal('session', 'kill', '12', env=env, prompt='[y/N]', keys=b'n\n')
        check('a terminal is asked', status == 1 and 'End session ' + IDS[2] + ', train2 of ann?' in said and len(pool.of(fake_pool.COMMAND)) == given, said)
        said, status = on_terminal('server', 'drain', 'gpu1', env=env, prompt='[y/N]', keys=b'y\n')
        check('and answers', status == 0 and len(pool.of(fake_pool.COMMAND)) == given + 1, said)
        said, status = on_terminal('server', 'drain', 'gpu1', '--yes', env=env)
        check('or is not asked', status == 0 and '[y/N]' not in said, said)
        done = tool('server', 'cordon', 'x' * 70, env=env)
        check('a name that is too long', done.returncode == 64, done)
    with Balancer(refuse(fake_pool.DENIED, 'it needs a token of scope admin')) as pool:
        for words in (['server', 'cordon', 'gpu1'], ['session', 'kill', '12'], ['queue']):
            done = tool(*words, '--pool', pool.url)
            check(f'{words} is refused', done.returncode == 77 and 'scope admin' in done.stderr and not done.stdout, done)
    with Balancer(lambda link, message: link.done('no such server', fake_pool.INVALID)) as pool:
        done = tool('server', 'cordon', 'gpu1', '--pool', pool.url)
        check('a command that failed', done.returncode == 64 and 'no such server' in done.stderr, done)


def hostile_documents():
    def sends(data):
        return lambda link, message: link.answer(data)

    def endless(link, message):
        while True:
            link.send(fake_pool.ANSWER, more=1, bytes=b' ' * fake_pool.PIECE)

    def cut(link, message):
        link.send(fake_pool.ANSWER, more=1, bytes=b'{')
        link.sock.close()
        raise EOFError

    cases = {'no JSON': sends(b'{"schema": 1'), 'an array': sends([1]), 'nothing': sends(b''), 'no list': sends({'schema': 1}), 'a number for a list': sends({'servers': 3}),
             'deep': sends(b'[' * 100000), 'many values': sends(b'{"servers": [' + b'0,' * 4100000 + b'0]}'), 'without end': endless, 'cut': cut,
             'no UTF-8': sends(b'{"servers": ["\xff"]}'), 'an empty piece': lambda link, message: link.send(fake_pool.ANSWER, more=1, bytes=b'')}
    for name, answer in cases.items():
        with Balancer(answer) as pool:
            done = tool('server', 'list', '--pool', pool.url)
            check(f'hostile document: {name}', done.returncode in (70, 75) and not done.stdout and done.stderr, (done.returncode, done.stdout[:100], done.stderr))
    odd = {'servers': [1, None, [], {}, {'name': {'a': 1}, 'state': 5, 'devices': 'x', 'labels': [1], 'addresses': {}, 'busy_per_mille': -1, 'uptime_s': 9223372036854775807}],
           'gpus': [{}], 'reservations': [{'parts': 5}, {'id': 7, 'parts': [1, {'gpus': 1, 'memory_bytes': 9223372036854775807}], 'since': 9223372036854775807}], 'queue': [{}], 'tenants': [{}, 5],
           'events': [{'number': -5}, {'time_ms': 9223372036854775807}], 'info': 5}
    for verb in [*VERBS, ('check',), ('info',)]:
        with Balancer(sends(odd)) as pool:
            done = tool(*verb, '--pool', pool.url)
            check(f'odd values in {verb}', done.returncode == int(verb == ('check',)) and done.stdout, (done.returncode, done.stderr))


tables()
orders()
hostile_documents()
finish()
