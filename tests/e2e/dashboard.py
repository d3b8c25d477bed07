# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The HTTP server of a balancer: documents, stream, commands, metrics; tokens and scopes; requests
of other sites; hostile HTTP: slow, huge, many, pipelined, wrong. An invented pool is behind it.

    dashboard.py DASHBOARD_POOL OUTBOARD
"""
import contextlib
import pathlib
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.append(sys.path[0] + '/../lib')
import waiting
from dashboard_pool import Pool, Stream, ask, command, connect, read_answer, request_text
from outboard_test import check, finish, resident  # noqa: E402

PROGRAM, OUTBOARD = sys.argv[1:3]
KINDS = ('info', 'servers', 'gpus', 'sessions', 'queue', 'quota', 'events')


def documents(pool):
    port = pool.port
    for what in ('fleet', *KINDS):
        got = ask(port, '/api/v1/' + what, token='look-token')
        check(f'document {what}', got.status == 200 and got.json()['schema'] == 1 and {'fleet': 'gpus', 'sessions': 'reservations', 'quota': 'tenants'}.get(what, what) in got.json(), got.body[:200])
    got = ask(port, '/api/v1/quota', token='look-token')
    again = ask(port, '/api/v1/quota', token='look-token', If_None_Match=got.headers['etag'])
    check('an unchanged document is not sent again', again.status == 304 and again.body == b'', again.status)
    head = ask(port, '/api/v1/quota', 'HEAD', token='look-token')
    check('HEAD', head.status == 200 and head.headers['content-length'] == str(len(got.body)))
    events = ask(port, '/api/v1/events?since=2', token='look-token').json()['events']
    check('events since a number', events and min(event['number'] for event in events) == 3, events)
    check('a malformed number', ask(port, '/api/v1/events?since=x', token='look-token').status == 400)
    check('an unknown document', 'no such document' in ask(port, '/api/v1/secrets', token='look-token').error())
    check('an unknown path', ask(port, '/../etc/passwd').status == 404)
    page = ask(port, '/')
    check('the page', page.status == 200 and b'<title>Outboard pool' in page.body and page.headers['content-type'].startswith('text/html'))
    check('the page is not sent again', ask(port, '/', If_None_Match=page.headers['etag']).status == 304)
    for path in ('/', '/app.js', '/app.css', '/api/v1/info', '/nothing'):
        headers = ask(port, path).headers
        check(f'security headers of {path}', "script-src 'self'" in headers['content-security-policy'] and 'unsafe' not in headers['content-security-policy']
              and headers['x-frame-options'] == 'DENY' and headers['x-content-type-options'] == 'nosniff' and headers['referrer-policy'] == 'no-referrer', headers)
    check('no inline script or style', not re.search(rb'<script(?![^>]* src=)|<style| on\w+=|style=', page.body))
    check('health', ask(port, '/healthz').body == b'ok\n')


def tokens(pool):
    port = pool.port
    for path in ('/api/v1/fleet', '/api/v1/stream', '/api/v1/history', '/metrics'):
        none, wrong = ask(port, path), ask(port, path, token='no-such-token')
        check(f'{path} wants a token', none.status == 401 and 'wants a token' in none.error() and none.headers['www-authenticate'].startswith('Bearer'), none.body)
        check(f'{path} refuses a wrong one', wrong.status == 401 and 'unknown or was revoked' in wrong.error(), wrong.body)
    check('a token of 10,000 bytes', ask(port, '/api/v1/info', token='a' * 10000).status in (401, 413, 431))
    check('no token in the address', ask(port, '/api/v1/info?token=look-token').status == 401)
    tenants = {session['tenant'] for session in ask(port, '/api/v1/sessions', token='use-token').json()['reservations']}
    check('scope use sees its own sessions', tenants == {'vision'}, tenants)
    check('scope look sees all', len({s['tenant'] for s in ask(port, '/api/v1/sessions', token='look-token').json()['reservations']}) == 3)
    caller = ask(port, '/api/v1/caller', token='use-token').json()
    check('who am I', caller == {'schema': 1, 'tenant': 'vision', 'scope': 'use', 'sees_all': False, 'may_command': False}, caller)


def state_of(port, name):
    return next(s['state'] for s in ask(port, '/api/v1/servers', token='look-token').json()['servers'] if s['name'] == name)


def commands(pool):
    port = pool.port
    for token in 'look-token', 'use-token':
        check(f'{token} may not command', 'not command' in command(port, 'servers/node-1/cordon', token).error())
    check('nor without a token', command(port, 'servers/node-1/cordon', None).status == 401)
    done = command(port, 'servers/node-1/cordon')
    check('cordon', done.status == 200 and done.json()['done'] is True and state_of(port, 'node-1') == 'cordoned', done.body)
    check('uncordon', command(port, 'servers/node-1/uncordon').status == 200 and state_of(port, 'node-1') == 'ready')
    check('drain with a grace', command(port, 'servers/node-1/drain', body='{"grace_s": 60}').status == 200 and state_of(port, 'node-1') == 'draining')
    last = ask(port, '/api/v1/events', token='look-token').json()['events'][-1]
    check('the grace arrives', last['text'].endswith('60'), last)
    command(port, 'servers/node-1/uncordon')
    session = ask(port, '/api/v1/sessions', token='look-token').json()['reservations'][0]['id']
    check('kill', command(port, f'sessions/{session}/kill').status == 200)
    check('it is gone', session not in ask(port, '/api/v1/sessions', token='look-token').body.decode())
    check('no such server', command(port, 'servers/nobody/cordon').status == 400)
    check('no such command', command(port, 'servers/node-1/explode').status == 404)
    check('a strange name', command(port, 'servers/a%0ab/cordon').status == 404)
    check('a body that is no JSON', command(port, 'servers/node-1/drain', body='grace').status == 400)
    check('a body of 4 KiB and one', command(port, 'servers/node-1/drain', body=' ' * 4097).status == 413)
    check('a body of 4 KiB', command(port, 'servers/node-1/drain', body='{"grace_s": 1' + ' ' * 4082 + '}').status == 200)
    command(port, 'servers/node-1/uncordon')


def sessions_of(port):
    return {s['program']: s for s in ask(port, '/api/v1/sessions', token='look-token').json()['reservations']}


def moves(pool):
    port = pool.port
    session = sessions_of(port)['python finetune.py']
    path = f'sessions/{session["id"]}/move'
    check('look-token may not move', command(port, path, 'look-token').status == 403)
    done = command(port, path)
    check('a move is offered, and the answer says where', done.status == 200 and done.json() == {'schema': 1, 'done': True, 'text': 'it is offered a place on node-2'}, done.body)
    check('the document too', sessions_of(port)['python finetune.py']['moving_to'] == 'node-2')
    pool.say('arrive')
    check('it has arrived', waiting.until(lambda: sessions_of(port)['python finetune.py']['moves'] == 1))
    done = command(port, path, body='{"server": "node-0"}')
    check('to a server that is named', done.status == 200 and 'node-0' in done.json()['text'], done.body)
    pool.say('arrive')
    check('no such server', 'no server of this name' in command(port, path, body='{"server": "nowhere"}').error())
    check('a strange server', command(port, path, body='{"server": "a/b"}').status == 400)
    check('a program that may not be moved', '--restartable' in command(port, f'sessions/{sessions_of(port)["lbm3d"]["id"]}/move').error())
    check('a server is not moved', command(port, 'servers/node-1/move').status == 404)


def doubtful(pool):
    """Requests whose end a proxy may see elsewhere: refused, and nothing of them is taken for the next one."""
    inside = request_text('/healthz')
    length = f'Content-Length: {len(inside)}\r\n'.encode()
    for what, headers in {'two lengths': b'Content-Length: 0\r\n' + length, 'a length and chunks': length + b'Transfer-Encoding: chunked\r\n', 'a name with a blank': length.replace(b':', b' :'),
                          'a folded length': length.replace(b': ', b':\r\n '), 'folded chunks': b'Transfer-Encoding:\r\n chunked\r\n', 'other codings': b'Transfer-Encoding: gzip, chunked\r\n',
                          'a bare CR': b'X: a\r' + length, 'two hosts': b'Host: b\r\n'}.items():
        with connect(pool.port) as connection:
            connection.sendall(b'POST /nothing HTTP/1.1\r\nHost: a\r\n' + headers + b'\r\n' + inside)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile('rb') as file:
                got = file.read()
            check(f'{what}: refused, and the connection is closed', got.startswith(b'HTTP/1.1 400 ') and got.count(b'HTTP/1.1 ') == 1 and b'once' in got, got)
    with connect(pool.port) as connection:
        connection.sendall(b'GET /healthz HTTP/1.1\r\n\r\n')
        with connection.makefile('rb') as file:
            check('no host', read_answer(file).status == 400)


def revoked(program):
    """Whoever sends wrong tokens from the same address does not keep a stream open whose token is revoked."""
    with Pool(program) as pool:
        stream, other = Stream(pool.port), Stream(pool.port, 'admin-token')
        pool.say('revoke look-token')
        pool.say('limited 1')

        def ends():
            with contextlib.suppress(EOFError):
                return not stream.next()
            return True
        check('a stream ends when its token is revoked', waiting.until(ends))
        check('others go on', other.next() and other.next())
        for one in stream, other:
            one.close()


def reading(pool, path='/api/v1/gpus', source='127.0.0.1'):
    """A connection from this address whose reader has asked, and reads only what a test makes it read."""
    peer = socket.socket()
    peer.settimeout(waiting.LONG)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.bind((source, 0))
    peer.connect(('127.0.0.1', pool.port))
    peer.sendall(request_text(path, token='look-token'))
    peer.recv(1)
    return peer


def rest_of(peer):
    """How many more bytes come until the connection ends."""
    size = 0
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    with contextlib.suppress(ConnectionResetError):
        while data := peer.recv(1 << 20):
            size += len(data)
    return size


def forget(pool):
    """After a command documents are made anew."""
    check('a command', command(pool.port, 'servers/node-1/uncordon').status == 200)


def held(program):
    """What peers hold and do not read is bounded, and keeps no document from others: here the GPUs alone are more than the limit."""
    with Pool(program, 1000, 16, env={'DOCUMENTS_BYTES': '6000000'}) as pool, contextlib.ExitStack() as stack:
        whole = len(ask(pool.port, '/api/v1/gpus', token='look-token').body)
        for source, path in enumerate(('/metrics', '/api/v1/servers', '/api/v1/gpus', '/api/v1/history'), 2):
            slow = stack.enter_context(reading(pool, source=f'127.0.0.{source}'))
            forget(pool)
            got = ask(pool.port, path, token='look-token')
            check(f'{path} while a peer holds as much as there may be', got.status == 200, got.body[:200])
            check('its reading has ended', rest_of(slow) < whole)
    check('all is freed', pool.code == 0, pool.code)


def held_by_stream(program):
    """The same for what a stream has not read: it ends."""
    with Pool(program, 1000, 16, env={'DOCUMENTS_BYTES': '12000000'}) as pool, reading(pool, '/api/v1/stream', '127.0.0.2') as stream:  # less than two of the documents
        whole = len(ask(pool.port, '/api/v1/gpus', token='look-token').body)
        forget(pool)
        with reading(pool, source='127.0.0.3'):
            check('metrics while a stream holds much', ask(pool.port, '/metrics', token='look-token').status == 200)
            check('it has ended', rest_of(stream) < whole)
    check('all is freed', pool.code == 0, pool.code)


def late_reader(program):
    """A reader that goes on reading, too slowly, is disconnected when its time is over."""
    with Pool(program, 1000, 16, env={'REPLY_S': '1'}) as pool, reading(pool) as slow:
        end = []

        def cut():
            with contextlib.suppress(BlockingIOError):
                for _ in range(4):  # some 300 KB/s: enough not to count as idle
                    end.append(slow.recv(8000, socket.MSG_DONTWAIT))
            return end and not end[-1]
        check('a reader that is slow is disconnected before it has all', waiting.until(cut) and sum(map(len, end)) < 6500000, sum(map(len, end)))


def other_sites(pool):
    port = pool.port
    check('a form of another site', ask(port, '/api/v1/servers/node-1/cordon', 'POST', 'admin-token', '', Content_Type='text/plain').status == 415)
    check('a script of another site', command(port, 'servers/node-1/cordon', Origin='http://evil.example').status == 403)
    check('the page of this one', command(port, 'servers/node-1/uncordon', Origin='http://127.0.0.1').status == 200)
    check('no preflight is answered', ask(port, '/api/v1/servers/node-1/cordon', 'OPTIONS', Origin='http://evil.example').status == 405)
    check('nothing allows other origins', not any(name.startswith('access-control') for name in ask(port, '/api/v1/info', token='look-token').headers))
    with Pool(PROGRAM, env={'OPEN': '1'}) as free:
        check('without tokens, by address', ask(free.port, '/api/v1/info').status == 200)
        check('without tokens, under another name', ask(free.port, '/api/v1/info', Host='evil.example').status == 403)
        check('a header that any page can send proves nothing', ask(free.port, '/api/v1/info', token='anything', Host='evil.example').status == 403)


def streams(pool):
    stream = Stream(pool.port)
    first = [stream.next()[0] for _ in KINDS]
    check('a stream begins with all documents', sorted(first) == sorted(KINDS), first)
    pool.say('silent node-2')
    stream.until('servers', lambda doc: any(s['name'] == 'node-2' and s['state'] == 'silent' for s in doc['servers']))
    event = stream.until('events', lambda doc: True)['events']
    check('events come as they happen, once', [e['kind'] for e in event] == ['silent'], event)
    command(pool.port, 'servers/node-0/cordon')
    stream.until('servers', lambda doc: any(s['name'] == 'node-0' and s['state'] == 'cordoned' for s in doc['servers']))
    check('a command is seen by others', True)
    command(pool.port, 'servers/node-0/uncordon')
    pool.say('beats node-2')
    stream.close()
    own = Stream(pool.port, 'use-token')
    check('a stream of scope use', {s['tenant'] for s in own.until('sessions', lambda doc: True)['reservations']} <= {'vision'})
    own.close()
    many = []

    def open_all():  # those that were just closed are counted until the server notices
        stream = Stream(pool.port)
        if stream.status == 200:
            many.append(stream)
        return len(many) == 64
    check('64 streams', waiting.until(open_all), len(many))
    full = ask(pool.port, '/api/v1/stream', token='look-token')
    check('and no more', full.status == 503 and 'close other dashboards' in full.body.decode(), full.status)
    for one in many:
        one.close()

    again = opened(pool.port)
    check('there is room again when they are gone', again)
    again.close()


def opened(port, **headers):
    """A stream. Those that were just closed are counted until the server notices."""
    def free():
        stream = Stream(port, **headers)
        return stream.status == 200 and stream
    return waiting.until(free)


def told_until(stream, last):
    """The events of a stream to the one of this number. Its first document may be a second old."""
    events = []
    while not events or events[-1]['number'] < last:
        events += stream.until('events', lambda doc: True)['events']
    return events


def resumed(pool):
    """A stream goes on after the event that its reader has seen last, and misses none."""
    port = pool.port
    first = opened(port)
    first.until('events', lambda doc: True)
    seen = first.id
    first.close()
    start, _, number = seen.partition('-')
    number = int(number)
    check('events have an id', number == max(e['number'] for e in ask(port, '/api/v1/events', token='look-token').json()['events']), seen)
    pool.say('silent node-2')
    waiting.until(lambda: state_of(port, 'node-2') == 'silent')
    pool.say('beats node-2')
    again = opened(port, Last_Event_ID=seen)
    missed = again.until('events', lambda doc: True)['events']
    check('a stream that is opened again begins behind that event', [(e['kind'], e['number']) for e in missed] == [('silent', number + 1)] and again.id == f'{start}-{number + 1}', missed)
    again.close()
    for what, foreign in {'of another start': f'{"0" * 16}-{number}', 'that is larger': f'{start}-{number + 2}', 'without a number': f'{start}-', 'with a sign': f'{start}--1', 'no id': 'x' * 3000}.items():
        other = opened(port, Last_Event_ID=foreign)
        every = told_until(other, number + 1)
        check(f'an id {what}: all events', [e['number'] for e in every] == list(range(1, number + 2)), every)
        other.close()


def shared(program):
    """A stream that begins with a document which others have got already misses no event that came since."""
    with Pool(program) as pool:
        for turn in range(4):
            ask(pool.port, '/api/v1/events', token='look-token')
            pool.say('silent node-1')
            waiting.until(lambda: state_of(pool.port, 'node-1') == 'silent')
            stream, numbers, kinds = Stream(pool.port), [], []

            def arrives():
                name, doc = stream.next()
                if name == 'events':
                    numbers.extend(e['number'] for e in doc['events'])
                    kinds.extend(e['kind'] for e in doc['events'])
                return kinds.count('silent') > turn
            check('no event is lost to a document that readers share', waiting.until(arrives) and numbers == list(range(numbers[0], numbers[-1] + 1)), numbers)
            stream.close()
            pool.say('beats node-1')
            waiting.until(lambda: state_of(pool.port, 'node-1') == 'ready')


def addresses_limited(program):
    """What one address may have open; here the limits hold for this machine too."""
    with Pool(program, env={'LIMITS': '1'}) as pool:
        streams = [Stream(pool.port) for _ in range(16)]
        check('16 streams of an address', all(s.status == 200 for s in streams), [s.status for s in streams])
        more = ask(pool.port, '/api/v1/stream', token='look-token')
        check('and no more', more.status == 503 and 'from this address' in more.error(), more.body)
        held = [connect(pool.port) for _ in range(96)]
        for one in held:
            one.sendall(request_text('/healthz'))
            with one.makefile('rb') as file:
                check('a connection of many', read_answer(file).status == 200)
        check('other requests are answered', served(pool.port))
        check('the oldest connection made room', waiting.until(lambda: ended(held[0])))
        check('streams are no part of these', streams[0].next() and served(pool.port))
        for one in held + streams:
            one.close()
        with contextlib.ExitStack() as stack:
            crowd = [stack.enter_context(connect(pool.port)) for _ in range(400)]  # in much less than the 4 s that they may take
            check('connections that come too fast are refused', waiting.until(lambda: newer_ended(crowd)))
        check('but not for long', waiting.until(lambda: served(pool.port)))
    check('all is freed', pool.code == 0, pool.code)


def ended(connection):
    return bool(select.select([connection], [], [], 0)[0]) and connection.recv(1, socket.MSG_PEEK) == b''


def newer_ended(connections):
    """Whether one has ended while an older one goes on: what makes room, or is idle, ends the older one first."""
    states = [ended(one) for one in reversed(connections)]
    return True in states and False in states[states.index(True):]


def history(pool):
    uuid = ask(pool.port, '/api/v1/gpus', token='look-token').json()['gpus'][0]['uuid']

    def points():
        doc = ask(pool.port, f'/api/v1/history?gpu={uuid}', token='look-token').json()
        return len(doc['gpus'].get(uuid, {}).get('utilization', [])) >= 2 and doc
    doc = waiting.until(points)
    check('history of a GPU', doc and all(0 <= v <= 1 for v in doc['gpus'][uuid]['memory']), doc)
    check('history of the pool', len(ask(pool.port, '/api/v1/history', token='look-token').json()['pool']['power']) >= 2)
    check('65 GPUs are too many', ask(pool.port, '/api/v1/history?gpu=' + ','.join([uuid] * 65), token='look-token').status == 400)


def metrics(pool):
    check('metrics are not for a tenant', ask(pool.port, '/metrics', token='use-token').status == 403)
    text = ask(pool.port, '/metrics', token='look-token')
    check('the type of the metrics', text.headers['content-type'].startswith('text/plain; version=0.0.4'), text.headers)
    body = text.body.decode()
    for line in ('outboard_pool_servers{state="ready"} 3', 'outboard_pool_placement_total{result="granted",reason="none"} 1204',
                 'outboard_pool_queue_length{tenant="a\\"b"} 0', 'outboard_pool_placement_duration_seconds_count 100'):
        check(f'metrics: {line}', line + '\n' in body)


def hostile(pool):
    port = pool.port
    before = len(list(pathlib.Path(f'/proc/{pool.process.pid}/fd').iterdir()))
    for method in ('PUT', 'DELETE', 'PATCH', 'TRACE', 'CONNECT', 'BREW'):
        check(f'method {method}', ask(port, '/api/v1/info', method, 'admin-token').status == 405)
    check('POST to a document', ask(port, '/api/v1/info', 'POST', 'admin-token', '{}', Content_Type='application/json').status == 404)
    with connect(port) as pipelined:
        pipelined.sendall(request_text('/healthz') * 50 + request_text('/api/v1/info', token='look-token', Connection='close'))
        with pipelined.makefile('rb') as file:
            got = [read_answer(file).status for _ in range(51)]
    check('51 pipelined requests', got == [200] * 51, got)
    for what, data in {'garbage': b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' * 100, 'no version': b'GET\r\n\r\n', 'a header of 100 KB': b'GET / HTTP/1.1\r\nX: ' + b'a' * 100000 + b'\r\n\r\n',
                       'many headers': b'GET / HTTP/1.1\r\n' + b'X: a\r\n' * 20000 + b'\r\n', 'a path of 100 KB': b'GET /' + b'a' * 100000 + b' HTTP/1.1\r\n\r\n',
                       'a negative length': b'POST /api/v1/servers/a/cordon HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n',
                       'a huge length': b'POST /api/v1/servers/a/cordon HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n',
                       'endless chunks': b'POST /api/v1/servers/a/cordon HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n' + b'ffff\r\n' + b'a' * 65535 + b'\r\n',
                       'a NUL': b'GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n'}.items():
        with connect(port) as connection, contextlib.suppress(OSError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            reply = connection.recv(4096)
            check(f'{what}: an error or the end', not reply or reply.split()[1][:1] in (b'4', b'5', b'2'), reply[:80])
        check(f'{what}: the server goes on', ask(port, '/healthz').status == 200)
    slow = [connect(port) for _ in range(600)]
    with contextlib.suppress(OSError):
        for one in slow:
            one.sendall(b'GET / HTTP/1.1\r\nHost:')
    check('600 connections with half a request: others are served', waiting.until(lambda: served(port)))
    for one in slow:
        one.close()
    check('descriptors are closed', waiting.until(lambda: len(list(pathlib.Path(f'/proc/{pool.process.pid}/fd').iterdir())) <= before + 2))


def served(port):
    with contextlib.suppress(OSError, EOFError):
        return ask(port, '/healthz').status == 200
    return False


def unread(program):
    """A stream whose reader does not read is disconnected, and holds a bounded amount of memory."""
    with Pool(program, 400, 8) as pool:
        good, stuck = Stream(pool.port), connect(pool.port, timeout=60)
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.sendall(request_text('/api/v1/stream', token='look-token'))
        memory = []

        def cut():
            good.next()
            memory.append(resident(pool.process.pid))
            with contextlib.suppress(OSError):
                return not sockets(pool.process.pid, stuck.getsockname()[1])
            return True
        check('a reader that does not read is disconnected', waiting.until(cut))
        check('its memory is bounded', max(memory) < 256 << 20, max(memory))
        good.close()
        stuck.close()


def sockets(pid, port):
    """Whether the process still has its end of a connection from this local port."""
    lines = pathlib.Path(f'/proc/{pid}/net/tcp').read_text().splitlines()[1:]
    return any(line.split()[2].endswith(f':{port:04X}') and line.split()[3] == '01' for line in lines)


def late_command(program):
    with Pool(program) as pool:
        pool.say('hold 1')
        got = command(pool.port, 'servers/node-1/cordon')
        check('a command that does not end', got.status == 504 and 'may still take effect' in got.body.decode(), got.body)
        with connect(pool.port) as gone:
            gone.sendall(request_text('/api/v1/servers/node-1/cordon', 'POST', 'admin-token', '', Content_Type='application/json'))
        check('and one whose caller is gone', served(pool.port))
    check('all is freed', pool.code == 0, pool.code)


def addresses(program, folder):
    path = f'{folder}/http'
    with Pool(program, url=f'unix:{path}') as pool:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(request_text('/healthz', Connection='close'))
            with connection.makefile('rb') as file:
                check('a unix socket', read_answer(file).status == 200)
    with Pool(program, url='tcp://0.0.0.0:0', env={'SECURE': '1'}) as pool:
        check('other machines, without TLS: refused', pool.url is None and 'has no TLS' in pool.first, pool.first)
    with Pool(program, url=f'shm:{folder}/shm') as pool:
        check('shared memory: a clear error', pool.url is None and 'tcp://, tls:// and unix: only' in pool.first, pool.first)
    cert, key = f'{folder}/cert.pem', f'{folder}/key.pem'
    subprocess.run([OUTBOARD, 'cert', '--cert', cert, '--key', key], capture_output=True, check=True)
    with Pool(program, url='tls://127.0.0.1:0', tls=(cert, key)) as pool:
        check('https', pool.url and pool.url.startswith('https://') and ask(pool.port, '/api/v1/info', token='look-token', tls=True).status == 200, pool.first)
    with Pool(program, url='tls://0.0.0.0:0', tls=(cert, key), env={'SECURE': '1', 'OPEN': '1'}) as pool:
        check('other machines, without tokens: refused', pool.url is None and 'no authentication' in pool.first, pool.first)
    with Pool(program, url='tls://127.0.0.1:0', tls=('/dev/null', '/dev/null')) as pool:
        check('no certificate: a clear error', pool.url is None and 'certificate' in pool.first, pool.first)


def main():
    waits = [threading.Thread(target=test, args=(PROGRAM,)) for test in (late_command, unread, shared, addresses_limited, revoked, held, held_by_stream, late_reader)]  # time-outs
    for one in waits:
        one.start()
    with Pool(PROGRAM) as pool:
        for test in documents, tokens, commands, moves, other_sites, doubtful, streams, resumed, history, metrics, hostile:
            test(pool)
        last = Stream(pool.port)
    check('an orderly end with a stream open', pool.code == 0, pool.code)
    last.close()
    with tempfile.TemporaryDirectory() as folder:
        addresses(PROGRAM, folder)
    with Pool(PROGRAM, 0, 0) as pool:
        check('an empty pool', ask(pool.port, '/api/v1/fleet', token='look-token').json()['gpus'] == [])
        check('metrics of an empty pool', b'outboard_pool_servers{state="ready"} 0' in ask(pool.port, '/metrics', token='look-token').body)
    for one in waits:
        one.join()
    finish()


main()
