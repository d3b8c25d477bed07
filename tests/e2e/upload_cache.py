# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The upload cache: the second start of a program sends almost nothing, and the device has the same
bytes. Other tenants cannot use the entries. The cache stays within its limit. Damaged or evicted
chunks are sent again.

    upload_cache.py OUTBOARD SERVER UPLOAD_PROGRAM [MIB]
"""
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

sys.path.append(sys.path[0] + '/../lib')
import cutter
from outboard_test import ENV, Server, check, finish, needs, run

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
MIB = int(sys.argv[4]) if len(sys.argv) > 4 else 24
needs('cache')
ON = {'OUTBOARD_CACHE': 'on', 'OUTBOARD_STATS': '1'}


def metrics(server):
    url = server.line(r'metrics at (\S+)').group(1)
    text = urllib.request.urlopen(url, timeout=20).read().decode()
    return {name: float(value) for name, value in re.findall(r'^outboard_(\S+) (\S+)$', text, re.M)}


def start(folder, *options, **more):
    return Server(SERVER, '--driver', 'soft', '--cache', folder, '--metrics', 'tcp://127.0.0.1:0', *options, **more)


def upload(server, seed=1, piece=8 << 20, mib=MIB, env=ON, url=None):
    """Returns the program's output, the bytes that the server received for it, and the run."""
    before = metrics(server)
    out, done = run(OUTBOARD, url or server.url, PROGRAM, str(mib), str(seed), str(piece), 'all', env=env, timeout=120)
    after = metrics(server)
    return out, after['net_bytes_total{dir="in"}'] - before['net_bytes_total{dir="in"}'], done


def files(folder):
    return [os.path.join(path, name) for path, _, names in os.walk(folder) for name in names if name[0] in 'ci']


def held(folder):
    """Returns the bytes in the cache. The server may remove files meanwhile."""
    total = 0
    for file in files(folder):
        with contextlib.suppress(FileNotFoundError):
            total += os.path.getsize(file)
    return total


def second_start(folder):
    with start(folder) as s:
        first, sent, done = upload(s)
        check('the first start sends everything', len(first) == 17 and sent > MIB << 20, (first, sent, done.stderr))
        second, again, done = upload(s)
        check('the second start sends less than 5 % of it', again < sent * 0.05, (sent, again, done.stderr))
        check('and the device has the same', second == first, (first, second))
        m = metrics(s)
        check('hits, misses and bytes are counted', m['cache_hits_total'] == m['cache_misses_total'] == MIB * 4 and
              m['cache_bytes'] == m['cache_hit_bytes_total'] == MIB << 20, m)
        check('--stats says so', re.search(rf'the server had {MIB * 4} of {MIB * 4} chunks', done.stderr), done.stderr)
        other, sent, _ = upload(s, piece=(5 << 20) + 12345)
        check('copies of another size find what fits', other == first and sent > MIB << 19, (other, sent))
        plain, sent, _ = upload(s, env={'OUTBOARD_CACHE': 'off'})
        check('OUTBOARD_CACHE=off sends everything', plain == first and sent > MIB << 20, (plain, sent))
        plain, sent, _ = upload(s, env={'OUTBOARD_CACHE': 'on', 'OUTBOARD_OPT': '-cache'})
        check('so does OUTBOARD_OPT=-cache', plain == first and sent > MIB << 20, (plain, sent))
        plain, sent, _ = upload(s, env={})
        check('and so does a client on the same machine, where nothing is to be gained', plain == first and sent > MIB << 20, (plain, sent))
    with start(folder) as s:
        third, sent, done = upload(s)
        check('it outlives the server', third == first and sent < MIB << 15, (third, sent, done.stderr))
    return first


