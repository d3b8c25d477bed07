# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests outboard rqa on a GPU: the software device of a server, through outboard run. The files
must equal those of the CPU byte for byte.

    rqa_gpu.py OUTBOARD SERVER
"""
import math
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../../lib')
from outboard_test import ENV, Server, check, finish  # noqa: E402

OUTBOARD, SERVER = sys.argv[1:3]


def call(*args, url=None):
    words = [OUTBOARD, *(['run', '--server', url, '--', OUTBOARD] if url else []), 'rqa', *map(str, args)]
    return subprocess.run(words, capture_output=True, text=True, timeout=200, env=ENV)


def series(path, n, seed):
    rows = [f'{round(math.sin(0.3 * t + seed), 2)},{round(math.cos(0.17 * t * (seed + 1)), 2)}' for t in range(n)]
    path.write_text('x,y\n' + '\n'.join(rows) + '\n')


def measures(text):
    return re.sub(r'"device":"[^"]*"', '', text)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        data = tmp / 'data'
        data.mkdir()
        for i, n in enumerate((60, 7, 83)):
            series(data / f's{i}.csv', n, i)
        run = ['run', data / 's2.csv', '--m', 2, '--tau', 3, '--eps', 0.3, '--json', '--measures', 'all']
        sweep = ['sweep', data, '--grid', 'm=1..3 tau=1,2 eps=0.1..0.3:0.1 lmin=2,3', '--measures', 'RR,DET,ENTR,LAM,TT']
        cpu = call(*run, '--device', 'cpu')
        check('the CPU', cpu.returncode == 0, cpu.stderr)
        done = call(*sweep, '--device', 'cpu', '--out', tmp / 'cpu')
        check('its sweep', done.returncode in (0, 1), done.stderr)
        with Server(SERVER, '--driver', 'soft', listen=f'unix:{folder}/socket') as server:
            for device in 'gpu', 'cuda':
                gpu = call(*run, '--device', device, url=server.url)
                check(f'--device {device}', gpu.returncode == 0 and 'cuda Outboard software device' in gpu.stdout, gpu.stdout + gpu.stderr)
                check('the same measures', measures(gpu.stdout) == measures(cpu.stdout), gpu.stdout + cpu.stdout)
            done = call(*sweep, '--device', 'gpu', '--out', tmp / 'gpu', url=server.url)
            check('the sweep over the wire', done.returncode in (0, 1), done.stderr)
        for name in 'results.csv', 'failed.csv':
            check(f'the same {name}', (tmp / 'gpu' / name).read_bytes() == (tmp / 'cpu' / name).read_bytes())
        check('rows', (tmp / 'gpu' / 'results.csv').read_text().count(',done,') > 50)
        done = call(*run, '--device', 'tpu')
        check('an unknown device', done.returncode == 2 and 'auto|cpu|gpu' in done.stderr, done.stderr)
    finish()


main()
