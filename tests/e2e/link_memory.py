# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A session begins with what earlier ones measured of the link: its first copies are sent like the
last ones of the session before. Counts chunks by codec and measures no time. Uses a network
namespace and a link limited by tc; skipped where these are not available.

    link_memory.py OUTBOARD SERVER BULK_PROGRAM
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from link import Link
from outboard_test import ENV, check, finish, needs, skip

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
SLOW, FAST, PORT, TRIES = 12.5e6, 1.25e9, 14843, 6  # bytes/s
MIB = 1 << 20
UNITS = {'bytes': 1, 'KiB': 1 << 10, 'MiB': 1 << 20, 'GiB': 1 << 30}
needs('compress,linkmemory,async,byref,resume')


class Run:
    """One session: its copies to the device and back, and the counters of --stats."""

    def __init__(self, link, cache, kind, size, copies=1, **env):
        self.done = subprocess.run([OUTBOARD, 'run', '--stats', '--server', f'tcp://{link.address}:{PORT}', '--', PROGRAM, kind, str(size), str(copies)],
                                   capture_output=True, text=True, timeout=120,
                                   env=dict(ENV, XDG_CACHE_HOME=str(cache), OUTBOARD_CACHE='off', OUTBOARD_STRIPES='0', **env))
        self.ok = self.done.returncode == 0 and self.done.stdout.endswith('same\n')
        self.memory = [float(n) * UNITS[unit] for n, unit in re.findall(r'([\d.]+) (\w+)/s', (re.findall('link: remembered (.*)', self.done.stderr) or [''])[0])]
        self.bye = re.findall(r'outboard: (bye\w*) ', self.done.stderr)

    def chunks(self, way):
        """{codec: chunks} of a direction, 'out' or 'in'"""
        return {codec: int(n) for codec, n in re.findall(rf'compression {way}: (\w+) +(\d+) chunks', self.done.stderr)}

    def packed(self, way):
        return sum(n for codec, n in self.chunks(way).items() if codec != 'none')

    def packed_bytes(self, way):
        return sum(float(n) * UNITS[unit] for codec, n, unit in re.findall(rf'compression {way}: (\w+) +\d+ chunks, ([\d.]+) (\w+) ', self.done.stderr) if codec != 'none')

    def __str__(self):
        return self.done.stdout + self.done.stderr


def numbers(cache):
    """The numbers of the one file in the cache folder."""
    path, = (cache / 'outboard').glob('link-*')
    return {words[0]: int(words[1]) for words in map(str.split, path.read_text().splitlines()) if len(words) == 2 and words[0] not in ('check', 'outboard-link')}


def unknown(link, cache):
    run = Run(link, cache, 'random', 16 * MIB)
    check('nothing is known of the link in the first session', run.ok and run.memory[:2] == [0, 0] and run.bye == ['bye_link'], run)
    known = numbers(cache)
    check('then its rates are', all(SLOW / 2 < known.get(way, 0) < 2 * SLOW for way in ('out', 'in')) and known.get('round-trip', 0) > 0, known)
    check('nobody else may read them', all(p.stat().st_mode & 0o77 == 0 for p in (cache / 'outboard', *(cache / 'outboard').iterdir())))
    return known


def slow_again(link, cache, known):
    run = Run(link, cache, 'tokens', 16 * MIB)
    check('the second session begins with them', run.ok and all(abs(n - known[w]) < 0.1 * MIB for n, w in zip(run.memory, ('out', 'in'), strict=False)), (known, str(run)))
    for way in 'out', 'in':
        chunks = run.chunks(way)
        check(f'its first copy is compressed as a slow link needs it ({way})', chunks.get('lz4', 0) + chunks.get('none', 0) <= 2 and run.packed(way) >= 16, run)


