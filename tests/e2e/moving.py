# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A rack of real servers with software devices and real balancers, for tests of moves and for
tools/dev/pool-skew. Programs are tests/e2e/rack_load.c."""
import contextlib
import json
import pathlib
import re
import subprocess

import waiting
from outboard_test import ENV, Server, children


class Rack:
    """options: of each balancer."""

    def __init__(self, folder, outboard, server, balancer, load, names, balancers=('one',), registry='memory', options=()):
        self.folder, self.outboard, self.load = pathlib.Path(folder), outboard, load
        self.env = {**ENV, 'OUTBOARD_TIMEOUT': '20', 'OUTBOARD_LOG': 'warn'}
        self.balancers = {name: Server(balancer, '--name', name, '--registry', registry, *options) for name in balancers}
        self.pool = ','.join(b.url for b in self.balancers.values())
        self.servers = {name: Server(server, '--driver', 'soft', '--nvml', 'none', '--pool', self.pool, '--pool-name', name) for name in names}
        self.programs = []

    # ---- what there is ----

    def tool(self, *arguments, pool=None):
        return subprocess.run([self.outboard, *arguments], capture_output=True, text=True, timeout=waiting.LONG, env={**self.env, 'OUTBOARD_POOL': pool or self.pool})

    def look(self, *what, pool=None):
        done = self.tool(*what, '--json', pool=pool)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def ready(self):
        """All servers are ready at all balancers."""
        def states(b):
            return [s['state'] for s in self.look('server', 'list', pool=b.url).get('servers', [])]
        return waiting.until(lambda: all(states(b) == ['ready'] * len(self.servers) for b in self.balancers.values()))

    def sessions(self):
        return self.look('session', 'list').get('reservations', [])

    def where(self):
        """By server, how many reservations are in use on it."""
        count = dict.fromkeys(self.servers, 0)
        for r in self.sessions():
            for part in r['parts']:
                count[part['server']] += part['state'] == 'running'
        return count

    def busy(self):
        """By server, per mille."""
        return {g['server']: g['busy_per_mille'] for g in self.look('gpu', 'list').get('gpus', [])}

    def events(self, kind):
        return [e for e in self.look('events').get('events', []) if e['kind'] == kind]

    def count(self, kind):
        """Events of one kind and subject that come together are stored as one."""
        return sum(e['count'] for e in self.events(kind))

    def empty(self):
        return waiting.until(lambda: (gpus := self.look('gpu', 'list').get('gpus')) and not any(g['reserved_bytes'] for g in gpus))

    # ---- what is done ----

    def start(self, *load, options=('--restartable',), command=None):
        """Starts rack_load with these arguments, or the command."""
        program = Program(self, [str(word) for word in load], options, command)
        self.programs.append(program)
        return program

    def only(self, *names):
        """No new programs on other servers than these."""
        return all(self.tool('server', 'uncordon' if name in names else 'cordon', name).returncode == 0 for name in self.servers)

    def move(self, program, *server, pool=None):
        return self.tool('session', 'move', '--yes', program.id(), *server, pool=pool)

    def stop(self):
        for program in self.programs:
            program.kill()
        for server in [*self.servers.values(), *self.balancers.values()]:
            server.process.kill()
            server.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def programs_of(pid):
    """The children of an `outboard run` but for the one that sees its group's signals."""
    def name(child):
        with contextlib.suppress(OSError):
            return pathlib.Path(f'/proc/{child}/comm').read_text().strip()
    return [child for child in children(pid) if name(child) != 'outboard-signal']


class Program:
    """A run of rack_load. .file keeps its steps, .out and .err what it has written."""

    def __init__(self, rack, load, options, command):
        self.rack, self.file = rack, rack.folder / f'steps{len(rack.programs)}'
        self.out, self.err = rack.folder / f'out{len(rack.programs)}', rack.folder / f'err{len(rack.programs)}'
        words = load[:2] + ['0', str(self.file), *load[2:]]
        words = [word.format(load=' '.join([rack.load, *words])) for word in command] if command else [rack.load, *words]
        with open(self.out, 'w') as out, open(self.err, 'w') as err:
            self.process = subprocess.Popen([rack.outboard, 'run', '--pool', rack.pool, '--vram', '64MiB', '--hold', '1', *options, '--', *words], stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=err, env=rack.env)

    def steps(self):
        try:
            return int(self.file.read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def works(self):
        """Waits until it has done another step."""
        before = self.steps()
        return waiting.until(lambda: self.steps() > before)

    def begins(self):
        """The steps at which it was started, each with the address of the server."""
        return [(int(step), url) for step, url in re.findall(r'^step (\d+) of \d+ on (\S+)$', self.out.read_text(), re.M)]

    def reservation(self):
        """The one in use; while it is being moved the new one."""
        return next((r for r in self.rack.sessions() if r['pid'] == self.process.pid and not r['moving_to'] and any(p['state'] == 'running' for p in r['parts'])), None)

    def id(self):
        return waiting.until(self.reservation)['id']

    def server(self):
        r = self.reservation()
        return r and r['parts'][0]['server']

    def end(self):
        """Tells it to end by itself. Returns the exit code."""
        pathlib.Path(f'{self.file}.stop').touch()
        return self.process.wait(waiting.LONG)

    def kill(self):
        self.process.kill()
        self.process.wait()
