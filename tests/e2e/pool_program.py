# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Programs that use GPUs of a pool: the client library with a reservation of `outboard run`, without
one, and with one that has ended; NVML.

    pool_program.py OUTBOARD SERVER INIT_PROGRAM
"""
import os
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import fake_pool
import frames
import pooling
import waiting
from fake_pool import Balancer
from listening import Listener, Nobody
from outboard_test import ENV, Server, check, finish

OUTBOARD, SERVER, INIT = sys.argv[1:4]
NAME = 'rack-1'
NOBODY = Nobody()
LIBRARIES = os.path.dirname(OUTBOARD) + '/../client-shim'
# registers the server and makes tickets
KEEPER = pooling.Balancer()


class Pool:
    """A balancer that grants devices of one server."""

    def __init__(self, server, n=1, wait=False, refuse=None, **ticket):
        self.server, self.n, self.wait, self.refuse, self.ticket = server, n, wait, refuse, ticket
        self.granted, self.over = [], False  # over: who follows is told that the reservation has ended
        self.balancer = Balancer(self.answer)
        self.url = self.balancer.url

    def answer(self, link, message):
        if message['type'] == FOLLOW and not waiting.until(lambda: self.over):
            return
        if message['type'] == FOLLOW:
            link.refused(fake_pool.INVALID, 'the reservation has ended')
            return
        if message['type'] != fake_pool.ASK:
            link.done()
            return
        if self.refuse:
            link.refused(*self.refuse)
            return
        if self.wait:
            link.queued(1, 1, 0, 'in use')
        devices = KEEPER.devices(NAME)[:self.n]
        ticket = KEEPER.ticket(NAME, devices, id=message['id'], **self.ticket)
        self.granted.append(message)
        link.send(fake_pool.GRANT, id=message['id'], tenant='alice', parts=[{'server': NAME, 'urls': self.server.url, 'pin': '', 'ticket': ticket}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.balancer.close()


def bare(*command, env):
    """A program that was not started by `outboard run`."""
    return subprocess.run(command, capture_output=True, text=True, timeout=waiting.LONG, stdin=subprocess.DEVNULL,
                          env={**ENV, 'LD_LIBRARY_PATH': LIBRARIES, **env})


def run(pool, *command, env=None):
    return subprocess.run([OUTBOARD, 'run', '--pool', pool.url, '--', *command], capture_output=True, text=True, timeout=waiting.LONG, stdin=subprocess.DEVNULL,
                          env={**ENV, **(env or {})})


def ended(message):
    return KEEPER.beat(NAME, lambda _: KEEPER.state(NAME, message['id']) == pooling.ENDED)


NAMES = ('id', 'token', 'pid', 'program')  # what names a request
FOLLOW = 78


def again(pool):
    """A second request has the wishes of the first one, also those that only the pool knows."""
    asked = len(pool.granted)
    options = ['--vram', '64M', '--share', '0.5', '--priority', 'low', '--where', 'zone=a', '--exclusive', '--apart', 'w', '--hold', '30', '--policy', 'spread', '--wait-for', '9']
    program = subprocess.Popen([OUTBOARD, 'run', '--pool', pool.url, *options, '--', 'sh', '-c', f'read line; {INIT}'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=ENV)
    check('the pool is asked', waiting.until(lambda: len(pool.granted) > asked))
    check('the reservation is void before the program uses it', KEEPER.order(NAME, pooling.VOID, pool.granted[-1]['id']) == pooling.VOIDED)
    out, err = program.communicate('\n', timeout=waiting.LONG)
    first, second = pool.granted[asked], pool.granted[-1]
    check('it asks again', out.split() == ['0', '0'] and len(pool.granted) == asked + 2, (out, err))
    # All fields of a request but what names it: so that a new one is not forgotten.
    wishes = [{key: value for key, value in ask.items() if key not in NAMES} for ask in (first, second)]
    # the library is set up for one server then
    check('with all wishes', wishes[1] == {**wishes[0], 'one_server': 1} and wishes[0]['linger'] == 30 and wishes[0]['exclusive'] == 1 and first['id'] != second['id'], wishes)
    ended(second)


def restartable(pool):
    """Its second reservation is not movable, as nobody would start it again, and the user is told."""
    asked = len(pool.granted)
    program = subprocess.Popen([OUTBOARD, 'run', '--pool', pool.url, '--vram', '64M', '--restartable', '--', 'sh', '-c', f'read line; {INIT}; read line'], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
    check('the pool is asked for a restartable one', waiting.until(lambda: len(pool.granted) > asked) and pool.granted[-1]['restartable'] == 1)
    check('which is void', KEEPER.order(NAME, pooling.VOID, pool.granted[-1]['id']) == pooling.VOIDED)
    program.stdin.write('\n')
    program.stdin.flush()
    check('the second one is not restartable', waiting.until(lambda: len(pool.granted) == asked + 2) and pool.granted[-1]['restartable'] == 0)
    said = read_until(program, 'not moved any more')
    check('the user is told', 'warn: asking the pool for another reservation; the program is not moved any more' in said, said)
    program.communicate('\n', timeout=waiting.LONG)
    ended(pool.granted[-1])


def read_until(program, words):
    said = ''
    while words not in said and (line := program.stderr.readline()):
        said += line
    return said


def goes_on(pool):
    """A script that goes on after its CUDA program: the end of the reservation is no warning."""
    asked = len(pool.granted)
    program = subprocess.Popen([OUTBOARD, 'run', '--pool', pool.url, '--restartable', '--', 'sh', '-c', f'{INIT}; read line'], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**ENV, 'OUTBOARD_LOG': 'info'})
    check('its reservation ends', [program.stdout.readline().strip() for _ in range(2)] == ['0', '0'] and ended(pool.granted[asked]))
    pool.over = True
    said = read_until(program, 'not moved any more')
    check('it is told', 'outboard: the program is not moved any more: the reservation has ended' in said, said)
    _, rest = program.communicate('\n', timeout=waiting.LONG)
    check('without a warning', program.returncode == 0 and len(pool.granted) == asked + 1 and 'warn:' not in said + rest, said + rest)


def reservations(server):
    with Pool(server) as pool:
        done = run(pool, INIT)
        check('a program of `outboard run` uses its reservation', done.stdout.split() == ['0', '0'] and done.stderr == '' and len(pool.granted) == 1, done.stdout + done.stderr)
        check('which ends with it', ended(pool.granted[0]))
        # the second process starts when the first has ended the reservation: it gets one of its own
        program = subprocess.Popen([OUTBOARD, 'run', '--pool', pool.url, '--', 'sh', '-c', f'{INIT}; read line; {INIT}'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=ENV)
        check('the first process', [program.stdout.readline().strip() for _ in range(2)] == ['0', '0'])
        ended(pool.granted[-1])
        out, err = program.communicate('\n', timeout=waiting.LONG)
        check('a reservation that has ended: the library asks for another one', out.split() == ['0', '0'] and len(pool.granted) == 3 and
              'the reservation has ended' in err and 'asking the pool for another reservation' in err, (out, err, len(pool.granted)))
        ended(pool.granted[-1])
        again(pool)
        restartable(pool)
        goes_on(pool)
    with Pool(server, linger=3) as pool:
        done = run(pool, 'sh', '-c', f'{INIT} & {INIT}; wait')
        check('two processes use one reservation', done.stdout.split() == ['0'] * 4 and len(pool.granted) == 1, done.stdout + done.stderr)
        check('and end it', ended(pool.granted[-1]))


def alone(server):
    with Pool(server, wait=True) as pool:
        done = bare(INIT, env={'OUTBOARD_POOL': pool.url, 'OUTBOARD_LOG': 'info', 'OUTBOARD_VRAM': '64M', 'OUTBOARD_WAIT': '30', 'OUTBOARD_WHERE': 'zone=a', 'OUTBOARD_GPUS': '1',
                               'OUTBOARD_SHARE': '0.5', 'OUTBOARD_PRIORITY': 'low', 'OUTBOARD_EXCLUSIVE': '1', 'OUTBOARD_ONE_SERVER': '1', 'OUTBOARD_APART': 'w',
                               'OUTBOARD_HOLD': '30', 'OUTBOARD_POLICY': 'spread'})
        ask = pool.granted[0] if pool.granted else {}
        check('a program without `outboard run` asks the pool itself', done.stdout.split() == ['0', '0'] and 'the pool has granted 1 GPU on ' + server.url in done.stderr and
              'position 1 of 1: in use' in done.stderr, done.stdout + done.stderr)
        wishes = {'memory': 64 << 20, 'wait': 30, 'where': 'zone=a', 'share': 500000, 'priority': 1, 'exclusive': 1, 'one_server': 1, 'apart': 'w', 'linger': 30, 'policy': 7,
                  'program': os.path.basename(INIT)}
        check('with the wishes of its environment', wishes.items() <= ask.items(), ask)
        ended(ask)
        wrong = {'GPUS': 'many', 'WHERE': 'x' * 300, 'WAIT': '-1', 'HOLD': '86401', 'EXCLUSIVE': 'yes', 'ONE_SERVER': '2', 'APART': 'x' * 300, 'POLICY': 'best'}
        done = bare(INIT, env={'OUTBOARD_POOL': pool.url, **{'OUTBOARD_' + name: text for name, text in wrong.items()}})
        check('wrong wishes are left out, with a warning each', done.stdout.split() == ['0', '0'] and all(f'OUTBOARD_{name}' in done.stderr for name in wrong), done.stderr)
        ended(pool.granted[-1])
    for refuse, words in (((fake_pool.LATER, 'all GPUs are in use'), 'all GPUs are in use'), ((fake_pool.DENIED, 'no token'), 'no token')):
        with Pool(server, refuse=refuse) as pool:
            done = bare(INIT, env={'OUTBOARD_POOL': pool.url})
            check(f'refused: one line and the error of CUDA: {words}', done.stdout.split()[0] == '46' and words in done.stderr.splitlines()[0], done.stdout + done.stderr)
    done = bare(INIT, env={'OUTBOARD_POOL': NOBODY.url})
    check('no balancer: one line', done.stdout.split()[0] == '100' and 'Connection refused' in done.stderr.splitlines()[0], done.stdout + done.stderr)
    done = bare(INIT, env={'OUTBOARD_POOL': 'http://x'})
    check('a wrong address', done.stdout.split()[0] == '100' and 'tls://' in done.stderr, done.stdout + done.stderr)


class Hello:
    """A server that keeps the first message and says nothing."""

    def __init__(self):
        self.hello = None
        self.listener = Listener(self.read)
        self.url = 'tcp:' + self.listener.address

    def read(self, connection):
        frames.receive(connection, frames.PREFACE)
        frame = frames.Frame.read(connection)
        self.hello = frames.unpack(frame.payload[:frame.raw_size])
        connection.close()


def secrets():
    """A server of a pool gets the ticket and not the user's token."""
    server, token = Hello(), 'obt_01234567_' + '89' * 32
    with Pool(server) as pool:
        run(pool, INIT, env={'OUTBOARD_TOKEN': token, 'OUTBOARD_GRACE': '0'})
        check('the balancer gets the token', pool.granted[0]['token'] == token)
        check('the server gets the ticket only', server.hello['ticket'][:4] == b'OBT1' and not server.hello.get('token'), server.hello)
    with_token = Hello()
    subprocess.run([OUTBOARD, 'run', '--server', with_token.url, '--', INIT], capture_output=True, env={**ENV, 'OUTBOARD_TOKEN': token}, timeout=waiting.LONG)
    check('without a pool it gets the token', with_token.hello['token'] == token, with_token.hello)
    for one in server, with_token:
        one.listener.close()


