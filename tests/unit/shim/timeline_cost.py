# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""What recording a call in a timeline costs, in instructions counted by callgrind, and that it makes
no system call but the clock's. Argument: the test program of the timeline."""
import re
import shutil
import subprocess
import sys
import tempfile

MOST = 100  # instructions for each call, reading the clock included

if not shutil.which('valgrind'):
    print('valgrind is missing')
    sys.exit(77)


def instructions(n):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(['valgrind', '--tool=callgrind', f'--callgrind-out-file={folder}/out', sys.argv[1], 'spin', str(n)], capture_output=True, text=True,
                              timeout=120, check=False)
    if done.returncode:
        print(done.stderr)
        sys.exit(1)
    return int(re.search(r'Collected : (\d+)', done.stderr).group(1))


each = (instructions(30000) - instructions(10000)) / 20000
print(f'{each:.1f} instructions for each recorded call, at most {MOST} allowed')
sys.exit(0 if 0 < each <= MOST else 1)
