# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""`outboard run` with a pool, against balancers whose answers the test decides.

    pool_tools.py OUTBOARD SERVER
"""
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.append(sys.path[0] + '/../lib')
import fake_pool
import outboard_test
import waiting
from fake_pool import Balancer
from listening import Nobody
from outboard_test import ENV, check, finish
from pool_user import GPU, HOME, OUTBOARD, SHOW, grant, on_terminal, refuse, run, tool, variables

SERVER = sys.argv[2]
NOBODY = Nobody()


def reservations():
    with Balancer(grant) as pool:
        done = run(pool.url, '--gpus', '2', '--vram', '4GiB', '--share', '0.5', '--priority', 'high', '--where', 'model=H100', '--exclusive', '--one-server', '--apart', 'w',
                   '--hold', '30', '--policy', 'spread')
        ask, got = pool.of(fake_pool.ASK)[0], variables(done.stdout)
        check('a program runs in a reservation', done.returncode == 0, done.stderr)
        check('all wishes are told', (ask['gpus'], ask['memory'], ask['share'], ask['priority'], ask['where'], ask['exclusive'], ask['one_server'], ask['apart'],
                                      ask['linger'], ask['policy'], ask['wait']) == (2, 4 << 30, 500000, 3, 'model=H100', 1, 1, 'w', 30, 7, 0), ask)
        check('and who asks', ask['program'] == 'env' and ask['host'] and ask['user'] and len(ask['id']) == 16 and ask['token'] == '', ask)
        url, _, ticket = got['OUTBOARD_TICKET'].partition(' ')
        check('the program gets server and ticket', got['OUTBOARD_SERVER'] == url == GPU and bytes.fromhex(ticket)[:4] == b'OBT1' and got['OUTBOARD_POOL'] == pool.url and
              got['OUTBOARD_VRAM'] == '4GiB' and got['OUTBOARD_GPUS'] == '2' and got['OUTBOARD_WHERE'] == 'model=H100', got)
        check('nothing is printed without a terminal', done.stderr == '', done.stderr)
        run(pool.url)
        check('each request has its own id', pool.of(fake_pool.ASK)[1]['id'] != ask['id'])
        wishes = {'GPUS': '3', 'WAIT': '7', 'WHERE': 'zone=a', 'HOLD': '30', 'APART': 'w', 'EXCLUSIVE': '1', 'ONE_SERVER': '1', 'VRAM': '4GiB', 'SHARE': '0.5', 'PRIORITY': 'low',
                  'POLICY': 'spread'}
        wishes = {'OUTBOARD_' + name: text for name, text in wishes.items()}
        got = variables(run(pool.url, env=wishes).stdout)
        ask = pool.of(fake_pool.ASK)[2]
        check('wishes from the environment', {'gpus': 3, 'wait': 7, 'where': 'zone=a', 'linger': 30, 'apart': 'w', 'exclusive': 1, 'one_server': 1, 'memory': 4 << 30, 'share': 500000,
                                              'priority': 1, 'policy': 7}.items() <= ask.items(), ask)
        check('which the program gets', wishes.items() <= got.items(), got)
        got = variables(run(pool.url, '--wait-for', '0', '--where', '', env=wishes).stdout)
        check('an option counts before the environment', pool.of(fake_pool.ASK)[3]['wait'] == 0 and 'OUTBOARD_WAIT' not in got and 'OUTBOARD_WHERE' not in got, got)
        for name, text in ('EXCLUSIVE', 'yes'), ('VRAM', 'much'), ('SHARE', '2'), ('PRIORITY', 'top'), ('HOLD', '0'), ('POLICY', 'best'):
            done = run(pool.url, env={'OUTBOARD_' + name: text})
            check(f'a wrong wish: {name}', done.returncode == 2 and f'OUTBOARD_{name} in the environment takes' in done.stderr and f"not '{text}'" in done.stderr, done.stderr)
        done = tool('run', '--server', GPU, '--', *SHOW, env=wishes)
        check('a server that is named needs no pool', done.returncode == 0, done.stderr)
        done = tool('run', '--', *SHOW, env={'OUTBOARD_POOL': pool.url, 'OUTBOARD_SERVER': 'tcp://elsewhere:1'})
        check('OUTBOARD_POOL is asked before OUTBOARD_SERVER', variables(done.stdout).get('OUTBOARD_SERVER') == GPU, done.stdout + done.stderr)
        asked = len(pool.of(fake_pool.ASK))
        done = tool('run', '--server', 'tcp://elsewhere:1', '--', *SHOW, env={'OUTBOARD_POOL': pool.url, 'OUTBOARD_TICKET': 'x'})
        got = variables(done.stdout)
        check('--server leaves the pool of the environment alone', got['OUTBOARD_SERVER'] == 'tcp://elsewhere:1' and 'OUTBOARD_POOL' not in got and
              len(pool.of(fake_pool.ASK)) == asked, got)
        done = tool('run', '--', *SHOW, env={'OUTBOARD_POOL': pool.url, 'OUTBOARD_TICKET': 'tcp://s:1 00', 'OUTBOARD_SERVER': 'tcp://s:1'})
        got = variables(done.stdout)
        check('inside a reservation the same one is used', got['OUTBOARD_TICKET'] == 'tcp://s:1 00' and got['OUTBOARD_POOL'] == pool.url and
              len(pool.of(fake_pool.ASK)) == asked, got)
        done = run(pool.url, command=['/no/such/program'])
        check('a program that cannot start: the reservation is given back', done.returncode == 127 and
              pool.of(fake_pool.CANCEL)[-1]['id'] == pool.of(fake_pool.ASK)[-1]['id'], done.stderr)
    for arguments in (['--server', GPU, '--pool', 'tcp://h:1'], ['--server', GPU, '--gpus', '2'], ['--direct', '--exclusive'], ['--pool', 'http://x'], ['--pool', 'shm:/x'],
                      ['--pool', 'nobody-has-this-name'], ['--pool', ','.join(['tcp://h:1'] * 9)], ['--pool', 'tcp://h', '--gpus', '65']):
        done = tool('run', *arguments, '--', *SHOW)
        check('wrong usage: ' + ' '.join(arguments)[:40], done.returncode == 2 and '--help' in done.stderr, done.stderr)
    # A variable that is set, to whatever value, does not hide what the command line asks for.
    for option, variable, value in (('--exclusive', 'OUTBOARD_EXCLUSIVE', '0'), ('--one-server', 'OUTBOARD_ONE_SERVER', '0'), ('--apart=w', 'OUTBOARD_APART', 'v'), ('--hold=5', 'OUTBOARD_HOLD', '6'),
                                    ('--gpus=2', 'OUTBOARD_GPUS', '1'), ('--where=zone=a', 'OUTBOARD_WHERE', 'zone=b'), ('--wait-for=5', 'OUTBOARD_WAIT', '6'), ('--restartable', 'OUTBOARD_SHARE', '1')):
        for where in ['--server', GPU], ['--direct']:
            done = tool('run', *where, option, '--', *SHOW, env={variable: value})
            check(f'{option} with its variable and {where[0]}', done.returncode == 2 and option.split('=')[0] + (' needs a pool' if where[0] == '--server' else ' is for a pool') in done.stderr, done.stderr)
        done = tool('run', '--server', GPU, '--', *SHOW, env={variable: value})
        check(f'{variable} alone is for other programs', done.returncode == 0, done.stderr)


def balancer_comes():
    """A request that may wait waits for a balancer, too."""
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/balancer'
        with subprocess.Popen([OUTBOARD, 'run', '--pool', f'unix:{path}', '--wait-for', '600', '--', *SHOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV) as program:
            first = program.stderr.readline()
            check('it says that none answers', 'no balancer of the pool answers, trying again for' in first and path in first, first)
            with Balancer(grant, path=path) as pool:
                out, err = program.communicate(timeout=waiting.LONG)
                check('the program runs when there is one', program.returncode == 0 and variables(out)['OUTBOARD_POOL'] == pool.url, (program.returncode, out, err))
                check('it was said once', 'no balancer' not in err, err)
        done = tool('run', '--pool', f'unix:{path}', '--wait-for', '2', '--', *SHOW)
        check('until the time is over', done.returncode == 75 and 'cannot be asked' in done.stderr, (done.returncode, done.stderr))
        done = tool('run', '--pool', f'unix:{path}', '--', *SHOW)
        check('without time it is not tried again', done.returncode == 75 and 'trying again' not in done.stderr, (done.returncode, done.stderr))


def several_parts():
    with Balancer(lambda link, message: link.granted(message, [('gpu1', f'tcp://one:1 {GPU}', ''), ('gpu2', 'tls://two:2', 'AB' * 32), ('gpu3', 'tls://[::1]:3', 'cd' * 32)])) as pool:
        own = f'tls://two:2={"33" * 32}'
        got = variables(run(pool.url, env={'OUTBOARD_TLS_PIN': own}).stdout)
        check('a pin of the user stays the only one of its address', got['OUTBOARD_TLS_PIN'] == own + ',tls://[::1]:3=' + 'cd' * 32, got)
        got = variables(run(pool.url, env={'OUTBOARD_TLS_PIN': '11' * 32}).stdout)
        check('several servers: addresses with + between them', got['OUTBOARD_SERVER'] == f'{GPU}+tls://two:2+tls://[::1]:3', got)
        check('a ticket for each', [part.split()[0] for part in got['OUTBOARD_TICKET'].split(',')] == got['OUTBOARD_SERVER'].split('+'), got)
        check('a pin for each, which counts for its address only', got['OUTBOARD_TLS_PIN'] == '11' * 32 + ',tls://two:2=' + 'ab' * 32 + ',tls://[::1]:3=' + 'cd' * 32, got)


def no_balancer():
    with outboard_test.Server(SERVER, '--driver', 'null') as server:
        for words in (['run', '--pool', server.url, '--', 'true'], ['queue', '--pool', server.url], ['server', 'cordon', 'x', '--pool', server.url]):
            done = tool(*words)
            check(f'a server instead of a balancer: {words[0]}', done.returncode == 64 and 'it is a server, not a balancer' in done.stderr and not done.stdout, (done.returncode, done.stderr))


def refusals():
    for code, status, words in ((fake_pool.CAPACITY, 69, 'can fulfil'), (fake_pool.LATER, 75, '--wait-for'), (fake_pool.DENIED, 77, 'not allow'),
                                (fake_pool.INVALID, 64, 'request is wrong'), (fake_pool.FAULT, 70, 'balancer failed')):
        with Balancer(refuse(code, 'because\x1b[31m of tests')) as pool:
            done = run(pool.url)
            check(f'refusal {code}: exit code {status}', done.returncode == status and words in done.stderr and 'because?[31m of tests' in done.stderr and not done.stdout,
                  (done.returncode, done.stderr))
    done = run(NOBODY.url)
    check('no balancer answers: try later', done.returncode == 75 and 'Connection refused' in done.stderr and NOBODY.url in done.stderr, (done.returncode, done.stderr))
    done = run('unix:/no/such/socket')
    check('no such socket', done.returncode == 75 and 'No such file' in done.stderr, done.stderr)


def lists():
    ids = []

    def hang_up(link, message):
        ids.append(message['id'])
        link.sock.close()
        raise EOFError

    with Balancer(hang_up) as bad, Balancer(grant) as good:
        done = run(f'{NOBODY.url},{bad.url},{good.url}')
        for _ in range(20):
            if ids:
                break
            done = run(f'{bad.url},{good.url}')
        check('the next balancer is asked', done.returncode == 0, done.stderr)
        check('with the same id, when the first is lost after the request', ids and ids[-1] == good.of(fake_pool.ASK)[-1]['id'], ids)
    with Balancer(refuse(fake_pool.LATER, 'stopping')) as stops, Balancer(grant) as good:
        check('a balancer that cannot now: the next one', all(run(f'{stops.url},{good.url}').returncode == 0 for _ in range(4)))
    with Balancer(refuse(fake_pool.DENIED, 'no')) as first, Balancer(refuse(fake_pool.DENIED, 'no')) as second:
        done = run(f'{first.url},{second.url}')
        check('what every balancer would refuse is asked once', done.returncode == 77 and len(first.heard) + len(second.heard) == 1, done.stderr)
    tries = []

    def second_time(link, message):
        tries.append(message['id'])
        if len(tries) == 1:
            link.sock.close()
            raise EOFError
        grant(link, message)

    with Balancer(second_time) as pool:
        done = run(pool.url)
        check('one balancer that loses the first connection is asked again with the same id', done.returncode == 0 and len(tries) == 2 and tries[0] == tries[1], done.stderr)


def queue():
    go = threading.Event()

    def waits(link, message):
        link.queued(2, 5, 200000, 'all GPUs are in use')
        link.queued(1, 4)
        go.wait(waiting.LONG)
        grant(link, message)

    with Balancer(waits) as pool:
        program = subprocess.Popen([OUTBOARD, 'run', '--pool', pool.url, '--wait-for', '100', '--', *SHOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**ENV, 'OUTBOARD_LOG': 'info', 'OUTBOARD_COMPILERS': '0'})
        lines = [program.stderr.readline() for _ in range(2)]
        check('one line for each change', 'position 2 of 5, about 4 min: all GPUs are in use' in lines[0] and 'position 1 of 4' in lines[1], lines)
        go.set()
        out, err = program.communicate(timeout=waiting.LONG)
        check('then the program runs', program.returncode == 0 and variables(out)['OUTBOARD_SERVER'] == GPU and 'reserved 1 GPU' in err, err)
        check('the wait was told', pool.of(fake_pool.ASK)[0]['wait'] == 100, pool.heard)
    with Balancer(lambda link, message: (link.queued(1, 1), link.refused(fake_pool.LATER, 'nothing became free'))) as pool:
        done = run(pool.url, '--wait-for', '1')
        check('the wait is over', done.returncode == 75 and 'within 1 s: nothing became free' in done.stderr, (done.returncode, done.stderr))

    def cut(link, message):
        link.queued(1, 1)
        link.sock.close()
        raise EOFError

    with Balancer(cut) as dies, Balancer(grant) as other:
        for _ in range(20):
            done = run(f'{dies.url},{other.url}', '--wait-for', '50', env={'OUTBOARD_LOG': 'info'})
            if dies.heard:
                break
        check('a balancer that dies in the queue: the other, with the same id', done.returncode == 0 and dies.heard[-1]['id'] == other.heard[-1]['id'] and
              'a balancer was lost' in done.stderr, done.stderr)
    for number in (signal.SIGINT, signal.SIGTERM):
        with Balancer(lambda link, message: link.queued(1, 1) if message['type'] == fake_pool.ASK else link.done()) as pool:
            program = subprocess.Popen([OUTBOARD, 'run', '--pool', pool.url, '--wait-for', '100', '--', *SHOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
            waiting.until(lambda: pool.of(fake_pool.ASK))
            program.send_signal(number)
            out, err = program.communicate(timeout=waiting.LONG)
            check(f'{number.name} cancels', program.returncode == -number and not out and 'cancelled' in err and
                  [message['id'] for message in pool.of(fake_pool.CANCEL)] == [pool.of(fake_pool.ASK)[0]['id']], (program.returncode, err, pool.heard))


def terminal():
    def waits(link, message):
        if message['type'] == fake_pool.ASK:
            link.queued(3, 9, 0, 'a long reason ' * 20)
            grant(link, message)

    with Balancer(waits) as pool:
        said, status = on_terminal('run', '--pool', pool.url, '--wait-for', '9', '--', 'true')
        line = re.search(r'\r\x1b\[Koutboard: (waiting for GPUs: position 3 of 9: [^\r\n]*)', said)
        check('one line on a terminal, cut to its width', status == 0 and line and len('outboard: ' + line.group(1)) == 79, repr(said))
        check('which is removed', said.endswith('\r\x1b[K'), repr(said))


def hostile():
    def raw(data):
        def answer(link, message):
            link.sock.sendall(data)
            link.sock.close()
            raise EOFError
        return answer

    def other_id(link, message):
        link.granted({'id': bytes(16)}, [('gpu1', GPU, '')])

    def others_ticket(link, message):
        link.send(fake_pool.GRANT, id=message['id'], tenant='', parts=[{'server': 's', 'urls': GPU, 'pin': '', 'ticket': fake_pool.ticket(bytes(16), 's', [bytes(16)])}])

    def parts(n, **changes):
        def answer(link, message):
            one = {'server': 's', 'urls': GPU, 'pin': '', 'ticket': fake_pool.ticket(message['id'], 's', [bytes(16)]), **changes}
            link.send(fake_pool.GRANT, id=message['id'], tenant='', parts=[one] * n)
        return answer

    huge = fake_pool.frames.Frame(payload=b'\xc0' * 8)
    huge.size = 1 << 30
    cases = {'no frame': raw(b'HTTP/1.1 400 Bad Request\r\n' * 4), 'a huge frame': raw(huge.bytes()), 'half a frame': raw(huge.bytes()[:20]),
             'no map': raw(fake_pool.frames.Frame(payload=b'\xff' * 64).bytes()), "another's id": other_id, "another's ticket": others_ticket, 'no part': parts(0),
             'nine parts': parts(9), 'no ticket': parts(1, ticket=b''), 'a ticket of zeros': parts(1, ticket=bytes(200)), 'a question instead of an answer':
             lambda link, message: link.send(fake_pool.QUERY, what='info'), 'a load of addresses': parts(1, urls='x' * 2000),
             'no address': parts(1, urls=''), 'an address with a comma': parts(1, urls='tcp://a:1,b:2'), 'an address with +': parts(1, urls='unix:/a+tcp://b:1'),
             'a wrong pin': parts(1, pin='zz')}
    for name, answer in cases.items():
        with Balancer(answer) as pool:
            done = run(pool.url, env={'OUTBOARD_TIMEOUT': '2'})
            check(f'hostile balancer: {name}', done.returncode in (70, 75) and done.stderr.startswith('outboard run: ') and not done.stdout, (done.returncode, done.stderr))
    stop = threading.Event()

    def floods(link, message):
        while not stop.is_set():
            link.queued(1, 1)

    with Balancer(floods) as pool:
        done = run(pool.url, '--wait-for', '0', env={'OUTBOARD_TIMEOUT': '1'})
        stop.set()
        check('positions without end: the wait ends all the same', done.returncode == 75 and 'in time' in done.stderr, (done.returncode, done.stderr))


def silent():
    near = socket.create_server(('127.0.0.1', 0))
    url = 'tcp://127.0.0.1:%d' % near.getsockname()[1]
    done = run(url, env={'OUTBOARD_TIMEOUT': '1'})
    check('a balancer that says nothing', done.returncode == 75 and 'did not answer in time' in done.stderr, (done.returncode, done.stderr))
    near.close()


def tls():
    cert, key = HOME.name + '/cert.pem', HOME.name + '/key.pem'
    pin = tool('cert', '--cert', cert, '--key', key, '--names', '127.0.0.1').stdout.strip()
    token = 'obt_01234567_' + '89' * 32
    with Balancer(grant, files=(cert, key)) as pool:
        for text in (pin, f'{pool.url}={pin}', f'{"0" * 64},{pool.url}={pin}'):
            done = run(pool.url, env={'OUTBOARD_TLS_PIN': text, 'OUTBOARD_TOKEN': token})
            check('the right pin, and the token is shown', done.returncode == 0 and pool.of(fake_pool.ASK)[-1]['token'] == token, done.stderr)
        for text in ('0' * 64, f'{pin},{pool.url}={"0" * 64}', f'tls://other:1={pin}'):
            done = run(pool.url, env={'OUTBOARD_TLS_PIN': text, 'OUTBOARD_TOKEN': token})
            check('the wrong pin: exit code 77', done.returncode == 77 and 'certificate' in done.stderr, (done.returncode, done.stderr))
        done = run(pool.url, env={'OUTBOARD_TLS_CA': cert})
        check('by an authority', done.returncode == 0, done.stderr)


reservations()
balancer_comes()
several_parts()
no_balancer()
refusals()
lists()
queue()
terminal()
hostile()
silent()
tls()
finish()
