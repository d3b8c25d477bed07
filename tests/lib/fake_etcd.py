# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The part of etcd's JSON gateway that the pool's registry uses, with one member and in this process.
A test replaces the answer to a path, or writes into the watch what etcd would not.

    fake = FakeEtcd()
    fake.answers['/v3/kv/range'] = lambda request, sane: b'{"kvs": 7}'
    fake.tell(b'not JSON')
"""
import base64
import contextlib
import itertools
import json
import threading

from listening import Listener, end

SILENT = object()  # no answer, and the connection stays open
CLOSE = object()   # no answer, and the connection is closed


def decoded(text):
    return base64.b64decode(text)


def coded(data):
    return base64.b64encode(data).decode()


class FakeEtcd:
    """.answers: {path: function(request, sane)} that returns the bytes of a body, (status, bytes), SILENT
    or CLOSE; sane: the right answer. .frozen: paths whose requests are not executed, sane is None then.
    .requests: the paths so far."""

    def __init__(self):
        self.lock = threading.RLock()
        self.rows, self.revision, self.leases = {}, 1, {}
        self.answers, self.requests, self.streams = {}, [], []
        self.frozen = set()
        self.created = True  # the watch is confirmed
        self.deaf = False    # the watch is told nothing
        self.muted = False   # nor are those that came by .side_url
        self.side = set()    # the streams of these
        self.ids = itertools.count(1000)
        self.listener = Listener(self.serve)
        self.side_listener = Listener(self.serve_side)
        self.url, self.side_url = ('etcd:http:' + listener.address for listener in (self.listener, self.side_listener))

    def close(self):
        self.listener.close()
        self.side_listener.close()

    # ---- HTTP ----

    def serve_side(self, connection):
        with self.lock:
            self.side.add(connection)
        self.serve(connection)

    def serve(self, connection):
        stream = connection.makefile('rb')
        while line := stream.readline():
            path, size = line.split()[1].decode(), 0
            while (header := stream.readline().strip()):
                name, _, value = header.partition(b':')
                if name.lower() == b'content-length':
                    size = int(value)
            request = json.loads(stream.read(size))
            with self.lock:
                self.requests.append(path)
            if path == '/v3/watch':
                self.watch(connection, request['create_request'])
                return
            self.answer(connection, path, request)

    def answer(self, connection, path, request):
        with self.lock:
            sane = None if path in self.frozen else self.sane(path, request)
            change = self.answers.get(path)
        body = change(request, sane) if change else json.dumps(sane).encode()
        status, body = body if isinstance(body, tuple) else (200, body)
        if body is SILENT:
            connection.recv(1)
        if body is SILENT or body is CLOSE:
            end(connection)
            raise EOFError
        connection.sendall(b'HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % (status, len(body)) + body)

    # ---- the calls ----

    def header(self):
        return {'revision': str(self.revision)}

    def kv(self, key):
        row = self.rows[key]
        return {'key': coded(key), 'value': coded(row[0]), 'mod_revision': str(row[1]), **({'lease': str(row[2])} if row[2] else {})}

    def read(self, request):
        first, end = decoded(request['key']), decoded(request.get('range_end', ''))
        keys = sorted(key for key in self.rows if (first <= key < end if end else key == first))
        limit = int(request.get('limit', '0')) or len(keys)
        return {'header': self.header(), **({'kvs': [self.kv(key) for key in keys[:limit]], 'count': str(len(keys))} if keys else {}), **({'more': True} if len(keys) > limit else {})}

    def sane(self, path, request):
        if path == '/v3/kv/range':
            return self.read(request)
        if path == '/v3/kv/txn':
            return self.txn(request)
        if path == '/v3/lease/grant':
            number = next(self.ids)
            self.leases[number] = int(request['TTL'])
            return {'header': self.header(), 'ID': str(number), 'TTL': request['TTL']}
        if path == '/v3/lease/keepalive':
            ttl = self.leases.get(int(request['ID']))
            return {'result': {'header': self.header(), 'ID': request['ID'], **({'TTL': str(ttl)} if ttl else {})}}
        if path == '/v3/lease/revoke':
            self.revoke(int(request['ID']))
            return {'header': self.header()}
        return {'error': 'Not Found', 'code': 5}

    def txn(self, request):
        for compare in request.get('compare', []):
            row = self.rows.get(decoded(compare['key']))
            if (row[1] if row else 0) != int(compare['mod_revision']):
                return {'header': self.header(), 'responses': [{'response_range': self.read(one['request_range'])} for one in request.get('failure', [])]}
        events = []
        for one in request.get('success', []):
            put, delete = one.get('request_put'), one.get('request_delete_range')
            if put:
                self.rows[decoded(put['key'])] = (decoded(put.get('value', '')), self.revision + 1, int(put.get('lease', 0)))
                events.append({'kv': self.kv(decoded(put['key']))})
            elif self.rows.pop(decoded(delete['key']), None):
                events.append({'type': 'DELETE', 'kv': {'key': delete['key'], 'mod_revision': str(self.revision + 1)}})
        if events:
            self.revision += 1
            self.changed(events)
        return {'header': self.header(), 'succeeded': True}

    def put(self, key, value):
        with self.lock:
            self.txn({'success': [{'request_put': {'key': coded(key), 'value': coded(value)}}]})

    def revoke(self, number):
        self.leases.pop(number, None)
        keys = [key for key, row in self.rows.items() if row[2] == number]
        self.txn({'success': [{'request_delete_range': {'key': coded(key)}} for key in keys]})

    # ---- the watch ----

    def watch(self, connection, request):
        start = int(request['start_revision'])
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n')
        with self.lock:
            if self.created:
                self.send(connection, {'result': {'header': self.header(), 'created': True}})
            missed = sorted((row[1], key) for key, row in self.rows.items() if row[1] >= start)
            if missed and not self.is_muted(connection):
                self.send(connection, {'result': {'header': self.header(), 'events': [{'kv': self.kv(key)} for _, key in missed]}})
            self.streams.append(connection)
        with contextlib.suppress(OSError):
            connection.recv(1)  # until the client ends it
        with self.lock, contextlib.suppress(ValueError):
            self.streams.remove(connection)

    def send(self, connection, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b'\n'
        connection.sendall(b'%x\r\n' % len(data) + data + b'\r\n')

    def is_muted(self, connection):
        return self.muted and connection in self.side

    def tell(self, message):
        """Writes bytes, or a message, into every stream. Returns those that took it."""
        with self.lock:
            for connection in list(self.streams):
                if self.is_muted(connection):
                    continue
                try:
                    self.send(connection, message)
                except OSError:
                    self.streams.remove(connection)
            return list(self.streams)

    def replaced(self, streams):
        """Whether the client has ended these and has another one."""
        with self.lock:
            return bool(self.streams) and not set(streams) & set(self.streams)

    def changed(self, events):
        if not self.deaf:
            self.tell({'result': {'header': self.header(), 'events': events}})

    def unmute(self):
        """Those that heard nothing open their watch again, and hear what they have missed."""
        with self.lock:
            self.muted = False
            for connection in self.side & set(self.streams):
                with contextlib.suppress(OSError):
                    connection.sendall(b'0\r\n\r\n')
                    connection.close()
            self.streams = [connection for connection in self.streams if connection not in self.side]

    def end_streams(self):
        with self.lock:
            for connection in self.streams:
                with contextlib.suppress(OSError):
                    connection.sendall(b'0\r\n\r\n')
                    connection.close()
            self.streams = []
