# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""`outboard run` says that a GPU's device files exist, to programs that only ask, and changes no other
answer.

    device_files.py OUTBOARD PROGRAM
"""
import os
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, check, finish, skip

OUTBOARD, PROGRAM = sys.argv[1:3]
FILES = '/dev/nvidiactl', '/dev/nvidia0', '/dev/nvidia1', '/dev', '/no/such/file'

if any(os.path.exists(file) for file in FILES[:3]):
    skip('this machine has the device files')


def asked(env):
    done = subprocess.run([OUTBOARD, 'run', '--direct', '--', PROGRAM, *FILES], capture_output=True, text=True, timeout=waiting.LONG, env={**ENV, **env})
    return done.stdout


yes, no = '+' * 10, '-' * 10
check('the device files exist', asked({}) == f'''/dev/nvidiactl {yes} device open fails
/dev/nvidia0 {yes} device open fails
/dev/nvidia1 {no} open fails
/dev {yes} folder open works
/no/such/file {no} open fails
''', asked({}))
check('OUTBOARD_DEVICE_FILES=0: the truth', asked({'OUTBOARD_DEVICE_FILES': '0'}).startswith(f'/dev/nvidiactl {no} open fails\n/dev/nvidia0 {no}'),
      asked({'OUTBOARD_DEVICE_FILES': '0'}))
finish()
