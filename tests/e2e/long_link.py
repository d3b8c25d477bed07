#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Runs a command far away from a server: two network namespaces with a long way between them
(long_link.c), the server in one, the command in the other with OUTBOARD_SERVER set. Needs root
and ip.

    long_link.py BUILD ONE_WAY_US LOSS_PER_MILLION MBIT -- COMMAND...
"""
import contextlib
import os
import signal
import subprocess
import sys

ADDRESS = '10.97.0.2'


def main():
    # namespaces and devices are removed in any case
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    build, way, command = os.path.abspath(sys.argv[1]), sys.argv[2:5], sys.argv[6:]
    near, far = (f'obl{os.getpid() % 100000}{end}' for end in 'ab')
    with contextlib.ExitStack() as stack:
        def start(*words, **options):
            process = subprocess.Popen(words, **options)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process
        for name in (near, far):
            subprocess.run(['ip', 'netns', 'add', name], check=True)
            stack.callback(subprocess.run, ['ip', 'netns', 'del', name])
        link = start(os.path.join(build, 'tests', 'e2e', 'long_link'), near, far, *way, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        link.stdout.readline()
        server = start('ip', 'netns', 'exec', far, os.path.join(build, 'server', 'outboard-server'), '--listen', f'tcp://{ADDRESS}:14800', '--insecure',
                       '--driver', 'null', stderr=subprocess.PIPE, text=True)
        while 'listening on' not in (line := server.stderr.readline()):
            if not line:
                return 1
        return subprocess.run(['ip', 'netns', 'exec', near, *command], env=dict(os.environ, OUTBOARD_SERVER=f'tcp://{ADDRESS}:14800')).returncode


if __name__ == '__main__':
    sys.exit(main() if len(sys.argv) > 6 and sys.argv[5] == '--' else __doc__)
