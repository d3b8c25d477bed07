# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Measures the overhead of the Python package: the same calls in Python and in C, alternately, with
the library of the installed package. Not a test.

    overhead.py SOURCE OUTBOARD [ROUNDS]

OUTBOARD is the outboard command, which generates the points.
"""
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

import outboard_compute
from outboard_compute import msm, rqa

SOURCE, COMMAND = pathlib.Path(sys.argv[1]), sys.argv[2]
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 10
RUNS = 20  # calls of each language in a round
LOG_N = 16


def timed(work):
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return times


def compare(name, work, *arguments):
    """Compares the fastest calls, which other load on the machine affects least. The first call of
    each C process opens its context and is left out."""
    in_python, in_c = [], []
    work()
    for _ in range(ROUNDS):
        in_python += timed(work)
        done = subprocess.run([*arguments, str(RUNS + 1)], capture_output=True, text=True, check=True)
        in_c += [float(line) for line in done.stdout.split()][1:]
    mine, other = min(in_python), min(in_c)
    print(f'{name}: Python {mine * 1e3:.3f} ms, C {other * 1e3:.3f} ms, ratio {mine / other:.3f}, '
          f'difference {(mine - other) * 1e6:.0f} us')


def main():
    package = pathlib.Path(outboard_compute.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        program = f'{folder}/overhead'
        subprocess.run(['cc', '-O2', '-o', program, pathlib.Path(__file__).with_name('overhead.c'), f'-I{SOURCE}/compute/engine',
                        package / 'liboutboard.so.0', '-lm', f'-Wl,-rpath,{package}'], check=True)
        for n in 100, 1000, 10_000:
            x = np.sin(np.arange(n) * 0.1)
            compare(f'RQA of {n} samples', lambda x=x: rqa.analyse(x, m=3, tau=5, eps=0.2), program, 'rqa', str(n))
        points, scalars = f'{folder}/points', f'{folder}/scalars'
        subprocess.run([COMMAND, 'msm', 'gen', '--n', str(1 << LOG_N), '--points', points, '--scalars', scalars],
                       check=True, capture_output=True)
        packed = np.fromfile(points, np.uint8).reshape(-1, 48)
        numbers = np.fromfile(scalars, np.uint8).reshape(-1, 32)
        with msm.Bases(packed, trust='subgroup') as bases:
            compare(f'MSM of 2^{LOG_N} points', lambda: bases.msm(numbers), program, 'msm', points, scalars, str(1 << LOG_N))


main()
