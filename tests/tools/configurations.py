# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests that the build can be configured without what a machine may lack, and with other options:
the build's own machine has everything.

    configurations.py MESON ROOT
"""
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import check, finish  # noqa: E402

MESON, ROOT = sys.argv[1:]
CONFIGURATIONS = (['-Dtests=enabled', '-Dnvcc=disabled'], ['-Dtests=enabled', '-Dnvcc=disabled', '-Dplots=disabled', '-Dselftest=false', '-Dhot_lto=false'],
                  ['-Dtests=disabled', '-Dnvcc=disabled', '-Dbalancer=disabled'], ['-Dtests=disabled'], ['-Dtests=enabled', '-Dfuzzers=true', '-Db_sanitize=address', '-Dprograms=/nonexistent'])

for options in CONFIGURATIONS:
    with tempfile.TemporaryDirectory(prefix='outboard-configuration-') as place:
        done = subprocess.run([MESON, 'setup', place, ROOT, *options], capture_output=True, text=True, timeout=120)
        check(' '.join(options), done.returncode == 0, '\n'.join((done.stdout + done.stderr).splitlines()[-6:]))
finish()
