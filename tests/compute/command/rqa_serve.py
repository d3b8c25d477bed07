# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests `outboard rqa serve` without a browser: refused requests, a sweep from start to download,
events with a plausible estimate of the time left, and a clean stop.

    rqa_serve.py OUTBOARD [plots]
"""
import csv
import http.client
import json
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.append(sys.path[0] + '/../../lib')
import waiting  # noqa: E402
from outboard_test import bad, check  # noqa: E402

OUTBOARD, PLOTS = sys.argv[1], 'plots' in sys.argv[2:]
HEATS = (('', '4 files, 2 modes, 4 values of tau, 2 values of lmin'), ('&mode=1&lmin=0', '4 files, 4 values of tau'), ('&mode=1&lmin=0&tau=2&file=0', None))
FORM = {'m': '1..6', 'tau': '1..4', 'eps': '0.05..0.10:0.001', 'lmin': '2,3', 'name': 'first'}


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([OUTBOARD, 'rqa', 'serve', *map(str, arguments), '--port', '0'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r':(\d+)/', self.process.stdout.readline()).group(1))

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data, dict(answer.getheaders())

    def post(self, path, form, **headers):
        given = {'X-Requested-With': 'outboard', 'Content-Type': 'application/x-www-form-urlencoded', **{k.replace('_', '-'): v for k, v in headers.items()}}
        return self.ask('POST', path, urllib.parse.urlencode(form) if isinstance(form, dict) else form, given)

    def events(self, until, after=0, timeout=120):
        """(name, data, id) of each event until one has the name `until`."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=timeout)
        connection.request('GET', '/api/events', headers={'Last-Event-ID': str(after)} if after else {})
        answer = connection.getresponse()
        found, name, number = [], None, None
        while True:
            line = answer.readline().decode().rstrip('\n')
            if line.startswith('id: '):
                number = int(line[4:])
            elif line.startswith('event: '):
                name = line[7:]
            elif line.startswith('data: '):
                found.append((name, json.loads(line[6:]), number))
            elif not line and name == until:
                connection.close()
                return found
            elif not line:
                name = None

    def stop(self, number=signal.SIGTERM):
        began = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(waiting.LONG)
        return code, time.monotonic() - began


def refused(server):
    status, data, headers = server.ask('GET', '/')
    check('the page and its policy', status == 200 and b'<h1>' in data and "default-src 'none'" in headers['Content-Security-Policy'])
    check('nothing from elsewhere', not re.search(rb'(src|href)="(https?:)?//', data))
    for path in ('/nothing', '/../etc/passwd', '/download/../../etc/passwd', '/download/%2e%2e%2fetc%2fpasswd', '/download/.sweep.state', '/api/results', '/api/heat.png'):
        check(f'{path} is not there', server.ask('GET', path)[0] == 404)
    check('a foreign name is refused', server.ask('GET', '/', headers={'Host': 'evil.example'})[0] == 403)
    check('localhost is fine', server.ask('GET', '/', headers={'Host': f'localhost:{server.port}'})[0] == 200)
    check('a plain form is refused', server.ask('POST', '/api/start', 'm=1')[0] == 403)
    check('another site is refused', server.post('/api/start', FORM, Origin='http://evil.example')[0] == 403)
    check('PUT', server.ask('PUT', '/api/start', 'x')[0] == 405)
    check('a huge form', server.post('/api/start', 'm=' + '1,' * 20000)[0] == 413)
    for change, field, words in (({'m': '1..x'}, 'm', 'not a number'), ({'m': ''}, 'm', 'empty'), ({'eps': '0..1:1e-9'}, 'eps', 'larger steps'), ({'name': '../up'}, 'name', 'letters'),
                                 ({'name': ''}, 'name', 'letters'), ({'name': '/etc'}, 'name', 'letters'), ({'preset': 'mine'}, '', 'no preset'), ({'norm': 'l9'}, 'norm', 'l1|l2'),
                                 ({'measures': 'FOO'}, '', 'no measure'), ({'write': 'all'}, 'write', 'long, wide'), ({'folder': '/etc'}, 'folder', 'no option'),
                                 ({'m': '1..1000', 'tau': '1..1000', 'eps': '0..1:0.001'}, '', 'larger steps')):
        status, data, _ = server.post('/api/start', {**FORM, **change})
        said = json.loads(data)
        check(f'{change}: {status} {said}', status == 400 and said['field'] == field and words in said['error'])
    check('damaged forms', server.post('/api/start', 'm=%zz')[0] == 400 and server.post('/api/start', 'nonsense')[0] == 400 and server.post('/api/start', b'm=1\0&tau=1')[0] == 400)
    plan = json.loads(server.post('/api/plan', FORM)[1])
    check(f'plan: {plan}', plan == {'combinations': 6 * 4 * 51 * 2, 'files': 5})


