# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Helpers of the tests that start servers: a server as a context, programs through it, checks that
count."""
import atexit
import os
import re
import subprocess
import sys
import threading

bad = []
ENV = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_') or k.startswith(('OUTBOARD_OPT', 'OUTBOARD_RING', 'OUTBOARD_COVERAGE'))}

ENV['OUTBOARD_TIMEOUT'] = '60'  # long, because a busy machine must not fail a test


def check(what, condition, detail=''):
    print(f'{"ok  " if condition else "FAIL"} {what}{"" if condition else ": " + str(detail)}', flush=True)
    if not condition:
        bad.append(what)


def finish():
    print(f'{len(bad)} wrong')
    sys.exit(1 if bad else 0)


class Server:
    """with Server(program, '--driver', 'soft') as s: ... s.url, s.lines"""

    def __init__(self, program, *options, listen='tcp://127.0.0.1:0', env=None, user=None, group=None):
        self.process = subprocess.Popen([program, '--listen', listen, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        env={**ENV, 'OUTBOARD_LOG': 'info', **(env or {})}, user=user, group=group,
                                        extra_groups=[] if user else None)
        atexit.register(self.process.kill)  # also when the test fails
        self.lines, self.url = [], None
        self.ready = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        if not self.ready.wait(30) or not self.url:
            self.process.kill()
            raise SystemExit('the server did not start: ' + ''.join(self.lines))

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r'listening on (\S+)', line)
            if found:
                self.url = found.group(1)
                self.ready.set()
        self.ready.set()

    def said(self, words):
        return any(words in line for line in self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            bad.append('a server did not stop on SIGTERM')


def run(outboard, server, *command, env=None, timeout=60):
    """Returns stdout and the finished process."""
    done = subprocess.run([outboard, 'run', '--server', server, '--', *command], capture_output=True, text=True, timeout=timeout, env=dict(ENV, **(env or {})))
    return done.stdout, done
