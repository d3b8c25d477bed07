# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""hadolint accepts the container files. `tools/dev/fresh 12 root client-image server-image` executes
their steps.

    containers.py ROOT
"""
import pathlib
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import checkers
from outboard_test import check, finish, skip

program, why = checkers.installed('hadolint')
if not program:
    skip(why)
paths = sorted(pathlib.Path(sys.argv[1], 'deploy/container').glob('*.Containerfile'))
check('there are container files', len(paths) == 2, paths)
for path in paths:
    done = subprocess.run([program, '--no-color', path], capture_output=True, text=True, timeout=60, check=False)
    check(f'hadolint accepts {path.name}', done.returncode == 0, done.stdout + done.stderr)
finish()
