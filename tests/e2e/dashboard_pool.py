# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""An invented pool with the HTTP server of a balancer (dashboard_pool.c), and requests to it."""
import atexit
import json
import os
import re
import socket
import ssl
import subprocess

import waiting


class Pool:
    """with Pool(program, servers, gpus) as pool: pool.port, pool.url, pool.say('silent node-1')"""

    def __init__(self, program, servers=3, gpus=2, look_ms=100, url='tcp://127.0.0.1:0', tls=(), env=None):
        self.process = subprocess.Popen([program, url, str(servers), str(gpus), str(look_ms), *tls], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})
        atexit.register(self.process.kill)
        self.first = self.process.stderr.readline()
        found = re.search(r'listening on (\S+)', self.first)
        self.url = found and found.group(1)
        self.port = int(self.url.rsplit(':', 1)[1].strip('/')) if self.url and self.url.startswith('http') and '+' not in self.url else None

    def say(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.code = self.stop()

    def stop(self):
        """Returns the exit status: 0 if all was closed and freed."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(waiting.LONG)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def error(self):
        return self.json()['error']['text']


def read_answer(file, head=False):
    """Reads one response of a connection that may carry more."""
    line = file.readline()
    if not line:
        raise EOFError('the server closed the connection')
    status, headers = int(line.split()[1]), {}
    while (line := file.readline()) not in (b'\r\n', b''):
        name, _, value = line.decode('latin-1').partition(':')
        headers[name.lower()] = value.strip()
    if head or status in (204, 304):
        body = b''
    elif 'content-length' in headers:
        body = file.read(int(headers['content-length']))
    else:
        body = file.read()
    return Answer(status, headers, body)


def connect(port, tls=False, timeout=waiting.AT_ONCE):
    raw = socket.create_connection(('127.0.0.1', port), timeout=timeout)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(raw)
    return raw


def request_text(path, method='GET', token=None, body=None, **headers):
    lines = [f'{method} {path} HTTP/1.1', 'Host: ' + headers.pop('Host', '127.0.0.1')]
    if token:
        lines.append(f'Authorization: Bearer {token}')
    if body is not None:
        lines.append(f'Content-Length: {len(body)}')
    lines += [f'{name.replace("_", "-")}: {value}' for name, value in headers.items()]
    return ('\r\n'.join(lines) + '\r\n\r\n' + (body or '')).encode()


def ask(port, path, method='GET', token=None, body=None, tls=False, **headers):
    with connect(port, tls) as connection:
        connection.sendall(request_text(path, method, token, body, Connection='close', **headers))
        with connection.makefile('rb') as file:
            return read_answer(file, method == 'HEAD')


def command(port, path, token='admin-token', body='', **headers):
    return ask(port, '/api/v1/' + path, 'POST', token, body, **{'Content_Type': 'application/json', **headers})


class Stream:
    """Server-sent events of /api/v1/stream; next() returns (name, document). `id` is that of the last one."""

    def __init__(self, port, token='look-token', **headers):
        self.id = None
        self.connection = connect(port)
        self.connection.sendall(request_text('/api/v1/stream', token=token, **headers))
        self.file = self.connection.makefile('rb')
        self.status = int(self.file.readline().split()[1])
        while self.file.readline() not in (b'\r\n', b''):
            pass
        self.buffer = b''

    def more(self):
        size = self.file.readline()
        if not size or int(size, 16) == 0:
            raise EOFError('the stream has ended')
        self.buffer += self.file.read(int(size, 16))
        self.file.readline()

    def next(self):
        while True:
            while b'\n\n' not in self.buffer:
                self.more()
            block, self.buffer = self.buffer.split(b'\n\n', 1)
            if block.startswith(b':'):
                return None, None
            name, data = block.split(b'\n', 1)
            if data.startswith(b'id: '):
                number, data = data.split(b'\n', 1)
                self.id = number.removeprefix(b'id: ').decode()
            return name.removeprefix(b'event: ').decode(), json.loads(data.removeprefix(b'data: '))

    def until(self, name, condition):
        """Returns the first document of this name for which the condition holds."""
        while True:
            got, document = self.next()
            if got == name and condition(document):
                return document

    def close(self):
        self.file.close()
        self.connection.close()
