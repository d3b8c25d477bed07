# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""One long series: progress, how good the estimate of the time left is, and going on after kill -9 in the middle. A million points take minutes to hours,
by machine and load, so this is a benchmark and no test.

    rqa_long.py OUTBOARD [POINTS]
"""
import json
import math
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

OUTBOARD = sys.argv[1]
POINTS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000000
UNITS = (1, 60, 3600)


def seconds(text):
    return sum(int(p) * u for p, u in zip(reversed(text.split(':')), UNITS))


def main():
    with tempfile.TemporaryDirectory() as name:
        at = pathlib.Path(name)
        rng = random.Random(1)
        phase = 0.0
        with (at / 'long.csv').open('w') as file:
            file.write('x\n')
            for i in range(POINTS):
                phase += rng.gauss(0.12, 0.03)
                file.write(f'{math.sin(phase) + 0.3 * math.sin(2.7 * phase):.6f}\n')
        command = [OUTBOARD, 'rqa', 'run', str(at / 'long.csv'), '--preset', 'accrqa', '--m', '3', '--tau', '6', '--eps', '0.2', '--measures', 'RR,DET,L,Lmax,ENTR',
                   '--json', '--progress', 'always']
        began = time.monotonic()
        lines = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stderr:
                found = re.search(r'([\d.]+) %  ([\d:]+) spent, ([\d:]+) left', line)
                if found:
                    lines.append((float(found.group(1)), time.monotonic() - began, seconds(found.group(3))))
            whole = json.loads(process.stdout.read())
        spent = time.monotonic() - began
        print(f'{POINTS} points: {spent:.1f} s on {whole["results"][0]["device"]}; {whole["results"][0]["measures"]}')
        ratios = sorted((when + left) / spent for share, when, left in lines if 5 <= share <= 95)
        if ratios:
            print(f'end foretold to end seen: median {ratios[len(ratios) // 2]:.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}, of {len(ratios)}')
        state = at / 'state'
        process = subprocess.Popen([*command, '--state', str(state)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not state.exists() and time.monotonic() - began < 2.5 * spent + 60:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = state.exists()
        again = json.loads(subprocess.run([*command, '--state', str(state)], capture_output=True, text=True).stdout)
        same = again['results'][0]['measures'] == whole['results'][0]['measures']
        print(f'killed {"after" if kept else "before"} its first state; went on to {"the same" if same else "OTHER"} numbers')
        return 0 if same else 1


sys.exit(main())
