#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Synthetic gaze recordings: three groups of CSV files with columns x and y in 0..1, with fixations, saccades and tremor. No person was recorded.

    make_data.py FOLDER [--files N] [--seed N] [--samples N]

N files in each group (default 3); a file has 46 to 3,260 samples, mostly 100 to 200, unless --samples is given.
"""
import argparse
import math
import pathlib
import random


def recording(rng: random.Random, samples: int, restless: float):
    """Yields samples (x, y): fixations at a few random places, which are visited repeatedly."""
    places = [(rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9)) for _ in range(rng.randint(3, 7))]
    at, left = rng.choice(places), 0
    x, y = at
    for _ in range(samples):
        if left <= 0:
            at, left = rng.choice(places), rng.gammavariate(4, 5 / restless)
        left -= 1
        x += 0.6 * (at[0] - x) + rng.gauss(0, 0.008 * restless)
        y += 0.6 * (at[1] - y) + rng.gauss(0, 0.008 * restless)
        yield min(max(x, 0), 1), min(max(y, 0), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--files', type=int, default=3)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--samples', type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    for group, restless in (('control', 1.0), ('mci', 1.4), ('ad', 1.9)):
        folder = args.folder / group
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(args.files):
            samples = args.samples or min(max(int(rng.lognormvariate(math.log(150), 0.6)), 46), 3260)
            rows = [f'{x:.6f},{y:.6f}\n' for x, y in recording(rng, samples, restless)]
            (folder / f's{number // 5 + 1:02d}q{number % 5 + 1}.csv').write_text('x,y\n' + ''.join(rows))


main()