def damage(folder, first):
    victims = sorted(files(folder))[:3]
    with open(victims[0], 'r+b') as f:
        f.seek(1000)
        byte = f.read(1)
        f.seek(1000)
        f.write(bytes([byte[0] ^ 1]))
    os.truncate(victims[1], 77)
    os.truncate(victims[2], 0)
    with start(folder) as s:
        out, sent, done = upload(s, piece=MIB << 20)
        check('damaged chunks are sent after all', out == first and 2 << 18 < sent < 6 << 18, (out, first, sent, done.stderr))
        check('and were noticed', s.line('is damaged and is removed'), s.lines)
        out, sent, done = upload(s, piece=MIB << 20)
        check('and kept anew', out == first and sent < MIB << 15, (out, sent, done.stderr))


def limit(folder):
    with start(folder, '--upload-cache', '16MiB') as s:
        seen = []
        for seed in range(5, 9):
            out, _, done = upload(s, seed=seed, mib=12)
            seen.append(held(folder))
            check(f'uploads of seed {seed} are right', len(out) == 17, out + done.stderr)
        check('it stays within its limit', max(seen) <= 16 << 20 and min(seen) > 6 << 20, seen)
        m = metrics(s)
        check('what was thrown away is counted', m['cache_evictions_total'] > 0 and m['cache_bytes'] <= 16 << 20 == m['cache_limit_bytes'], m)
        _, sent, _ = upload(s, seed=8, mib=12)
        # 48 chunks of 256 KiB: less than one chunk is sent.
        check('what came last is still there', sent < 1 << 18, sent)
    with start(folder, '--upload-cache', '0') as s:
        out, sent, done = upload(s, seed=8, mib=4)
        check('a server that keeps nothing gets everything', len(out) == 17 and sent > 4 << 20 and 'upload cache' not in done.stderr, (out, sent, done.stderr))


def tenants(folder):
    tokens = os.path.join(folder, 'tokens')
    made = [subprocess.run([OUTBOARD, 'token', 'create', '--file', tokens, '--name', name], capture_output=True, text=True, env=ENV, check=True).stdout.strip()
            for name in ('alice', 'bob')]
    cache = os.path.join(folder, 'cache')
    with start(cache, '--tokens', tokens) as s:
        results = {}
        for who, token in (('alice', made[0]), ('bob', made[1]), ('alice again', made[0])):
            results[who] = upload(s, seed=3, mib=4, env=dict(ON, OUTBOARD_TOKEN=token))
        sent = {who: r[1] for who, r in results.items()}
        check('all have the same', len({r[0] for r in results.values()}) == 1, results)
        check("nobody profits from another's uploads", sent['alice'] > 4 << 20 and sent['bob'] > 4 << 20, sent)
        check('everybody from his own', sent['alice again'] < 4 << 16, sent)
    folders = [f for f in os.listdir(cache) if f != 'usage']
    check('each has a folder of his own, private', len(folders) == 2 and
          all(os.stat(os.path.join(cache, f)).st_mode & 0o777 == 0o700 for f in folders), folders)


def broken(folder):
    """Connections break while chunks are queried, sent and copied: the device must have the right
    bytes after the first start and after the second."""
    with start(folder) as s:
        plain, _, _ = upload(s, seed=4, env={'OUTBOARD_CACHE': 'off'})
        for which, mean in (('first', 2 << 20), ('second', 6 << 10)):
            proxy = cutter.Proxy('tcp:', s.url, 12, mean, 0, True, 7)
            out, sent, done = upload(s, seed=4, url=proxy.url)
            made = proxy.total()
            proxy.close()
            check(f'{which} start: right through {made} breaks', out == plain and made > 3, (out, plain, done.stderr))
        check('of the second start nothing was sent twice', sent < MIB << 16, sent)


def main():
    with tempfile.TemporaryDirectory() as folder:
        first = second_start(folder)
        damage(folder, first)
    with tempfile.TemporaryDirectory() as folder:
        limit(folder)
    if '-resume' not in os.environ.get('OUTBOARD_OPT', '') and '-all' not in os.environ.get('OUTBOARD_OPT', ''):
        with tempfile.TemporaryDirectory() as folder:
            broken(folder)
    with tempfile.TemporaryDirectory() as folder:
        tenants(folder)
    finish()


main()
