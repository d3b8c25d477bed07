# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""One long series: progress, the accuracy of the estimated time left, and resuming after kill -9. A
million points take minutes to hours, depending on machine and load, so this is a benchmark and not
a test.

    rqa_long.py OUTBOARD [POINTS [MEASURE,MEASURE [whole]]]    whole: without the kill
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
MEASURES = sys.argv[3] if len(sys.argv) > 3 else 'RR,DET,L,Lmax,ENTR'
UNITS = (1, 60, 3600)
SHARES = (10, 25, 50, 75)


def seconds(text):
    return sum(int(p) * u for p, u in zip(reversed(text.split(':')), UNITS))


def resident(pid):
    try:
        return int(re.search(r'VmRSS:\s+(\d+)', pathlib.Path(f'/proc/{pid}/status').read_text()).group(1)) / 1024
    except (OSError, AttributeError): # the process has just ended
        return math.nan


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
        command = [OUTBOARD, 'rqa', 'run', str(at / 'long.csv'), '--preset', 'accrqa', '--m', '3', '--tau', '6', '--eps', '0.2', '--measures', MEASURES,
                   '--json', '--progress', 'always']
        began = time.monotonic()
        lines = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stderr:
                found = re.search(r'([\d.]+) %  ([\d:]+) spent, ([\d:]+) left', line)
                if found:
                    lines.append((float(found.group(1)), time.monotonic() - began, seconds(found.group(3)), resident(process.pid)))
            whole = json.loads(process.stdout.read())
        spent = time.monotonic() - began
        print(f'{POINTS} points: {spent:.1f} s on {whole["results"][0]["device"]}; {whole["results"][0]["measures"]}')
        for share in SHARES:
            line = next((line for line in lines if line[0] >= share), None)
            if line:
                print(f'at {line[0]:5.1f} %: {line[1]:6.1f} s spent, {line[2]} s left foretold, {spent - line[1]:.1f} s seen; {line[3]:.0f} MiB resident')
        ratios = sorted((when + left) / spent for share, when, left, _ in lines if 5 <= share <= 95)
        if ratios:
            print(f'end foretold to end seen: median {ratios[len(ratios) // 2]:.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}, of {len(ratios)}')
        if 'whole' in sys.argv:
            return 0
        state = at / 'state'
        process = subprocess.Popen([*command, '--state', str(state)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not state.exists() and time.monotonic() - began < 2.5 * spent + 60:
            time.sleep(0.05)  # poll
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = state.exists()
        again = json.loads(subprocess.run([*command, '--state', str(state)], capture_output=True, text=True).stdout)
        same = again['results'][0]['measures'] == whole['results'][0]['measures']
        print(f'killed {"after" if kept else "before"} its first state; went on to {"the same" if same else "OTHER"} numbers')
        return 0 if same else 1


sys.exit(main())
