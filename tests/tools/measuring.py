# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests `outboard bench latency` and `outboard bench bandwidth`: the parts of a latency add up to
it, every sample is in the histogram, the plots are well-formed XML. Times are not checked.

    measuring.py OUTBOARD
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import check, finish

OUTBOARD = sys.argv[1]
ENV = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_SERVER')}
CLASSES = ['local', 'async', 'sync', 'bulk read', 'bulk write', 'launch+sync', 'bare']


def bench(*arguments):
    done = subprocess.run([OUTBOARD, 'bench', *map(str, arguments)], capture_output=True, text=True, timeout=100, env=ENV)
    check(' '.join(map(str, arguments[:4])) + ' runs', done.returncode == 0, done.stdout + done.stderr)
    return done.stdout


def latency(listen, plot):
    rows = {r['name']: r for r in json.loads(bench('latency', '--with', 'null', '--listen', listen, '--rounds', 1, '--samples', 500, '--json', '--plot', plot))}
    for name in CLASSES:
        row = rows['latency: ' + name]
        check(f'{name}: ordered', 0 < row['p50'] <= row['p90'] <= row['p99'] <= row['max'], row)
        check(f'{name}: every sample counted', row['samples'] == 500 == sum(row['histogram']), row)
        remote = name in CLASSES[2:6]
        check(f'{name}: split {"or" if remote else "is not for it"}', row['split'] == remote, row)
        if remote:
            parts = [row[p] for p in ('client', 'wire', 'queue', 'driver')]
            check(f'{name}: no part is negative, each was met', all(p > 0 for p in parts), row)
            # The mean of the samples near the median differs from the median only by the spread of
            # these samples.
            check(f'{name}: the parts add up', 0.5 * row['p50'] < sum(parts) < 2 * row['p50'], row)
    # With the null driver the sockets take nearly all of the time: sending a reply must not count
    # as waiting for the driver.
    row = rows['latency: sync']
    check('nothing waits before a driver that does nothing', row['queue'] < row['wire'] / 3, row)
    check('a sentence says where it goes', 'are spent' in rows['latency: verdict']['text'] or 'us' in rows['latency: verdict']['text'], rows['latency: verdict'])
    tree = xml.etree.ElementTree.parse(plot)
    check('the plot names every class', set(CLASSES) <= {t.text for t in tree.iter('{http://www.w3.org/2000/svg}text')}, plot)


def bandwidth(plot):
    rows = json.loads(bench('bandwidth', '--with', 'null', '--rounds', 1, '--json', '--plot', plot))
    sizes = [r['bytes'] for r in rows if 'bytes' in r]
    check('sizes from 4 KiB to 64 MiB', sizes == [4096 << 2 * i for i in range(8)], sizes)
    ways = [way + end for way in ('', 'packed_', 'striped_', 'bare_') for end in ('up', 'down')]
    check('every rate was measured', all(r[k] > 0 for r in rows if 'bytes' in r for k in ways), rows)
    check('a sentence says which way is best', any('from the device: ' in r.get('best', '') for r in rows), rows)
    xml.etree.ElementTree.parse(plot)


with tempfile.TemporaryDirectory() as top:
    latency('tcp://127.0.0.1:0', pathlib.Path(top, 'tcp.svg'))
    latency(f'unix:{top}/s', pathlib.Path(top, 'unix.svg'))
    bandwidth(pathlib.Path(top, 'bandwidth.svg'))
    text = bench('latency', '--with', 'null', '--rounds', 1, '--samples', 100)
    check('as text', all(name in text for name in CLASSES) and 'a call that waits' in text, text)
    done = subprocess.run([OUTBOARD, 'bench', 'latency', '--with', 'null', '--rounds', '1', '--samples', '100', '--plot', '/nowhere/x.svg'], capture_output=True, text=True, timeout=60, env=ENV)
    check('a plot that cannot be written is an error', done.returncode == 1 and '/nowhere/x.svg' in done.stderr, done.stderr)
finish()