def management(server):
    names = [OUTBOARD, 'smi', '--list-gpus']
    size = [OUTBOARD, 'smi', '--query-gpu', 'memory.total', '--format', 'csv,noheader']
    with Pool(server, memory=64 << 20) as pool:
        done = run(pool, *size)
        check("NVML shows the reservation's memory before CUDA starts", done.stdout.split() == ['64', 'MiB'], done.stdout + done.stderr)
        for text, words in (f'{server.url} 00', 'is no ticket'), (f'{server.url} 0g', 'hexadecimal'), (server.url, 'stands behind'):
            done = bare(*size, env={'OUTBOARD_SERVER': server.url, 'OUTBOARD_TICKET': text})
            check('a wrong ticket: ' + words, done.returncode and words in done.stderr, done.stdout + done.stderr)
    count = [sys.executable, '-c', 'import ctypes as c; n = c.CDLL("libnvidia-ml.so.1"); i = c.c_uint(9); print(n.nvmlInit_v2(), n.nvmlDeviceGetCount_v2(c.byref(i)), i.value)']
    with Pool(server, n=2) as pool:
        done = run(pool, OUTBOARD, 'check')
        check('check in a program of a pool uses its reservation', done.returncode == 0 and done.stdout.count('SOFTWARE DEVICE') == 2, done.stdout + done.stderr)
        done = run(pool, *count)
        check("NVML shows the reservation's devices only", done.stdout.split() == ['0', '0', '2'], done.stdout + done.stderr)
        done = run(pool, *names)
        check('smi too', done.stdout.count('UUID') == 2, done.stdout + done.stderr)
        done = bare(*count, env={'OUTBOARD_POOL': pool.url, 'LD_LIBRARY_PATH': LIBRARIES})
        check('without a reservation: none, and a message', done.stdout.split() == ['0', '0', '0'] and 'has no reservation' in done.stderr and "outboard run --pool" in done.stderr,
              done.stdout + done.stderr)


