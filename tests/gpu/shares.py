# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The stages green and mps of tools/dev/gpu-check: whether a device does what the server's --share-by
asks of it, and how much work sessions with shares get done."""
import contextlib
import json
import mmap
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM = 'tests/e2e/e2e_partition'
SPAN = 10  # seconds over which work is counted
# Bounds of what a GPU must show, wide enough for parts that are rounded up and for sessions that take turns.
RATIO = (1.8, 5)       # of the work with 0.75 to that with 0.25, beside each other or alone; exact: 3
QUARTER = (0.1, 0.45)  # of the work with 0.25 to that without a share, both alone; exact: 0.25
SAME = (0.4, 1.6)      # of the work of another kind to that of plain launches, both with 0.25 alone; exact: 1
DEVICE = {'OUTBOARD_SOFT_SMS': '64', 'OUTBOARD_SOFT_THREADS': '8'}  # of a trial run without a GPU


@contextlib.contextmanager
def serving(c, *options):
    """A server on a Unix socket with these options."""
    sys.path.insert(0, str(c.root / 'tests' / 'programs'))
    import run  # noqa: PLC0415: needs the path above
    saved = {name: os.environ.get(name) for name in DEVICE}
    os.environ.update(DEVICE if c.soft else {})
    try:
        server = run.Server(str(c.build), 'unix', options=('--measure', 'yes', '--warm', '2', *options), driver=c.server_driver())
    finally:
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
    try:
        yield server
    finally:
        server.stop()


class Work:
    """A session that launches grids until its end; done() of them have ended."""

    def __init__(self, c, server, share, where='default'):
        self.file = tempfile.NamedTemporaryFile(dir=c.place.name)
        os.truncate(self.file.name, 16)
        self.shared = mmap.mmap(self.file.fileno(), 16)
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command(c, server, share, 'work', self.file.name, where, *(['6000'] if c.soft else [])), env=c.env(), stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=self.output, start_new_session=True)

    def done(self):
        return struct.unpack_from('Q', self.shared)[0]

    def end(self):
        """Returns its output; '' if it ended well."""
        struct.pack_into('Q', self.shared, 8, 1)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.seek(0)
        text = self.output.read().decode(errors='replace')
        return '' if self.process.returncode == 0 else text or f'exit code {self.process.returncode}'


def command(c, server, share, *words):
    return [c.program('tools/outboard'), 'run', '--server', server.url, *(('--share', share) if share else ()), '--', c.program(PROGRAM), *words]


def judged(what, part, whole, bounds):
    """Returns why the work of two sessions is not as their shares say; '' if it is."""
    if not part or not whole:
        return ''  # one was not run, or failed and said so
    ratio = part / whole
    return '' if bounds[0] <= ratio <= bounds[1] else f'{what}: {ratio:.2f}, which is not within {bounds[0]} to {bounds[1]}'


def judge(c, name, what, part, whole, bounds):
    """Records whether the ratio is within the bounds. The software device's depends on how the machine's
    processors are shared, so it is told and not judged."""
    if not part or not whole or not c.wanted(name):
        return
    bad = '' if c.soft else judged(what, part, whole, bounds)
    c.record(name, not bad, 0, f'{what}: {part / whole:.2f}', bad)


def kept_by(c, server):
    done = c.run([c.program('tools/outboard'), 'top', '--once', '--json', '--server', server.url], 20)
    return [one['share_by'] for one in json.loads(done.out)['listed']] if done.ok else []


def counted(c, name, works, servers, want):
    """Counts the work of sessions that run at the same time, and ends them. Returns it in grids a
    second."""
    begin = time.monotonic()
    while not all(w.done() > 2 for w in works) and all(w.process.poll() is None for w in works) and c.left() > 0 and time.monotonic() < begin + 60:
        time.sleep(0.05)  # poll
    before, start = [w.done() for w in works], time.monotonic()
    end = start + min(2 if c.small else SPAN, max(c.left(), 0))
    while (time.monotonic() < end or any(w.done() < b + 3 for w, b in zip(works, before)) and c.left() > 0) and all(w.process.poll() is None for w in works):
        time.sleep(0.05)  # poll
    rates = [(w.done() - b) / (time.monotonic() - start) for w, b in zip(works, before)]
    told = [by for server in servers for by in kept_by(c, server)]
    bad = '\n'.join(filter(None, (w.end() for w in works)))
    text = ', '.join(f'{rate:.2f}' for rate in rates) + ' grids a second' + (f', ratio {rates[-1] / rates[0]:.2f}' if len(rates) > 1 and rates[0] else '')
    c.record(name, not bad and all(rates) and set(told) == {want}, time.monotonic() - begin, f'{text}; kept by {", ".join(told)}', bad, reached=c.left() > 0)
    c.note(f'{name}: rates', rates=rates)
    return rates


def green(c):
    """Shares by green contexts: the order of streams, the work of sessions alone and side by side."""
    alone = {}
    with serving(c, '--share-by', 'green') as server:
        for what in 'order', 'reset', 'units':
            if c.wanted(f'green: {what}'):
                done = c.run(command(c, server, '0.25', what), 60)
                c.judge(f'green: {what}', done, done.out.splitlines()[0] if done.out else '')
        for share in ('0.25',) if c.small else ('0.125', '0.25', '0.5', '0.75'):
            if c.wanted(f'green: alone with {share}'):
                alone[share] = counted(c, f'green: alone with {share}', [Work(c, server, share)], [server], 'green')[0]
        if not c.small:
            for where in 'apart', 'graph', 'further', 'both':
                if c.wanted(f'green: alone with 0.25, {where}'):
                    alone[where] = counted(c, f'green: alone with 0.25, {where}', [Work(c, server, '0.25', where)], [server], 'green')[0]
            if c.wanted('green: alone without a share'):
                alone['all'] = counted(c, 'green: alone without a share', [Work(c, server, None)], [server], 'none')[0]
        judge(c, 'green: three quarters alone to a quarter', '0.75 to 0.25', alone.get('0.75'), alone.get('0.25'), RATIO)
        judge(c, 'green: a quarter alone to all', '0.25 to all', alone.get('0.25'), alone.get('all'), QUARTER)
        for where in 'apart', 'graph', 'further', 'both':
            judge(c, f'green: a quarter alone, {where}', f'{where} to default', alone.get(where), alone.get('0.25'), SAME)
        for where in ('default',) if c.small else ('default', 'apart', 'graph', 'further', 'both'):
            name = f'green: 0.25 beside 0.75, {where}'
            if c.wanted(name):
                small, large = counted(c, name, [Work(c, server, share, where) for share in ('0.25', '0.75')], [server], 'green')
                judge(c, f'{name}: the ratio', '0.75 to 0.25', large, small, RATIO)
        text = server.log()
    c.text('\n'.join(line for line in text.splitlines() if 'share' in line))


@contextlib.contextmanager
def daemon(c, control):
    """MPS's control daemon in folders of its own."""
    folder = pathlib.Path(c.place.name, 'mps')
    folder.mkdir(exist_ok=True)
    names = {'CUDA_MPS_PIPE_DIRECTORY': str(folder), 'CUDA_MPS_LOG_DIRECTORY': str(folder)}
    os.environ.update(names)
    subprocess.run([control, '-d'], env=c.native_env(), timeout=20, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run([control], input='quit\n', text=True, env=c.native_env(), timeout=30, check=False, stdout=subprocess.DEVNULL)
        for name in names:
            os.environ.pop(name, None)


def mps(c):
    """Shares by MPS, with a control daemon of its own: the work done by sessions of two servers."""
    control, alone = shutil.which('nvidia-cuda-mps-control'), {}
    if c.soft or not control:
        c.record('mps', None, text='the software device does not use MPS' if c.soft else 'no nvidia-cuda-mps-control')
        return
    with daemon(c, control), contextlib.ExitStack() as stack:
        servers = [stack.enter_context(serving(c, '--share-by', 'mps', '--share', share, '--max-memory', '4GiB')) for share in ('0.25', '0.75')]
        for server, share in zip(servers, ('0.25', '0.75')):
            if c.wanted(f'mps: units with {share}'):
                done = c.run(command(c, server, None, 'units'), 60)
                c.judge(f'mps: units with {share}', done, done.out.splitlines()[0] if done.out else '')
            if c.wanted(f'mps: alone with {share}'):
                alone[share] = counted(c, f'mps: alone with {share}', [Work(c, server, None)], [server], 'mps')[0]
        judge(c, 'mps: three quarters alone to a quarter', '0.75 to 0.25', alone.get('0.75'), alone.get('0.25'), RATIO)
        if c.wanted('mps: 0.25 beside 0.75'):
            small, large = counted(c, 'mps: 0.25 beside 0.75', [Work(c, server, None) for server in servers], servers, 'mps')
            judge(c, 'mps: 0.25 beside 0.75: the ratio', '0.75 to 0.25', large, small, RATIO)
        open_server = stack.enter_context(serving(c, '--share-by', 'mps', '--share', '0.25', '--sandbox', 'off'))
        if c.wanted('mps: alone with 0.25, without a sandbox'):
            counted(c, 'mps: alone with 0.25, without a sandbox', [Work(c, open_server, None)], [open_server], 'mps')
        c.text('\n'.join(line for server in servers for line in server.log().splitlines() if 'MPS' in line or 'share' in line))
