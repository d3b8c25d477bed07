# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Three servers: one dead, one that hangs, one loaded, one free. The program gets the free one, soon, and a clear sentence when there is none.

    servers.py OUTBOARD SERVER INIT_PROGRAM LIMITS_PROGRAM
"""
import json
import socket
import subprocess
import sys
import time

from serving import ENV, Server, check, finish, run

OUTBOARD, SERVER, INIT, LIMITS = sys.argv[1:5]


def closed_port():
    with socket.create_server(('127.0.0.1', 0)) as s:
        return 'tcp://127.0.0.1:%d' % s.getsockname()[1]


def tool(*arguments):
    return subprocess.run([OUTBOARD, *arguments], capture_output=True, text=True, timeout=30, env=ENV)


def load(server):
    return json.loads(tool('top', '--once', '--json', '--server', server.url).stdout)


def session(url):
    return subprocess.Popen([OUTBOARD, 'run', '--server', url, '--', INIT, 'wait'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV)


def placement():
    dead = closed_port()
    hangs = socket.create_server(('127.0.0.1', 0))
    hang_url = 'tcp://127.0.0.1:%d' % hangs.getsockname()[1]
    with Server(SERVER, '--driver', 'soft', '--max-sessions', '2') as loaded, Server(SERVER, '--driver', 'soft', '--max-memory', '1GiB') as free:
        holders = [session(loaded.url)]
        holders[0].stdout.readline()
        time.sleep(0.7)  # a worker tells its numbers twice a second when it is idle
        check('one session is seen', load(loaded)['sessions'] == 1)
        for order in ([dead, hang_url, loaded.url, free.url], [free.url, loaded.url, dead], [loaded.url, free.url]):
            began = time.monotonic()
            out, done = run(OUTBOARD, ','.join(order), INIT, env={'OUTBOARD_LOG': 'info'})
            took = time.monotonic() - began
            check('the program runs', out.split() == ['0', '0'], out + done.stderr)
            check('on the free one', f'{free.url} is used' in done.stderr, done.stderr)
            check('at once', took < 3, took)
        check('all three went there', load(free)['sessions_total'] == 3, load(free))
        out, done = run(OUTBOARD, f'{loaded.url},{free.url}', INIT, env={'OUTBOARD_LOG': 'info', 'OUTBOARD_POLICY': 'binpack'})
        check('binpack takes the one in use', f'{loaded.url} is used' in done.stderr, done.stderr)
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
    out, done = run(OUTBOARD, f'{dead},{closed_port()}', INIT)
    check('all dead: a sentence', out.split()[0] == '100' and 'none of the 2 servers' in done.stderr, out + done.stderr)
    done = tool('check', '--server', f'{dead},{closed_port()}')
    check('check fails then', done.returncode == 1 and 'would get none' in done.stdout, done.stdout)
    done = tool('run', '--server', f'{dead},http://x', '--', 'true')
    check('a list with a wrong address is refused', done.returncode == 2 and 'tcp://' in done.stderr, done.stderr)


def top():
    with Server(SERVER, '--driver', 'soft', '--measure', 'yes', '--max-sessions', '1') as s:
        worker = subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--', LIMITS, 'spin', '3'], stdout=subprocess.PIPE, text=True, env=ENV)
        time.sleep(2)
        told = load(s)
        one = told['listed'][0] if told['listed'] else {}
        check('top sees the session at work', told['schema'] == 1 and told['sessions'] == 1 and one.get('calls', 0) > 10 and one.get('calls_per_second', 0) > 1 and
              one['bytes_in'] > 100 and one['program'].startswith('e2e_limits') and one['client'].startswith('127.0.0.1:') and one['device_seconds'] > 0, told)
        check('and that the server is busy', told['busy_ratio'] > 0.1, told)
        text = tool('top', '--once', '--server', s.url).stdout
        check('as text too', '1 of 1 sessions' in text and 'e2e_limits' in text, text)
        done = tool('run', '--server', s.url, '--', INIT)
        check('one more is refused, clearly', 'the server is full' in done.stderr and '--max-sessions' in done.stderr, done.stderr)
        worker.communicate(timeout=30)
        time.sleep(0.5)
        told = load(s)
        check('the session is gone from top', told['sessions'] == 0 and told['listed'] == [] and told['refused_total'] == 1, told)
    done = tool('top', '--once', '--server', closed_port())
    check('top of nobody fails with a sentence', done.returncode == 1 and 'Connection refused' in done.stderr, done.stderr)


placement()
top()
finish()
