# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""What tests with a real server share: the server as a child, who is below it, checks that are counted."""
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

bad = []


def check(what, condition, detail=''):
    print(f'{"ok  " if condition else "FAIL"} {what}{"" if condition else ": " + str(detail)}', flush=True)
    if not condition:
        bad.append(what)


class Server:
    """A server that listens; its log lines in .lines as they come."""

    def __init__(self, server, url, *options, **env):
        self.process = subprocess.Popen([server, '--listen', url, *options], stderr=subprocess.PIPE, text=True, env=dict(os.environ, OUTBOARD_LOG='info', **env))
        self.lines, self.url, ready = [], None, threading.Event()

        def read():
            for line in self.process.stderr:
                self.lines.append(line)
                found = re.search(r'listening on (\S+)', line)
                if found:
                    self.url = found.group(1)
                    ready.set()
        threading.Thread(target=read, daemon=True).start()
        if not ready.wait(20):
            raise SystemExit('the server did not start: ' + ''.join(self.lines))

    def said(self, words):
        return any(words in line for line in list(self.lines))

    def children(self):
        return children(self.process.pid)

    def workers(self):
        """Process ids of the workers whose sessions have started and not ended."""
        found = {}
        for line in list(self.lines):
            started = re.search(r'session (\w+) starts on worker (\d+)', line)
            ended = re.search(r'session (\w+) ended', line)
            if started:
                found[started.group(1)] = int(started.group(2))
            elif ended:
                found.pop(ended.group(1), None)
        return list(found.values())

    def worker(self):
        """The worker of the session that started last; None when none has."""
        end = time.monotonic() + 5
        while time.monotonic() < end:
            for line in reversed(self.lines):
                found = re.search(r'starts on worker (\d+)', line)
                if found:
                    return int(found.group(1))
            time.sleep(0.02)
        return None

    def stop(self, sessions_too=True):
        """SIGTERM, and once more for sessions that are still there. False: it had to be killed."""
        self.process.send_signal(signal.SIGTERM)
        if sessions_too:
            time.sleep(0.1)
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
            return True
        except subprocess.TimeoutExpired:
            self.process.kill()
            return False


class Session:
    """A program (init.c) that has made one call and waits for a line before it makes two more."""

    def __init__(self, outboard, program, url, **env):
        self.program = subprocess.Popen([outboard, 'run', '--server', url, '--', program, 'wait'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=dict(os.environ, **env))
        self.first = [self.program.stdout.readline().strip() for _ in range(2)]
        time.sleep(0.2)  # the server's log names the worker a moment later

    def go_on(self):
        """Results of the two calls, what was said, and seconds."""
        began = time.monotonic()
        out, err = self.program.communicate('\n', timeout=60)
        return out.split(), err, time.monotonic() - began


def children(pid):
    found = []
    for status in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = status.read_text().rsplit(')', 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != 'Z':
            found.append(int(status.parent.name))
    return found


def gone_within(pids, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(pathlib.Path(f'/proc/{p}/exe').exists() for p in pids):
            return True
        time.sleep(0.02)
    return False


def resident(pid):
    """Bytes of memory that are really there."""
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1]) << 10
    return 0
