# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Several servers: one dead, one that hangs, one loaded, one free. The program must soon get a
session on the free one, and a clear error if there is none.

    servers.py OUTBOARD SERVER INIT_PROGRAM LIMITS_PROGRAM
"""
import itertools
import json
import socket
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import waiting
from listening import Listener, Nobody, join
from outboard_test import ENV, Server, check, finish, run

OUTBOARD, SERVER, INIT, LIMITS = sys.argv[1:5]
NOBODY, NOBODY_EITHER = Nobody(), Nobody()


def tool(*arguments):
    return subprocess.run([OUTBOARD, *arguments], capture_output=True, text=True, timeout=30, env=ENV)


def load(server):
    return json.loads(tool('top', '--once', '--json', '--server', server.url).stdout)


def session(url):
    return subprocess.Popen([OUTBOARD, 'run', '--server', url, '--', INIT, 'wait'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV)


def placement():
    dead = NOBODY.url
    hangs = socket.create_server(('127.0.0.1', 0))
    hang_url = 'tcp://127.0.0.1:%d' % hangs.getsockname()[1]
    with Server(SERVER, '--driver', 'soft', '--max-sessions', '2') as loaded, Server(SERVER, '--driver', 'soft', '--max-memory', '1GiB') as free:
        holders = [session(loaded.url)]
        holders[0].stdout.readline()
        check('one session is seen', waiting.until(lambda: load(loaded)['sessions'] == 1 and load(loaded)['devices']))
        waiting.until(lambda: load(free)['devices'])
        for order in ([dead, hang_url, loaded.url, free.url], [free.url, loaded.url, dead], [loaded.url, free.url]):
            out, done = run(OUTBOARD, ','.join(order), INIT, env={'OUTBOARD_LOG': 'info'})
            check('the program runs', out.split() == ['0', '0'], out + done.stderr)
            check('on the free one', f'chose server {free.url} ' in done.stderr, done.stderr)
        check('all three went there', load(free)['sessions_total'] == 3, load(free))
        out, done = run(OUTBOARD, f'{loaded.url},{free.url}', INIT, env={'OUTBOARD_LOG': 'info', 'OUTBOARD_POLICY': 'binpack'})
        check('binpack takes the one in use', f'chose server {loaded.url} ' in done.stderr, done.stderr)
        out, done = run(OUTBOARD, f'{loaded.url},{free.url}', INIT, env={'OUTBOARD_VRAM': '900GiB'})
        check('a wish that none can fulfil is refused with the largest free block', 'too little free memory (900.0 GiB wanted' in done.stderr, done.stderr)
        done = tool('check', '--server', f'{dead},{loaded.url},{free.url}')
        check('check shows each', done.returncode == 0 and 'Connection refused' in done.stdout and '1 of 2 sessions' in done.stdout and '2 of 3 answer' in done.stdout,
              done.stdout)
        done = tool('info', '--server', f'{loaded.url},{free.url}')
        check('info shows their devices', done.returncode == 0 and done.stdout.count('compute capability') == 2, done.stdout)
        holders.append(session(loaded.url))
        holders[1].stdout.readline()
        out, done = run(OUTBOARD, f'{loaded.url},{dead}', INIT)
        check('full and dead: a sentence', out.split()[0] in ('46', '100') and '1 do not answer' in done.stderr and '1 are full' in done.stderr, out + done.stderr)
        for holder in holders:
            holder.communicate('\n')
    hangs.close()
    out, done = run(OUTBOARD, f'{dead},{NOBODY_EITHER.url}', INIT)
    check('all dead: a sentence', out.split()[0] == '100' and 'none of the 2 servers' in done.stderr, out + done.stderr)
    done = tool('check', '--server', f'{dead},{NOBODY_EITHER.url}')
    check('check fails then', done.returncode == 1 and 'would get none' in done.stdout, done.stdout)
    done = tool('run', '--server', f'{dead},http://x', '--', 'true')
    check('a list with a wrong address is refused', done.returncode == 2 and 'tcp://' in done.stderr, done.stderr)


class Lying:
    """An address that reports the load of one server and forwards sessions to another, like a
    server whose last place was taken after the load query."""

    def __init__(self, tells, leads):
        self.to = {16: tells, 1: leads, 2: leads}
        self.asked = self.led = 0
        self.listener = Listener(self.lead)
        self.url = 'tcp:' + self.listener.address

    def lead(self, near):
        preface = near.recv(16, socket.MSG_WAITALL)
        intent = preface[6]
        self.asked += intent == 16
        self.led += intent == 1
        host, port = self.to[intent].removeprefix('tcp://').split(':')
        far = socket.create_connection((host, int(port)))
        far.sendall(preface)
        join(near, far)


def taken_in_between():
    with Server(SERVER, '--driver', 'null') as empty, Server(SERVER, '--driver', 'null', '--max-sessions', '1') as full, Server(SERVER, '--driver', 'null') as second:
        holders = [session(full.url), session(second.url)]
        for holder in holders:
            holder.stdout.readline()
        waiting.until(lambda: load(full)['sessions'] == 1 and load(second)['sessions'] == 1 and load(empty)['devices'])
        lying = Lying(empty.url, full.url)
        out, done = run(OUTBOARD, f'{second.url},{lying.url}', INIT, env={'OUTBOARD_LOG': 'info'})
        check('refused by the best: the program runs on the next best', out.split() == ['0', '0'] and lying.led == 1 and f'chose server {lying.url} ' in done.stderr and
              'the server is full' in done.stderr and 'next best server' in done.stderr, out + done.stderr)
        check('which is the other', load(second)['sessions_total'] == 2, load(second))
        out, done = run(OUTBOARD, f'{lying.url},{NOBODY.url}', INIT)
        check('nobody left: both reasons are told', out.split()[0] != '0' and 'the server is full' in done.stderr and 'cannot reach' in done.stderr, out + done.stderr)
        lying.listener.close()
        for holder in holders:
            holder.communicate('\n')


def kept():
    with Server(SERVER, '--driver', 'null', '--hello-timeout', '1') as s:
        lying = Lying(s.url, s.url)
        watch = subprocess.Popen([OUTBOARD, 'top', '--json', '--interval', '0.2', '--server', lying.url], stdout=subprocess.PIPE, text=True, env=ENV)
        for _ in range(40):
            watch.stdout.readline()
        check('top asks again on one connection', lying.asked == 1, lying.asked)
        watch.kill()
        watch = subprocess.Popen([OUTBOARD, 'top', '--json', '--interval', '1.6', '--server', lying.url], stdout=subprocess.PIPE, text=True, env=ENV)
        looks = sum(1 for _ in itertools.islice((line for line in watch.stdout if line.startswith('{')), 2))
        check('and on a new one when the server has closed it meanwhile', looks == 2 and lying.asked == 3, (looks, lying.asked))
        watch.kill()
        lying.listener.close()
        check('which is no refusal', load(s)['refused_total'] == 0, load(s))


def top():
    with Server(SERVER, '--driver', 'soft', '--measure', 'yes', '--max-sessions', '1') as s:
        worker = subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--', LIMITS, 'spin', '600'], stdout=subprocess.PIPE, text=True, env=ENV)
        waiting.until(lambda: worker.poll() is not None or any(x['calls'] > 10 and x['device_seconds'] > 0 for x in load(s)['listed']) and load(s)['busy_ratio'] > 0.1)
        told = load(s)
        one = told['listed'][0] if told['listed'] else {}
        check('top sees the session at work', told['schema'] == 1 and told['sessions'] == 1 and one.get('calls', 0) > 10 and one.get('calls_per_second', 0) > 1 and
              one['bytes_in'] > 100 and one['program'].startswith('e2e_limits') and one['client'].startswith('127.0.0.1:') and one['device_seconds'] > 0, told)
        check('and that the server is busy', told['busy_ratio'] > 0.1, told)
        text = tool('top', '--once', '--server', s.url).stdout
        check('as text too', '1 of 1 sessions' in text and 'used by 1 session\n' in text and 'e2e_limits' in text, text)
        done = tool('run', '--server', s.url, '--', INIT)
        check('one more is refused, clearly', 'the server is full' in done.stderr and '--max-sessions' in done.stderr, done.stderr)
        worker.kill()
        worker.communicate()
        waiting.until(lambda: load(s)['sessions'] == 0)
        told = load(s)
        check('the session is gone from top', told['sessions'] == 0 and told['listed'] == [] and told['refused_total'] == 1, told)
    done = tool('top', '--once', '--server', NOBODY.url)
    check('top of nobody fails with a sentence', done.returncode == 1 and 'Connection refused' in done.stderr, done.stderr)


placement()
taken_in_between()
kept()
top()
finish()
