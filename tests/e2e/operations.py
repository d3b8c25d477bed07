# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Interfaces for operators: /metrics, configuration files, the service manager's socket.

    operations.py OUTBOARD SERVER LIMITS_PROGRAM
"""
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, check, finish, run

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
PREFACE_LOAD = bytes.fromhex('4f425244' '0200' '10' '00') + bytes(8)


def metrics_url(server):
    return server.line(r'metrics at (\S+)').group(1)


def fetch(url):
    with urllib.request.urlopen(url, timeout=waiting.LONG) as answer:
        return answer.read().decode(), answer.headers['Content-Type']


def value(text, name):
    return float(re.search(rf'^{re.escape(name)} (\S+)$', text, re.M).group(1))


def well_formed(text):
    """Returns the first line that is neither a comment nor `name{labels} number` after the TYPE of
    that name, or None."""
    typed = set()
    for line in text.splitlines():
        if line.startswith('# HELP '):
            continue
        if line.startswith('# TYPE '):
            typed.add(line.split()[2])
            continue
        found = re.fullmatch(r'([a-z_]+)(\{(?:[A-Za-z]+="(?:[^"\\]|\\.)*",?)*\})? -?[0-9.e+-]+', line)
        if not found or found.group(1) not in typed:
            return line
    return None


def slow_readers(s, url):
    """More metrics connections than the server keeps, and continually new ones: each correct
    request must still be answered in time, and so must `outboard top`."""
    host, port = re.search(r'//([^:]+):(\d+)', url).groups()
    held = []
    took = {'metrics': 0, 'top': 0}
    for wave in range(4):
        for i in range(150):
            c = socket.create_connection((host, int(port)))
            # Half a request, nothing, or a complete request whose answer is not read.
            c.send((b'GET /met', b'', b'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')[i % 3] or b'G')
            held.append(c)
            c = socket.create_connection(s.url.removeprefix('tcp://').split(':'))
            c.send((b'', PREFACE_LOAD, PREFACE_LOAD[:9])[i % 3])
            held.append(c)
        began = time.monotonic()
        text, _ = fetch(url)
        took['metrics'] = max(took['metrics'], time.monotonic() - began)
        began = time.monotonic()
        done = subprocess.run([OUTBOARD, 'top', '--once', '--server', s.url], capture_output=True, text=True, timeout=20, env=ENV)
        took['top'] = max(took['top'], time.monotonic() - began)
        check(f'wave {wave} of slow readers: metrics and top are answered', 'outboard_sessions 0' in text and done.returncode == 0, text + done.stderr)
    print('    at most', {what: f'{seconds * 1000:.0f} ms' for what, seconds in took.items()})
    # A connection that must wait for a time-out waits 5 s.
    check('none of them waits for a time-out', max(took.values()) < 4, took)
    out, done = run(OUTBOARD, s.url, PROGRAM, 'info')
    check('slow readers hold up no session', out.startswith('total'), out + done.stderr)
    for c in held:
        c.close()


def metrics():
    with Server(SERVER, '--driver', 'soft', '--measure', 'yes', '--metrics', 'tcp://127.0.0.1:0', '--max-sessions', '4') as s:
        url = metrics_url(s)
        text, kind = fetch(url)
        check('text format', kind.startswith('text/plain; version=0.0.4') and well_formed(text) is None, well_formed(text))
        check('nothing has happened', value(text, 'outboard_sessions') == 0 and value(text, 'outboard_calls_total') == 0)
        worker = subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--', PROGRAM, 'spin', '4'], stdout=subprocess.PIPE, text=True, env=ENV)
        waiting.until(lambda: worker.poll() is not None or value(fetch(url)[0], 'outboard_session_memory_used_bytes') > 0)
        during, _ = fetch(url)
        check('a session shows', value(during, 'outboard_sessions') == 1 and value(during, 'outboard_session_memory_used_bytes') > 0, during)
        worker.communicate(timeout=waiting.LONG)
        waiting.until(lambda: value(fetch(url)[0], 'outboard_sessions') == 0)
        after, _ = fetch(url)
        check('its counts stay when it is gone', value(after, 'outboard_sessions') == 0 and value(after, 'outboard_calls_total') > 10 and
              value(after, 'outboard_device_seconds_total') > 0 and value(after, 'outboard_net_bytes_total{dir="in"}') > 100 and
              value(after, 'outboard_calls_total') >= value(during, 'outboard_calls_total'), after)
        for path, code in (('/', 404), ('/metrics/x', 404)):
            try:
                fetch(url.replace('/metrics', path))
                check(f'{path} is not found', False)
            except urllib.error.HTTPError as error:
                check(f'{path} is not found', error.code == code, error)
        host, port = re.search(r'//([^:]+):(\d+)', url).groups()
        slow_readers(s, url)
        text, _ = fetch(url)
        check('and metrics come back', value(text, 'outboard_sessions_started_total') == 2, text)
    done = subprocess.run([SERVER, '--listen', 'tcp://127.0.0.1:0', '--driver', 'null', '--metrics', 'unix:/x'], capture_output=True, text=True, timeout=20, env=ENV)
    check('a wrong address for metrics is refused', done.returncode == 1 and 'cannot serve metrics' in done.stderr, done.stderr)


def config(folder):
    good = folder / 'good.ini'
    good.write_text('; a comment\n[server]\nlisten = tcp://127.0.0.1:0\ndriver = soft\nwarm = 2\n[limits]\nmax-memory = 128MiB\n')
    done = subprocess.run([OUTBOARD, 'config', 'check', good], capture_output=True, text=True, timeout=20, env=ENV)
    check('a good file has no errors', done.returncode == 0 and 'no errors' in done.stdout, done.stdout + done.stderr)
    wrong = folder / 'wrong.ini'
    wrong.write_text('warm = 1\n[server]\nlisten =\nwarmth = 2\nwarm = many\n[tls]\nx = 1\n[limits]\nshare = 3\nnonsense\n')
    done = subprocess.run([OUTBOARD, 'config', 'check', wrong], capture_output=True, text=True, timeout=20, env=ENV)
    for line, words in ((1, 'begin the file with [server]'), (3, 'an address'), (4, "did you mean 'warm'"), (5, 'a number from 0 to 64'), (7, 'no section [tls]'),
                        (9, '0.01 to 1'), (10, "neither 'key = value'")):
        check(f'line {line} is named with its remedy', any(f'{wrong}:{line}:' in text and words in text for text in done.stderr.splitlines()), done.stderr)
    check('and the exit code says so', done.returncode == 2 and '7 errors' in done.stderr, done)
    done = subprocess.run([SERVER, '--config', wrong], capture_output=True, text=True, timeout=20, env=ENV)
    check('the server does not start with it', done.returncode == 2, done)
    done = subprocess.run([OUTBOARD, 'config', 'check', folder / 'none.ini'], capture_output=True, text=True, timeout=20, env=ENV)
    check('a file that is not there', done.returncode == 2 and 'cannot read' in done.stderr, done)
    with Server(SERVER, '--config', str(good), '--max-memory', '64MiB') as s:
        out, _ = run(OUTBOARD, s.url, PROGRAM, 'info')
        check('the command line behind it goes before it', str(64 << 20) in out, out)


def notify(folder):
    path = folder / 'notify'
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(path))
        told.settimeout(waiting.LONG)
        with Server(SERVER, '--driver', 'null', env={'NOTIFY_SOCKET': str(path)}):
            check('the service manager is told that the server is ready', told.recv(100) == b'READY=1')
        check('and that it stops', told.recv(100) == b'STOPPING=1')


metrics()
with tempfile.TemporaryDirectory() as top:
    config(pathlib.Path(top))
    notify(pathlib.Path(top))
finish()