def estimate(events):
    """Compares the estimated with the real time left, between 20 % and 90 % of the progress."""
    end = next(e['timestamp'] for n, e, _ in events if n == 'phase' and e['phase'] == 'writing')
    seen = [(e['eta'], end - e['timestamp']) for n, e, _ in events if n == 'progress_update' and 20 < e['progress'] < 90 and e['eta'] is not None]
    if len(seen) < 4:
        return
    ratios = sorted(said / max(was, 0.05) for said, was in seen)
    print(f'time left, said to real: median {ratios[len(ratios) // 2]:.2f} of {len(ratios)}')
    check(f'the estimate: {seen}', 0.4 < ratios[len(ratios) // 2] < 2.5)


def sweep(server, out):
    listener = []
    thread = threading.Thread(target=lambda: listener.extend(server.events('batch_completed')))
    thread.start()
    status, data, _ = server.post('/api/start', FORM)
    check(f'start: {status} {data}', status == 202 and json.loads(data) == {'combinations': 6 * 4 * 51 * 2, 'files': 5})
    status, data, _ = server.post('/api/start', FORM)
    check(f'a second start: {status} {data}', status == 409 or not listener)
    thread.join(120)
    names = [n for n, _, _ in listener]
    check(f'events: {sorted(set(names))}', {'phase', 'reading', 'batch_started', 'progress_update', 'log', 'batch_completed', 'gpu_stats'} <= set(names))
    stats = listener[-1][1]['stats']
    rows = list(csv.DictReader((out / 'first' / 'results.csv').open()))
    check(f'{stats}', stats['total'] == len(rows) == 5 * 2 * 6 * 4 * 102 and stats['failed'] == sum(r['status'] == 'failed' for r in rows) == 2 * 2448)
    check('the log tells the file and the line', any('word.csv, line 3' in e.get('text', '') for _, e, _ in listener))
    phases = [e['phase'] for n, e, _ in listener if n == 'phase']
    check(f'phases: {phases}', phases == ['reading', 'running', 'writing', 'completed'])
    progress = [e['progress'] for n, e, _ in listener if n == 'progress_update']
    check(f'progress only grows: {progress[-5:]}', progress == sorted(progress) and progress[-1] == 100)
    check('progress tells the memory', all(e['memory_resident'] > 1 << 20 for n, e, _ in listener if n == 'progress_update'))
    estimate(listener)
    numbers = [i for n, _, i in listener if n != 'gpu_stats']
    later = server.events('batch_completed', after=numbers[-4])
    check('a page that reconnects gets what it missed', [i for n, _, i in later if n != 'gpu_stats'] == numbers[-3:])
    return rows


def results(server, rows):
    lists = json.loads(server.ask('GET', '/api/lists')[1])
    page = json.loads(server.ask('GET', f'/api/results?mode=1&m=2&eps=50&limit=7&file={lists["files"].index("b.csv")}')[1])
    fits = [r for r in rows if r['mode'] == '1D-x' and r['m'] == '3' and r['eps'] == '0.1' and r['file'] == 'b.csv']
    check(f'a filtered page: {page["total"]} {len(fits)}', page['total'] == len(fits) == 8 and len(page['rows']) == 7)
    same = all(abs(a['values'][1] - float(b['DET'])) < 1e-11 and a['lmin'] == int(b['lmin']) and a['tau'] == int(b['tau']) for a, b in zip(page['rows'], fits))
    check('the page has the numbers of the file', same)
    for query, over in HEATS if PLOTS else ():
        status, data, headers = server.ask('GET', '/api/heat.png?measure=1&x=eps&y=m' + query)
        check(f'heat map {query}: {status}, mean over {headers.get("Outboard-Mean-Over")}', data[:4] == b'\x89PNG' and headers.get('Outboard-Mean-Over') == over)
    for wrong in ('results?m=99', 'results?m=x', 'results?limit=100000', 'heat.png?x=eps&y=eps', 'heat.png?measure=77', 'heat.png?x=foo', 'heat.png?width=99', 'heat.png?width=2001', 'heat.png?width=x'):
        check(wrong, server.ask('GET', '/api/' + wrong)[0] == 400)
    status, data, headers = server.ask('GET', '/download/results.csv')
    check('download', status == 200 and data.count(b'\n') == len(rows) + 1 and 'attachment' in headers['Content-Disposition'])
    check('what was not asked for was not written', server.ask('GET', '/download/summary.csv')[0] == 404)


def main():
    rng = random.Random(3)
    with tempfile.TemporaryDirectory() as name:
        folder, out = pathlib.Path(name) / 'data', pathlib.Path(name) / 'out'
        folder.mkdir()
        for file in ('a', 'b', 'c', 'd'):
            (folder / f'{file}.csv').write_text('x,y\n' + ''.join(f'{rng.random():.6f},{rng.random():.6f}\n' for _ in range(500)))
        (folder / 'word.csv').write_text('x,y\n0.1,0.2\n0.1,word\n')
        server = Server(folder, '--out', out)
        refused(server)
        results(server, sweep(server, out))
        taken = subprocess.run([OUTBOARD, 'rqa', 'serve', folder, '--port', str(server.port)], capture_output=True, text=True, timeout=30)
        check(f'a port in use: {taken}', taken.returncode == 1 and '--port' in taken.stderr)
        # Stop while a sweep runs and a page listens. The next server uses the stored rows.
        listening = socket.create_connection(('127.0.0.1', server.port))
        listening.sendall(b'GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
        server.post('/api/start', {**FORM, 'm': '1..10', 'tau': '1..10', 'name': 'second'})
        waiting.let_pass(0.5, 'the sweep is under way by then, or not yet: it must stop in either case')
        code, seconds = server.stop(signal.SIGINT)
        check(f'a clean stop: exit {code} after {seconds:.1f} s', code == 0 and seconds < waiting.AT_ONCE)
        listening.close()
        server = Server(folder, '--out', out)
        server.post('/api/start', {**FORM, 'm': '1,2', 'name': 'first'})
        stats = server.events('batch_completed')[-1][1]['stats']
        check(f'the next server goes on: {stats}', stats['skipped'] == 4 * 2 * 2 * 4 * 102 and stats['success'] == 0)
        check('stop', server.stop()[0] == 0)
    return 1 if bad else 0


sys.exit(main())
