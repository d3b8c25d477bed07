# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Runs the commands of examples/rqa/README.md with a smaller grid, and checks that the tables of
options and measures in compute/docs/RQA.md are those of the program.

    rqa_example.py OUTBOARD FOLDER
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

OUTBOARD, EXAMPLE = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()


def main():
    bad = 0
    commands = [line.strip() for line in (EXAMPLE / 'README.md').read_text().splitlines() if re.match(r' {4}(python3|outboard) ', line)]
    with tempfile.TemporaryDirectory() as folder:
        for line in commands:
            words = shlex.split(line, comments=True)
            if words[1:3] == ['rqa', 'serve']:
                continue
            words = [OUTBOARD if w == 'outboard' else str(EXAMPLE / w) if w == 'make_data.py' else w.replace('0.10:0.001', '0.10:0.01') for w in words]
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=100)
            wanted = (0, 1) if 'sweep' in words else (0,)
            if done.returncode not in wanted:
                bad += 1
                print(f'FAIL {line}: exit {done.returncode}, {done.stderr[-300:]}')
        made = sorted(p.name for p in pathlib.Path(folder).iterdir())
    if made != ['data', 'determinism.png', 'recurrence.png', 'results']:
        bad += 1
        print('FAIL made', made)
    manual = (EXAMPLE.parent.parent / 'compute' / 'docs' / 'RQA.md').read_text()
    for verb in ('options', 'measures'):
        for line in subprocess.run([OUTBOARD, 'rqa', verb], capture_output=True, text=True, timeout=20).stdout.splitlines():
            wanted = line if verb == 'options' else f'| `{line.split()[0]}` | {line.split(maxsplit=1)[1]} |'
            if wanted not in manual:
                bad += 1
                print(f'FAIL compute/docs/RQA.md lacks: {wanted}')
    print(f'{len(commands)} commands, {bad} wrong')
    return 1 if bad else 0


sys.exit(main())
