# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A pool of real parts: a balancer with its registry in a file, two servers with software devices,
programs that are run by `outboard run`, everything over TLS with tokens.

    rack.py OUTBOARD SERVER BALANCER POOL_CLIENT
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from listening import free_ports
from outboard_test import ENV, Server, check, finish

OUTBOARD, SERVER, BALANCER, CLIENT = sys.argv[1:5]


class Rack:
    def __init__(self, folder):
        self.folder = folder
        self.env = {**ENV, 'XDG_CONFIG_HOME': f'{folder}/config', 'XDG_RUNTIME_DIR': folder}
        self.tool('cert', '--cert', f'{folder}/cert.pem', '--key', f'{folder}/key.pem')
        for name, scope in ('rack', 'serve'), ('operator', 'admin'):
            pathlib.Path(folder, scope).write_text(self.tool('token', 'create', '--file', f'{folder}/tokens', '--name', name, '--scope', scope).stdout)
        self.balancer = self.balance(f'tls://127.0.0.1:{free_ports(1)[0]}')
        self.servers = {}

    def tool(self, *arguments, **more):
        return subprocess.run([OUTBOARD, *arguments], capture_output=True, text=True, timeout=waiting.LONG, env=self.env, **more)

    def admin(self, *arguments):
        return subprocess.run([OUTBOARD, *arguments], capture_output=True, text=True, timeout=waiting.LONG,
                              env={**self.env, 'OUTBOARD_TOKEN': pathlib.Path(self.folder, 'admin').read_text().strip()})

    def balance(self, listen):
        f = self.folder
        return Server(BALANCER, '--name', 'one', '--tls-cert', f'{f}/cert.pem', '--tls-key', f'{f}/key.pem', '--tokens', f'{f}/tokens', '--registry', f'static:{f}/registry',
                      '--ticket-key', f'{f}/ticket', listen=listen)

    def serve(self, name):
        f = self.folder
        self.servers[name] = Server(SERVER, '--driver', 'soft', '--nvml', 'none', '--tls-cert', f'{f}/cert.pem', '--tls-key', f'{f}/key.pem', '--pool', self.balancer.url,
                                    '--pool-name', name, '--pool-token-file', f'{f}/serve', listen='tls://127.0.0.1:0', env={'OUTBOARD_TLS_CA': f'{f}/cert.pem'})

    def login(self):
        text = self.tool('token', 'create', '--file', f'{self.folder}/tokens', '--name', 'alice', '--pool', self.balancer.url, '--cert', f'{self.folder}/cert.pem').stdout
        return self.tool('login', '-', input=text)

    def look(self, *what):
        done = self.admin(*what, '--json')
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def ready(self):
        return waiting.until(lambda: [s['state'] for s in self.look('server', 'list').get('servers', [])] == ['ready'] * len(self.servers))

    def reserved(self):
        return [gpu['reserved_bytes'] for gpu in self.look('gpu', 'list').get('gpus', [{'reserved_bytes': None}])]

    def nothing_reserved(self):
        return waiting.until(lambda: not any(self.reserved()) and None not in self.reserved())

    def start(self, *options, seconds=0):
        return subprocess.Popen([OUTBOARD, 'run', '--hold', '1', *options, '--', CLIENT, str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)

    def run(self, *options):
        program = self.start(*options)
        out, err = program.communicate(timeout=waiting.LONG)
        return program.returncode, out, err

    def running(self, program):
        """Waits until the program has its sessions; its process id is that of the request."""
        return waiting.until(lambda: any(r['pid'] == program.pid and all(part['state'] == 'running' for part in r['parts'])
                                         for r in self.look('session', 'list').get('reservations', [])))


def users(rack):
    code, out, err = rack.run('--vram', '64MiB')
    check('then a program runs', code == 0 and out == '1 devices\nright\n', (code, out, err))
    code, out, err = rack.run('--vram', '64MiB', '--gpus', '2')
    check('on the devices of two servers', code == 0 and out == '2 devices\nright\n', (code, out, err))
    found = sorted(gpu['uuid'] for gpu in rack.look('gpu', 'list')['gpus'])
    check('which have different UUIDs', len(set(found)) == 2, found)
    done = rack.tool('run', '--vram', '64MiB', '--gpus', '2', '--hold', '1', '--', OUTBOARD, 'smi', '-L')
    check('that the program sees', sorted(re.findall(r'UUID: ([\w-]+)', done.stdout)) == found, (done.stdout + done.stderr, found))
    check('nothing stays reserved', rack.nothing_reserved(), rack.reserved())
    done = rack.tool('run', '--exclusive', '--hold', '3600', '--', f'{rack.folder}/nothing')
    check('a program that does not exist', done.returncode == 127, done.stderr)
    check('gives its reservation back', rack.nothing_reserved() and 'could not be given back' not in done.stderr, (rack.reserved(), done.stderr))
    check('a third device', rack.run('--gpus', '3')[0] == 69)
    holder = rack.start('--exclusive', '--gpus', '2', seconds=60)
    check('both devices in use', rack.running(holder) and rack.run('--vram', '64MiB')[0] == 75, rack.look('session', 'list'))
    waits = rack.start('--vram', '64MiB', '--wait-for', '60')
    check('a request waits', waiting.until(lambda: rack.look('queue')['queue']))
    ids = [r['id'] for r in rack.look('session', 'list')['reservations']]
    check('a user may end its own session', len(ids) == 1 and rack.tool('session', 'kill', '--yes', ids[0]).returncode == 0)
    holder.communicate(timeout=waiting.LONG)
    out, err = waits.communicate(timeout=waiting.LONG)
    check('the program ends, the waiting one runs', holder.returncode == 3 and waits.returncode == 0 and 'right' in out, (holder.returncode, out, err))
    listed = lambda: rack.look('session', 'list').get('reservations')
    waiting.until(lambda: listed() == [])
    begin = pathlib.Path(rack.folder, 'begin')
    late = subprocess.Popen([OUTBOARD, 'run', '--vram', '64MiB', '--hold', '1', '--', 'sh', '-c', f'until [ -e {begin} ]; do sleep 0.1; done; exec {CLIENT} 0'], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=rack.env)
    unused = waiting.until(listed)[0]['id']
    check('a reservation is ended before its program has used it', rack.admin('session', 'kill', '--yes', unused).returncode == 0)
    begin.touch()
    out, err = late.communicate(timeout=waiting.LONG)
    check('its program is told, and gets no other one', late.returncode != 0 and "ended by the pool's operator" in err and 'asking the pool' not in err, (late.returncode, out, err))
    check('nothing is reserved', rack.nothing_reserved() and listed() == [], rack.look('session', 'list'))
    done = rack.tool('server', 'cordon', next(iter(rack.servers)))
    check('a user is no operator', done.returncode == 77, (done.returncode, done.stderr))


def drains(rack):
    """An operator's orders to a server that runs a program, and to one that is away."""
    name, server = next(iter(rack.servers.items()))
    state = lambda: next((s['state'] for s in rack.look('server', 'list').get('servers', []) if s['name'] == name), None)
    program = rack.start('--where', f'server={name}', '--vram', '64MiB', seconds=600)
    rack.running(program)
    check('a drain with time', rack.admin('server', 'drain', '--yes', name, '--grace', '600').returncode == 0 and waiting.until(lambda: state() == 'draining'), state())
    check('leaves the program running', program.poll() is None)
    check('another drain shortens it', rack.admin('server', 'drain', '--yes', name, '--grace', '0').returncode == 0)
    out, err = program.communicate(timeout=waiting.LONG)
    check('and ends the program', program.returncode == 3 and 'drained by its operator' in err, (program.returncode, out, err))
    server.stop()
    waiting.until(lambda: state() == 'lost')
    rack.serve(name)
    check('a restarted server is still drained', waiting.until(lambda: state() == 'draining'), rack.look('server', 'list'))
    check('and gets nothing', rack.run('--where', f'server={name}', '--vram', '64MiB')[0] == 75)
    check('until it is uncordoned', rack.admin('server', 'uncordon', name).returncode == 0 and rack.ready() and rack.run('--where', f'server={name}', '--vram', '64MiB')[0] == 0)


def moves(rack):
    """With TLS and tokens: the follower has what its program has."""
    def place():
        return [(r['id'], part['server']) for r in rack.look('session', 'list').get('reservations', []) for part in r['parts']
                if r['pid'] == program.pid and part['state'] == 'running' and not r['moving_to']]

    def sockets():
        found = set()
        for fd in pathlib.Path(f'/proc/{program.pid}/fd').iterdir():
            with contextlib.suppress(OSError):
                found.add(os.readlink(fd))
        return sorted(name for name in found if name.startswith('socket:'))

    program = rack.start('--restartable', '--vram', '64MiB', seconds=600)
    rack.running(program)
    (reservation, first), = waiting.until(place)
    waiting.until(lambda: len(sockets()) == 1)
    follows, end = sockets(), time.monotonic() + 7
    check('the follower has a connection', len(follows) == 1, follows)
    check('that it keeps', waiting.until(lambda: sockets() != follows or time.monotonic() > end) and sockets() == follows, (follows, sockets()))
    done = rack.tool('session', 'move', '--yes', reservation)
    check('a user does not move programs', done.returncode == 77, (done.returncode, done.stderr))
    done = rack.admin('session', 'move', '--yes', reservation[:8])
    check('an operator does', done.returncode == 0, (done.returncode, done.stderr))
    check('it is on the other server', waiting.until(lambda: [server for _, server in place()] == [other for other in rack.servers if other != first]), rack.look('session', 'list'))
    program.send_signal(signal.SIGTERM)
    out, err = program.communicate(timeout=waiting.LONG)
    check('and ends as it is told', program.returncode == -signal.SIGTERM and 'started again there, restart 1 of 16' in err, (program.returncode, out, err))
    check('nothing stays reserved for it', rack.nothing_reserved(), rack.reserved())


def losses(rack):
    on_both = rack.start('--gpus', '2', '--vram', '64MiB', '--wait-for', '60', seconds=8)
    rack.running(on_both)
    rack.balancer.process.kill()
    rack.balancer.process.wait()
    code, out, err = rack.run('--vram', '64MiB')
    check('without a balancer nothing begins', code not in (0, 3) and 'outboard run: ' in err, (code, out, err))
    out, err = on_both.communicate(timeout=waiting.LONG)
    check('and nothing ends', on_both.returncode == 0 and out == '2 devices\nright\n', (on_both.returncode, out, err))
    rack.balancer = rack.balance(rack.balancer.url)
    check('the servers come back', rack.ready())
    check('what ended meanwhile is credited', rack.nothing_reserved(), rack.reserved())
    name, server = next(iter(rack.servers.items()))
    lost = rack.start('--where', f'server={name}', '--vram', '64MiB', seconds=60)
    rack.running(lost)
    server.process.send_signal(signal.SIGKILL)
    out, err = lost.communicate(timeout=waiting.LONG)
    check('a program on a lost server is told', lost.returncode == 3 and 'outboard: error: ' in err, (lost.returncode, out, err))
    code, out, err = rack.run('--vram', '64MiB', '--wait-for', '30')
    check('others go elsewhere', code == 0, (code, out, err))
    rack.serve(name)
    check('the server comes back empty', rack.ready() and rack.nothing_reserved(), (rack.look('server', 'list'), rack.reserved()))


def main():
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        rack = Rack(folder)
        for name in 'gpu1', 'gpu2':
            rack.serve(name)
        done = rack.login()
        check('one string logs in', done.returncode == 0, done.stderr)
        check('two servers are ready', rack.ready(), rack.look('server', 'list'))
        users(rack)
        drains(rack)
        moves(rack)
        losses(rack)
        for server in [*rack.servers.values(), rack.balancer]:
            stack.enter_context(server)


main()
finish()
