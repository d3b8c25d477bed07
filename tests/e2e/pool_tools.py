# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The pool from the user's side, against balancers whose answers the test decides.

    pool_tools.py OUTBOARD SERVER
"""
import contextlib
import json
import os
import pathlib
import pty
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
from listening import Listener, Nobody
from outboard_test import ENV, check, finish

OUTBOARD, SERVER = sys.argv[1:3]
NOBODY = Nobody()
HOME = tempfile.TemporaryDirectory(prefix='outboard-pool-')
SHOW = ['env']  # the program that shows what it was given
GPU = 'tcp://127.0.0.1:1'  # a server's address; nobody connects to it


def tool(*arguments, env=None, stdin=None, timeout=waiting.LONG):
    return subprocess.run([OUTBOARD, *arguments], capture_output=True, text=True, timeout=timeout, input=stdin,
                          env={**ENV, 'XDG_CONFIG_HOME': HOME.name + '/none', 'OUTBOARD_COMPILERS': '0', **(env or {})})


def run(pool, *arguments, env=None, command=None):
    return tool('run', '--pool', pool, *arguments, '--', *(command or SHOW), env=env)


def variables(text):
    return dict(line.split('=', 1) for line in text.splitlines() if '=' in line)


def grant(link, message):
    if message['type'] == fake_pool.ASK:
        link.granted(message, [('gpu1', GPU, '')])
    elif message['type'] == fake_pool.CANCEL:
        link.done()


def refuse(code, text, retry=0):
    def answer(link, message):
        link.refused(code, text, retry)
    return answer


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


def on_terminal(*arguments, env=None, prompt='', keys=b''):
    """Runs the command on a terminal; types the keys after the prompt. Returns what it wrote and its
    exit status."""
    near, far = pty.openpty()
    program = subprocess.Popen([OUTBOARD, *arguments], stdin=far, stdout=far, stderr=far, start_new_session=True,
                               env={**ENV, 'TERM': 'xterm', 'XDG_CONFIG_HOME': HOME.name + '/none', 'OUTBOARD_COMPILERS': '0', **(env or {})})
    os.close(far)
    hangs = threading.Timer(waiting.LONG, program.kill)
    hangs.start()
    data = b''
    with contextlib.suppress(OSError):
        while part := os.read(near, 65536):
            data += part
            if keys and prompt.encode() in data:
                os.write(near, keys)
                keys = b''
    hangs.cancel()
    os.close(near)
    return data.decode(), program.wait(waiting.LONG)


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


def logins():
    token, other = 'obt_01234567_' + '89' * 32, 'obt_76543210_' + '98' * 32
    config = HOME.name + '/config'
    path = pathlib.Path(config, 'outboard', 'pool.ini')
    cert, key, tokens = HOME.name + '/c2.pem', HOME.name + '/k2.pem', HOME.name + '/tokens'
    pin = tool('cert', '--cert', cert, '--key', key, '--names', '127.0.0.1').stdout.strip()

    def admits(link, message):
        if message.get('token') not in (token, made) and message['type'] != fake_pool.CANCEL:
            link.refused(fake_pool.DENIED, 'unknown token')
        elif message['type'] == fake_pool.QUERY:
            link.answer({'schema': 1})
        else:
            grant(link, message)

    def user(*arguments, env=None, stdin=None):
        return tool(*arguments, stdin=stdin, env={'XDG_CONFIG_HOME': config, **(env or {})})

    made = ''
    with Balancer(admits, files=(cert, key)) as pool, Balancer(admits) as plain:
        string = tool('token', 'create', '--file', tokens, '--pool', pool.url, '--cert', cert).stdout.strip()
        check('the string of an operator', re.fullmatch(rf'outboard\+{re.escape(pool.url)}\?pin={pin}#obt_\w{{8}}_\w{{64}}', string), string)
        made = string.partition('#')[2]
        done = user('login', '-', '--name', 'lab', stdin=string + '\n')
        check('login by the string', done.returncode == 0 and 'logged in to lab' in done.stdout and made not in done.stdout + done.stderr, done)
        check('asks the pool once', [(m['type'], m['what'], m['token']) for m in pool.heard] == [(fake_pool.QUERY, 'info', made)], pool.heard)
        check('the file is for its owner only', path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700, oct(path.stat().st_mode))
        done = user('run', '--', *SHOW)
        check('then run needs no option', done.returncode == 0 and variables(done.stdout)['OUTBOARD_SERVER'] == GPU and pool.of(fake_pool.ASK)[-1]['token'] == made, done.stderr)
        done = user('login', plain.url, '--token', token, '--name', 'second')
        check('login by address and token', done.returncode == 0, done.stderr)
        asked = len(plain.of(fake_pool.ASK))
        check('the last login is the default', user('run', '--', 'true').returncode == 0 and len(plain.of(fake_pool.ASK)) == asked + 1)
        asked = len(pool.of(fake_pool.ASK))
        done = user('run', '--pool', 'lab', '--', 'true')
        check('another one by its name', done.returncode == 0 and len(pool.of(fake_pool.ASK)) == asked + 1, done.stderr)
        done = user('run', '--pool', pool.url, '--', 'true')
        check('or by its address: pin and token are the login\'s', done.returncode == 0 and pool.of(fake_pool.ASK)[-1]['token'] == made, done.stderr)
        done = user('run', '--', 'true', env={'OUTBOARD_TOKEN': other})
        check('a token of the environment is used before', done.returncode == 77 and plain.heard[-1]['token'] == other, done.stderr)
        done = user('run', '--server', 'tcp://elsewhere:1', '--', *SHOW)
        check('--server is used before a login', variables(done.stdout)['OUTBOARD_SERVER'] == 'tcp://elsewhere:1' and 'OUTBOARD_TOKEN' not in variables(done.stdout), done.stdout)
        done = user('run', '--', *SHOW, env={'OUTBOARD_SERVER': 'tcp://elsewhere:1'})
        check('OUTBOARD_SERVER too', variables(done.stdout)['OUTBOARD_SERVER'] == 'tcp://elsewhere:1', done.stdout)
        shown = json.loads(user('config', 'show', '--json').stdout)
        check('config show names the login', shown['pool'] == {'value': plain.url, 'from': 'login second'} and shown['token'] == {'value': 'set', 'from': 'login'}, shown)
        text = user('config', 'show', '--pool', 'lab', env={'OUTBOARD_TOKEN': other}).stdout
        check('and option and environment', re.search(r'pool +\S+ +\(option\)', text) and re.search(r'token +set +\(environment\)', text) and pin in text and
              token not in text, text)
        text = user('config', 'show', env={'XDG_CONFIG_HOME': HOME.name + '/none'}).stdout
        check('and the default', re.search(r'server +tcp://127.0.0.1:14800 +\(default\)', text) and 'token    -' in text, text)
        before = path.read_text()
        done = user('login', plain.url, '--token', other)
        check('a token that the pool refuses is not stored', done.returncode == 77 and path.read_text() == before, done.stderr)
        done = user('login', NOBODY.url, '--token', other)
        check('nor a pool that cannot be reached', done.returncode == 75 and path.read_text() == before, done.stderr)
        for wrong in ('', 'http://x', f'{pool.url}?pin=12', f'{plain.url}?pin={pin}', f'{pool.url}?key=1', ','.join([plain.url] * 9), 'tcp://' + 'h' * 300, plain.url + '#' + 'x' * 90, plain.url + '#a;b', plain.url + '#a\tb', 'unix:/a b'):
            done = user('login', '-', stdin=wrong + '\n')
            check('no pool: ' + wrong[:30], done.returncode == 2 and path.read_text() == before, done.stderr)
        path.chmod(0o644)
        for arguments in (['run', '--', 'true'], ['config', 'show'], ['login', plain.url, '--token', token]):
            done = user(*arguments)
            check(f'a file that others can read is refused by {arguments[0]}', done.returncode == 1 and f'chmod 600 {path}' in done.stderr, done.stderr)
        path.chmod(0o600)
        for damaged in ('[lab\n', '[lab]\nnonsense = 1\n', '[lab]\npin = ' + pin, '[lab]\ntoken = x\n', '[a b]\nbalancer = tcp://h:1\n', '[l]\nbalancer = ' + 'x' * 500):
            path.write_text(damaged)
            done = user('run', '--', 'true')
            check('a damaged file: ' + repr(damaged[:20]), done.returncode == 1 and str(path) in done.stderr, done.stderr)
        path.write_text(before)
        if os.geteuid() == 0:
            os.chown(path, 12345, -1)
            done = user('run', '--', 'true')
            check("another user's file is refused", done.returncode == 1 and 'another user' in done.stderr, done.stderr)
            os.chown(path, 0, -1)
        done = user('logout')
        check('logout of the default', done.returncode == 0 and 'second' in done.stdout and 'second' not in path.read_text() and token not in path.read_text(), done)
        check('the other is the default then', user('run', '--', 'true').returncode == 0)
        check('logout of an unknown one', user('logout', 'nobody').returncode == 1)
        check('the last logout removes the file', user('logout', 'lab').returncode == 0 and not path.exists())
        check('logout of nothing', user('logout').returncode == 1 and user('logout', '--all').returncode == 0)
        both = tool('token', 'create', '--file', tokens, '--pool', f'{pool.url},{plain.url}').stdout.strip()
        made = both.partition('#')[2]
        check('a string of two balancers', user('login', both, env={'OUTBOARD_TLS_PIN': pin}).returncode == 0, both)
        check('is kept as two', user('config', 'show').stdout.split()[1] == f'{pool.url},{plain.url}')
        said, status = on_terminal('login', plain.url, prompt='Token', keys=token.encode() + b'\n', env={'XDG_CONFIG_HOME': config})
        check('a terminal is asked for the token, and does not show it', status == 0 and 'Token' in said and token not in said.partition('Token')[2], said)
        done = tool('token', 'create', '--file', tokens, '--pool', f'{pool.url},{plain.url}', '--cert', cert, '--cert', cert, '--cert', cert)
        check('more certificates than balancers', done.returncode == 2, done.stderr)


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


def no_balancer():
    with outboard_test.Server(SERVER, '--driver', 'null') as server:
        for words in (['run', '--pool', server.url, '--', 'true'], ['queue', '--pool', server.url], ['server', 'cordon', 'x', '--pool', server.url]):
            done = tool(*words)
            check(f'a server instead of a balancer: {words[0]}', done.returncode == 64 and 'it is a server, not a balancer' in done.stderr and not done.stdout, (done.returncode, done.stderr))


reservations()
balancer_comes()
several_parts()
tables()
orders()
hostile_documents()
no_balancer()
logins()
refusals()
lists()
queue()
terminal()
hostile()
silent()
tls()
finish()