def remember(cache, rate):
    """Writes both rates into the file, with its checksum (FNV-1a)."""
    path, = (cache / 'outboard').glob('link-*')
    title, key = path.read_text().splitlines()[:2]
    text, sum64 = f'{title}\n{key}\nout {rate:.0f}\nin {rate:.0f}\n', 0xcbf29ce484222325
    for byte in text.encode():
        sum64 = (sum64 ^ byte) * 0x100000001b3 % (1 << 64)
    path.write_text(f'{text}check {sum64:016x}\n')


def fast(link, cache):
    """The link has become faster. Random bytes are never compressed, so the rate is measured well.
    A busy machine makes the link look slow in the middle of a copy, so one of some sessions has to
    show what is expected; each has the same beginning."""
    run = Run(link, cache, 'random', 64 * MIB, 2)
    known = numbers(cache)
    check('a faster link is measured', run.ok and all(known[way] > 4 * SLOW for way in ('out', 'in')), (known, str(run)))
    known_runs, fresh_runs = [], []
    for _ in range(TRIES):
        remember(cache, FAST)
        known_runs.append(Run(link, cache, 'float', 16 * MIB))
        fresh_runs.append(Run(link, cache, 'float', 16 * MIB, OUTBOARD_OPT=ENV.get('OUTBOARD_OPT', '') + ',-linkmemory'))
    for way in 'out', 'in':
        check(f'a fast link is known from the first chunk on ({way})', any(run.ok and run.packed(way) == 0 for run in known_runs), known_runs[-1])
        check(f'without memory the first chunks are compressed ({way})', any(run.ok and run.packed(way) > 2 for run in fresh_runs), fresh_runs[-1])
    check('and the switch means no report', not fresh_runs[0].memory and fresh_runs[0].bye == ['bye'], fresh_runs[0])
    remember(cache, FAST)


def slow_suddenly(link, cache):
    run = Run(link, cache, 'tokens', 16 * MIB)
    for way in 'out', 'in':
        check(f'a link that became slow is noticed in the first copy ({way})', run.ok and run.packed_bytes(way) >= 10 * MIB, run)
    check('and remembered', all(numbers(cache)[way] < 4 * SLOW for way in ('out', 'in')), numbers(cache))


def damaged(link, cache):
    path, = (cache / 'outboard').glob('link-*')
    path.write_bytes(b'\xff' * 2000)
    run = Run(link, cache, 'random', 16 * MIB)
    check('a damaged file is not used, silently', run.ok and run.memory[:2] == [0, 0] and 'link-' not in run.done.stderr, run)
    check('and replaced', numbers(cache).get('out', 0) > 0)
    done = subprocess.run([OUTBOARD, 'check', '--server', f'tcp://{link.address}:{PORT}'], capture_output=True, text=True, timeout=60, env=dict(ENV, XDG_CACHE_HOME=str(cache)))
    check('outboard check says what is remembered', done.returncode == 0 and re.search(r'^remembered  [\d.]+ MiB/s to the server, [\d.]+ MiB/s from it', done.stdout, re.M),
          done.stdout + done.stderr)


def unwritable(link, cache):
    run = Run(link, cache / 'missing' / 'folder', 'random', 16 * MIB)
    check('a folder that cannot be made is no error', run.ok and run.memory[:2] == [0, 0] and 'kept' not in run.done.stderr, run)


def main():
    if Link.missing():
        skip(Link.missing())
    with tempfile.TemporaryDirectory() as folder, Link() as link:
        cache = pathlib.Path(folder)
        server = subprocess.Popen([*link.inside, SERVER, '--listen', f'tcp://{link.address}:{PORT}', '--insecure', '--driver', 'soft'], stderr=subprocess.PIPE, text=True,
                                  env=ENV)
        try:
            while 'listening' not in server.stderr.readline():
                if server.poll() is not None:
                    raise SystemExit('the server did not start')
            link.set(rate=SLOW)
            slow_again(link, cache, unknown(link, cache))
            link.set(rate=FAST)
            fast(link, cache)
            link.set(rate=SLOW)
            slow_suddenly(link, cache)
            damaged(link, cache)
            unwritable(link, cache)
        finally:
            server.terminate()
            server.wait(20)
    finish()


main()