def together():
    """A grant of two servers: one list of devices, and NVML shows those of both tickets."""
    options = ['--driver', 'soft', '--pool', KEEPER.url]
    count = ('import ctypes as c; d = c.CDLL("libcuda.so.1"); n = c.CDLL("libnvidia-ml.so.1"); i, j = c.c_int(), c.c_uint(); '
             'print(d.cuInit(0), d.cuDeviceGetCount(c.byref(i)), i.value, n.nvmlInit_v2(), n.nvmlDeviceGetCount_v2(c.byref(j)), j.value)')
    with Server(SERVER, *options, '--pool-name', 'one', env={'OUTBOARD_SOFT_DEVICES': '4'}) as one, \
            Server(SERVER, *options, '--pool-name', 'two', env={'OUTBOARD_SOFT_DEVICES': '4'}) as two:
        servers = {'one': (one, 1), 'two': (two, 2)}
        for name in servers:
            KEEPER.beat(name, lambda beat: beat['load']['devices'])

        def answer(link, message):
            if message['type'] == fake_pool.ASK:
                link.send(fake_pool.GRANT, id=message['id'], tenant='alice', parts=[
                    {'server': name, 'urls': server.url, 'pin': '', 'ticket': KEEPER.ticket(name, KEEPER.devices(name)[:n], id=message['id'])}
                    for name, (server, n) in servers.items()])

        with Balancer(answer) as pool:
            done = run(pool, sys.executable, '-c', count)
            check('the devices of two servers are one list', done.stdout.split() == ['0', '0', '3', '0', '0', '3'], done.stdout + done.stderr)
            asked = len(pool.of(fake_pool.ASK))
            program = subprocess.Popen([OUTBOARD, 'run', '--pool', pool.url, '--', sys.executable, '-c', f'input(); {count}'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, env=ENV)
            check('the pool is asked', waiting.until(lambda: len(pool.of(fake_pool.ASK)) > asked))
            check('both parts are void', all(KEEPER.order(name, pooling.VOID, pool.of(fake_pool.ASK)[-1]['id']) == pooling.VOIDED for name in servers))
            # another order of the servers, and one more device
            servers.update(two=servers.pop('two'), one=(one, 2))
            out, err = program.communicate('\n', timeout=waiting.LONG)
            check('a reservation of two servers that has ended: the library asks for another one', out.split()[:3] == ['0', '0', '4'] and 'asking the pool' in err, out + err)
            check('on as many servers as the pool likes', pool.of(fake_pool.ASK)[-1]['one_server'] == 0 and len(pool.of(fake_pool.ASK)) == asked + 2)
            done = bare(INIT, env={'OUTBOARD_POOL': pool.url, 'OUTBOARD_GPUS': '3'})
            check('also for a program that asks by itself', done.stdout.split() == ['0', '0'], done.stdout + done.stderr)


def main():
    options = ['--driver', 'soft', '--pool', KEEPER.url, '--pool-name', NAME]
    with Server(SERVER, *options, env={**ENV, 'OUTBOARD_SOFT_DEVICES': '4'}) as server:
        check('the server is a member', KEEPER.beat(NAME, lambda beat: beat['load']['devices']))
        reservations(server)
        alone(server)
        management(server)
        secrets()
    together()
    KEEPER.close()


main()
finish()
