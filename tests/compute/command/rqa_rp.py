# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Checks what compute/docs/RECURRENCE.md says of the preset rp: which measures equal those of rqa.m
in pucicu/rp, under which names, and how they differ with a Theiler window of 0. The measures of
rqa.m are computed here cell by cell.

    rqa_rp.py OUTBOARD ROOT
"""
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../../lib')
from outboard_test import bad, check  # noqa: E402

OUTBOARD, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
LENGTH, RADIUS = 150, 0.1
SHARED = ('Lmax', 'LAM', 'TT', 'Vmax', 'Wmax', 'W', 'RTE')  # equal with any Theiler window
OTHERS = ('RR', 'DET', 'L', 'ENTR', 'C', 'T')


def runs(cells):
    """Lengths of the runs of true cells."""
    length = 0
    for cell in [*cells, False]:
        if not cell and length:
            yield length
        length = length + 1 if cell else 0


def mean_over(lengths, shortest):
    long = [n for n in lengths if n >= shortest]
    return sum(long) / len(long)


def entropy(lengths):
    shares = [lengths.count(n) / len(lengths) for n in set(lengths)]
    return -sum(p * math.log(p) for p in shares) / math.log(LENGTH)


def theirs(series, shortest, window):
    """Measures of rqa.m under our names."""
    every = range(LENGTH)
    plot = [[abs(a - b) <= RADIUS for b in series] for a in series]
    kept = [[plot[i][j] and abs(i - j) >= window for j in every] for i in every]
    points = sum(map(sum, kept))
    half = [n for k in range(window, LENGTH) for n in runs(kept[j + k][j] for j in range(LENGTH - k))]
    diagonal, vertical = half * 2, [n for j in every for n in runs(kept[i][j] for i in every)]
    white = []
    for column in zip(*plot):
        inside = ''.join('x' if cell else ' ' for cell in column).strip()
        white += [n for n in runs(c == ' ' for c in inside)]
    degree = [sum(row) for row in kept]
    closed = [sum(kept[j][k] for j in every if kept[i][j] for k in every if kept[i][k]) for i in every]
    clusters = [c / (d * (d - 1)) for c, d in zip(closed, degree) if d > 1]
    return {
        'RR': points / (LENGTH * LENGTH - LENGTH - 2 * ((window - 1) * LENGTH - sum(range(1, window)))),
        'DET': sum(n for n in diagonal if n >= shortest) / points, 'L': mean_over(diagonal, shortest), 'Lmax': max(diagonal), 'ENTR': entropy(diagonal),
        'LAM': sum(n for n in vertical if n >= shortest) / points, 'TT': mean_over(vertical, shortest), 'Vmax': max(vertical),
        'Wmax': max(white), 'W': sum(white) / len(white), 'RTE': entropy(white),
        'C': sum(clusters) / len(clusters), 'T': sum(closed) / sum(d * d for d in degree),
    }


def ours(path, shortest, window):
    done = subprocess.run([OUTBOARD, 'rqa', 'run', path, '--preset', 'rp', '--eps', str(RADIUS), '--lmin', str(shortest), '--vmin', str(shortest), '--theiler', str(window),
                           '--measures', ','.join(SHARED + OTHERS + ('T2', 'points')), '--json'], capture_output=True, text=True, timeout=60, check=True)
    (values,) = (r['measures'] for r in json.loads(done.stdout)['results'])
    return values


def near(a, b):
    return abs(a - b) <= 1e-9 * abs(b)


def main():
    random.seed(3)
    series = [math.sin(0.3 * i) + 0.3 * random.random() for i in range(LENGTH)]
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / 'series.csv'
        path.write_text('x\n' + '\n'.join(map(repr, series)) + '\n')
        for window, shortest in ((0, 2), (0, 4), (1, 2), (1, 4), (3, 2)):
            want, have = theirs(series, shortest, window), ours(path, shortest, window)
            for measure in SHARED + (OTHERS if window else ()):
                check(f'window {window}, shortest line {shortest}: {measure} {have[measure]}, rqa.m {want[measure]}', near(have[measure], want[measure]))
            check('T2 is another quantity', not near(have['T2'], want['W']))
            if window == 0:
                check('RR with window 0', near(want['RR'], have['RR'] * LENGTH / (LENGTH + 1)))
                check('DET with window 0', near(want['DET'], have['DET'] + LENGTH / have['points']))
                for measure in OTHERS:
                    check(f'{measure} differs with window 0', not near(have[measure], want[measure]))
    said = (ROOT / 'compute/docs/RECURRENCE.md').read_text()
    check('RECURRENCE.md names both names of T2', '| `T2`, the mean length of white vertical lines | `W` |' in said)
    check('the preset says so', 'its T2 is W here' in (ROOT / 'compute/docs/RQA.md').read_text())
    return 1 if bad else 0


sys.exit(main())
