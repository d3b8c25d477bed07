# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The harness of the tests in Python: counted checks, servers, programs that use them, processes.

A script in tests/FOLDER finds this module by

    sys.path.append(sys.path[0] + '/../lib')

and ends with finish() or with sys.exit(1 if bad else 0). Its exit code is 0 if all checks held, 1
if one did not, 77 if something is missing (skip).
"""
import atexit
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import waiting

bad = []  # the failed checks
# The environment of servers and programs, without the settings of the user's shell. The time-out
# is long, because a busy machine must not fail a test.
ENV = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_') or k.startswith(('OUTBOARD_OPT', 'OUTBOARD_RING', 'OUTBOARD_COVERAGE'))}
ENV['OUTBOARD_TIMEOUT'] = '60'
ENV['XDG_CACHE_HOME'] = '/dev/null'  # tests neither use nor change what the user's sessions have measured
ENV['XDG_STATE_HOME'] = '/dev/null'  # nor the registry of the user's own balancer
# nor the pools that the user has logged in to
ENV['XDG_CONFIG_HOME'] = os.environ['XDG_CONFIG_HOME'] = '/dev/null'
if preload := os.environ.get('OUTBOARD_TEST_PRELOAD'):
    ENV['LD_PRELOAD'] = preload  # a program without the sanitizer must load its library first
os.environ.setdefault('OUTBOARD_TIMEOUT', '60')


def needs(options):
    """Keeps the tested optimisations on when the suite runs with all off (OUTBOARD_OPT=-all).
    Call it before a server or a program is started."""
    if '-all' in os.environ.get('OUTBOARD_OPT', ''):
        for env in ENV, os.environ:
            env['OUTBOARD_OPT'] += ',' + options


def check(what, condition, detail=''):
    """Prints and counts a check. A failed one also prints the detail, the observed value."""
    print(f'{"ok  " if condition else "FAIL"} {what}{"" if condition else ": " + str(detail)}', flush=True)
    if not condition:
        bad.append(what)


def finish():
    print(f'{len(bad)} wrong')
    sys.exit(1 if bad else 0)


def skip(why):
    print(f'skipped: {why}')
    sys.exit(77)


class Server:
    """A listening server; .url is its address, .lines are the log lines received so far.

        with Server(program, '--driver', 'soft') as s: ...

    At the end of the block it gets SIGTERM and must stop. must_start=False: a server that does not
    start is no error, and its .url is None.
    """

    def __init__(self, program, *options, listen='tcp://127.0.0.1:0', env=None, user=None, group=None, must_start=True):
        self.process = subprocess.Popen([program, *(('--listen', listen) if listen else ()), *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True, env={**ENV, 'OUTBOARD_LOG': 'info', **(env or {})}, user=user, group=group,
                                        extra_groups=[] if user else None)
        atexit.register(self.process.kill)  # also when the test fails
        self.lines, self.url = [], None
        self.ready = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        self.ready.wait(waiting.LONG)
        if not self.url:
            if must_start:
                self.process.kill()
                raise SystemExit('the server did not start: ' + ''.join(self.lines))
            self.process.wait(waiting.LONG)

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r'listening on (\S+)', line)
            if found:
                self.url = found.group(1)
                self.ready.set()
        self.ready.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(waiting.LONG)
        except subprocess.TimeoutExpired:
            self.process.kill()
            bad.append('a server did not stop on SIGTERM')

    def children(self):
        return children(self.process.pid)

    def workers(self):
        """Returns the process ids of the workers with live sessions."""
        found = {}
        for line in list(self.lines):
            started = re.search(r'session (\w+) starts on worker (\d+)', line)
            ended = re.search(r'session (\w+) ended', line)
            if started:
                found[started.group(1)] = int(started.group(2))
            elif ended:
                found.pop(ended.group(1), None)
        return list(found.values())

    def worker(self, session):
        """Returns the process id of a Session's worker, from the log."""
        def find():
            said = ''.join(list(self.lines))
            route = re.search(rf'session (\w+): .*\(process {session.program.pid},', said)
            return route and re.search(rf'session {route.group(1)} starts on worker (\d+)', said)
        return int(waiting.until(find).group(1))

    def line(self, pattern):
        """Waits for a log line in which `pattern` is found: a client may be answered before the
        server's line has been read. Returns the match, None at the time-out."""
        return waiting.until(lambda: next((found for line in list(self.lines) if (found := re.search(pattern, line))), None), waiting.AT_ONCE)

    def said(self, words):
        return any(words in line for line in list(self.lines))

    def stop(self, sessions_too=True):
        """Sends SIGTERM, and once more to end remaining sessions. False: the server had to be
        killed."""
        self.process.send_signal(signal.SIGTERM)
        if sessions_too:  # after the first was handled: two pending signals are delivered as one
            waiting.until(lambda: self.said('shutting down') or self.process.poll() is not None)
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(waiting.LONG)
            return True
        except subprocess.TimeoutExpired:
            self.process.kill()
            return False


class Session:
    """A program (tests/e2e/init.c) that has made one call and waits for a line on stdin before it
    makes two more. By default its time-outs are much longer than waiting.AT_ONCE, so that an
    immediate answer is distinguishable from a time-out."""

    def __init__(self, outboard, program, url, **env):
        self.program = subprocess.Popen([outboard, 'run', '--server', url, '--', program, 'wait'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, 'OUTBOARD_DEAD': '100', 'OUTBOARD_GRACE': '100', **env})
        self.first = [self.program.stdout.readline().strip() for _ in range(2)]

    def go_on(self):
        """Returns the results of the two calls, the messages, and the seconds taken."""
        began = time.monotonic()
        out, err = self.program.communicate('\n', timeout=2 * waiting.LONG)
        return out.split(), err, time.monotonic() - began


def run(outboard, server, *command, env=None, timeout=60):
    """Returns stdout and the finished process."""
    done = subprocess.run([outboard, 'run', '--server', server, '--', *command], capture_output=True, text=True, timeout=timeout, env=dict(ENV, **(env or {})))
    return done.stdout, done


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


def arguments(pid):
    """The command line of a process, its parts ended by NUL; b'' if the process has ended."""
    try:
        return pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b''


def alive(pid):
    """Whether the process exists and is no zombie. Reads only files that every user may read: a
    worker's /proc/PID/exe belongs to root."""
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[0] not in 'ZX'
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone_within(pids, seconds):
    return waiting.until(lambda: not any(alive(pid) for pid in pids), seconds)


def resident(pid):
    """Resident memory in bytes."""
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1]) << 10
    return 0
