# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A user of the pool's registry in a process of its own (tests/e2e/registry_client.c).

    with registry.Client(program, url, prefix='a/') as client:
        client.put('key', 'value')
        client.until('usable')
"""
import itertools
import subprocess
import threading
import time

import waiting
from outboard_test import ENV


class Event:
    """time: seconds of the monotonic clock; words: of the line, without the time."""

    def __init__(self, line):
        when, _, text = line.rstrip('\n').partition(' ')
        self.time, self.text, self.words = int(when) / 1000, text, text.split(' ')
        self.kind = self.words[0]


class Answer:
    def __init__(self, event):
        self.error, self.succeeded, self.revision = event.words[2], event.words[3] == 'succeeded', int(event.words[4])
        self.rest, self.time = ' '.join(event.words[5:]), event.time


class Client:
    """.events: all events so far; .state: the keys with their values, as the watcher tells."""

    def __init__(self, program, url, **options):
        self.process = subprocess.Popen([program, url, *(f'{name}={value}' for name, value in options.items())], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**ENV, 'OUTBOARD_LOG': 'debug'})
        self.events, self.log, self.numbers = [], [], itertools.count()
        self.state, self.usable, self.synced = {}, None, False
        self.threads = [threading.Thread(target=target, daemon=True) for target in (self.read, self.read_log)]
        for thread in self.threads:
            thread.start()

    def read(self):
        for line in self.process.stdout:
            event = Event(line)
            if event.kind == 'reset':
                self.state, self.synced = {}, False
            elif event.kind == 'changed':
                self.state[event.words[1]] = event.words[2]
            elif event.kind == 'deleted':
                self.state.pop(event.words[1], None)
            elif event.kind == 'synced':
                self.synced = True
            elif event.kind in ('usable', 'unusable'):
                self.usable = event.kind == 'usable'
            self.events.append(event)

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    def send(self, *words):
        self.process.stdin.write(' '.join(map(str, words)) + '\n')
        self.process.stdin.flush()

    def until(self, kind, after=0.0, seconds=waiting.LONG):
        """The first event of this kind since the time `after`; None: there is none."""
        return waiting.until(lambda: next((event for event in list(self.events) if event.kind == kind and event.time >= after), None), seconds, 0.005)

    def is_usable(self, usable=True, seconds=waiting.LONG):
        return waiting.until(lambda: self.usable == usable and (self.synced or not usable), seconds, 0.005)

    def start(self, command, *words):
        number = str(next(self.numbers))
        self.send(command, number, *words)
        return number

    def answer(self, number, seconds=waiting.LONG):
        found = waiting.until(lambda: next((event for event in list(self.events) if event.kind == 'done' and event.words[1] == number), None), seconds, 0.002)
        return found and Answer(found)

    def do(self, command, *words):
        return self.answer(self.start(command, *words))

    def put(self, key, value):
        return self.do('put', key, value)

    def leads(self):
        before = len(self.events)
        self.send('leads')
        return waiting.until(lambda: next((event.kind for event in list(self.events)[before:] if event.kind in ('leads', 'follows')), None)) == 'leads'

    def count(self, kind, after=0.0):
        return sum(event.kind == kind and event.time >= after for event in list(self.events))

    def close(self):
        """Closes the registry; returns the exit code."""
        if self.process.poll() is None:
            self.process.stdin.close()
        try:
            code = self.process.wait(waiting.LONG)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        for thread in self.threads:
            thread.join(waiting.LONG)
        return code

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def now():
    return time.monotonic()
