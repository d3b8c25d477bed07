# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The commands of a pool's user, for tests of them against balancers whose answers the test decides
(tests/lib/fake_pool.py). The test's first argument is the path of `outboard`."""
import contextlib
import os
import pty
import subprocess
import sys
import tempfile
import threading

import fake_pool
import waiting
from outboard_test import ENV

OUTBOARD = sys.argv[1]
HOME = tempfile.TemporaryDirectory(prefix='outboard-pool-')
SHOW = ['env']  # the program that shows what it was given
GPU = 'tcp://127.0.0.1:1'  # a server's address; nobody connects to it


def tool(*arguments, env=None, stdin=None, timeout=waiting.LONG):
    return subprocess.run([OUTBOARD, *arguments], capture_output=True, text=True, timeout=timeout, input=stdin,
                          env={**ENV, 'XDG_CONFIG_HOME': HOME.name + '/none', 'OUTBOARD_COMPILERS': '0', **(env or {})})


def run(pool, *arguments, env=None, command=None):
    return tool('run', '--pool', pool, *arguments, '--', *(command or SHOW), env=env)


def variables(text):
    return dict(line.split('=', 1) for line in text.splitlines() if '=' in line)


def grant(link, message):
    if message['type'] == fake_pool.ASK:
        link.granted(message, [('gpu1', GPU, '')])
    elif message['type'] == fake_pool.CANCEL:
        link.done()


def refuse(code, text, retry=0):
    def answer(link, message):
        link.refused(code, text, retry)
    return answer


def on_terminal(*arguments, env=None, prompt='', keys=b''):
    """Runs the command on a terminal; types the keys after the prompt. Returns what it wrote and its
    exit status."""
    near, far = pty.openpty()
    program = subprocess.Popen([OUTBOARD, *arguments], stdin=far, stdout=far, stderr=far, start_new_session=True,
                               env={**ENV, 'TERM': 'xterm', 'XDG_CONFIG_HOME': HOME.name + '/none', 'OUTBOARD_COMPILERS': '0', **(env or {})})
    os.close(far)
    hangs = threading.Timer(waiting.LONG, program.kill)
    hangs.start()
    data = b''
    with contextlib.suppress(OSError):
        while part := os.read(near, 65536):
            data += part
            if keys and prompt.encode() in data:
                os.write(near, keys)
                keys = b''
    hangs.cancel()
    os.close(near)
    return data.decode(), program.wait(waiting.LONG)
