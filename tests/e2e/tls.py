# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Admission over TLS: every wrong certificate, pin, token and peer gets a clear error within its
time-out, and never a session.

    tls.py OUTBOARD SERVER INIT_PROGRAM
"""
import base64
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
import outboard_test
import waiting
from outboard_test import arguments, bad, check, children

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
PREFACE = bytes.fromhex('4f425244' '0200' '01' '00') + bytes(8)
# The client's time-out and the server's hello time-out, in seconds. A case may take this plus a
# margin.
TIMEOUT = 3
MARGIN = waiting.AT_ONCE
SECRETS = ('OUTBOARD_TOKEN', 'OUTBOARD_TLS_CA', 'OUTBOARD_TLS_PIN', 'OUTBOARD_TLS_CERT', 'OUTBOARD_TLS_KEY', 'OUTBOARD_CODEC')
PLAIN = {name: value for name, value in os.environ.items() if name not in SECRETS}


def outboard(*arguments, status=0):
    done = subprocess.run([OUTBOARD, *arguments], capture_output=True, text=True, timeout=30)
    if done.returncode != status:
        raise SystemExit(f'outboard {arguments}: {done.returncode}: {done.stderr}')
    return done.stdout.strip()


class Server(outboard_test.Server):
    """A server with the null driver. In a `with` statement it must have started."""

    def __init__(self, *options):
        super().__init__(SERVER, '--driver', 'null', '--hello-timeout', str(TIMEOUT), *options, listen=None, must_start=False)

    def __enter__(self):
        if not self.url:
            raise SystemExit('the server did not start: ' + ''.join(self.lines))
        return self


def client(url, **environment):
    """Returns whether the program got a session, the messages, and the time taken."""
    begin = time.monotonic()
    done = subprocess.run([OUTBOARD, 'run', '--server', url, '--', PROGRAM], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          env=dict(PLAIN, OUTBOARD_TIMEOUT=str(TIMEOUT), **environment))
    return done.stdout.split()[:1] == ['0'], done.stderr, time.monotonic() - begin


def let_in(what, url, **environment):
    inside, said, _ = client(url, **environment)
    check(what, inside, said)


def let_in_soon(what, url, **environment):
    """Like let_in, but tries again: the server may accept a client only after a session has ended
    or some time has passed."""
    said = []

    def inside():
        entered, text, _ = client(url, **environment)
        said.append(text)
        return entered
    check(what, waiting.until(inside), said[-1:])


def turned_away(what, sentence, url, **environment):
    inside, said, seconds = client(url, **environment)
    check(f'{what} is turned away', not inside, 'it got a session')
    check(f'{what} is told why', sentence in said, said)
    check(f'{what} does not wait longer than its time-out', seconds < TIMEOUT + MARGIN, f'{seconds:.1f} s')


def address(url):
    host, port = url.split('://')[1].rsplit(':', 1)
    return host.strip('[]'), int(port)


def closes(what, url, data, pause=0.0):
    """The server must close the connection of a peer that sends these bytes."""
    begin = time.monotonic()
    with contextlib.closing(socket.create_connection(address(url), timeout=TIMEOUT + MARGIN)) as peer:
        with contextlib.suppress(OSError):
            for at in range(0, len(data), 1 if pause else len(data)):
                peer.sendall(data[at:at + 1] if pause else data)
                if pause:
                    waiting.let_pass(pause, 'slower than the server waits')
        ended = False
        try:
            while peer.recv(65536):
                pass
            ended = True
        except socket.timeout:
            pass
        except OSError:
            ended = True
    check(f'{what}: the connection is ended', ended and time.monotonic() - begin < TIMEOUT + MARGIN + len(data) * pause)


def certificates(where):
    files = {}
    for name, names in (('right', 'localhost,127.0.0.1'), ('wrong', 'localhost,127.0.0.1'), ('elsewhere', 'gpu.example.org,192.0.2.1'), ('client', 'alice')):
        cert, key = os.path.join(where, name + '.pem'), os.path.join(where, name + '.key')
        files[name] = (cert, key, outboard('cert', '--cert', cert, '--key', key, '--names', names))
    check('the private key is its owner\'s only', os.stat(files['right'][1]).st_mode & 0o77 == 0)
    check('the pin of a file is the one that was printed', outboard('cert', '--cert', files['right'][0]) == files['right'][2])
    # existing files are not overwritten
    outboard('cert', '--cert', files['right'][0], '--key', files['right'][1], status=1)
    return files


def servers_certificate(files):
    cert, key, pin = files['right']
    with Server('--listen', 'tls://127.0.0.1:0', '--tls-cert', cert, '--tls-key', key) as server:
        let_in('the right authority', server.url, OUTBOARD_TLS_CA=cert)
        let_in('the right pin', server.url, OUTBOARD_TLS_PIN=pin)
        let_in('the right pin, with colons and capitals', server.url, OUTBOARD_TLS_PIN='SHA256:' + ':'.join(re.findall('..', pin.upper())))
        let_in('a host name', server.url.replace('127.0.0.1', 'localhost'), OUTBOARD_TLS_CA=cert)
        turned_away('the wrong authority', 'certificate is not trusted', server.url, OUTBOARD_TLS_CA=files['wrong'][0])
        turned_away('the wrong pin', 'not the one that OUTBOARD_TLS_PIN names', server.url, OUTBOARD_TLS_PIN=files['wrong'][2])
        turned_away('no authority', 'certificate is not trusted', server.url)
        turned_away('a pin that is none', "OUTBOARD_TLS_PIN: '12ab' is not", server.url, OUTBOARD_TLS_PIN='12ab')
        turned_away('an authority that is not there', 'OUTBOARD_TLS_CA', server.url, OUTBOARD_TLS_CA='/nonexistent/ca.pem')
        turned_away('a client without TLS', 'speaks TLS only', server.url.replace('tls:', 'tcp:'))
        closes('garbage', server.url, os.urandom(4000))
        closes('garbage after the preface', server.url, PREFACE + os.urandom(4000))
        closes('a broken handshake', server.url, PREFACE + bytes([22, 3, 1, 2, 0]) + os.urandom(700))
        closes('silence after the preface', server.url, PREFACE)
        closes('one byte at a time', server.url, PREFACE + bytes([22, 3, 1, 2, 0, 1]), pause=0.1)
        let_in('the right authority, after all those', server.url, OUTBOARD_TLS_CA=cert)
    cert, key, pin = files['elsewhere']
    with Server('--listen', 'tls://127.0.0.1:0', '--tls-cert', cert, '--tls-key', key) as server:
        turned_away('a certificate for another host', 'certificate is not trusted', server.url, OUTBOARD_TLS_CA=cert)
        let_in('a pin does not ask for the host', server.url, OUTBOARD_TLS_PIN=pin)
    with Server('--listen', 'tcp://127.0.0.1:0') as server:
        turned_away('TLS to an address without it', 'name it as tcp://', server.url.replace('tcp:', 'tls:'), OUTBOARD_TLS_CA=files['right'][0])
    with contextlib.closing(socket.create_server(('127.0.0.1', 0))) as silent:
        turned_away('TLS to a port that says nothing', 'did not answer', f'tls://127.0.0.1:{silent.getsockname()[1]}', OUTBOARD_TLS_CA=files['right'][0])


def shift_expiry(path, seconds):
    with open(path, encoding='utf-8') as file:
        fields = file.read().split(' ')
    fields[3] = str(int(time.time()) + seconds)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(' '.join(fields))


def tokens(files, where):
    cert, key, _ = files['right']
    file, log = os.path.join(where, 'tokens'), os.path.join(where, 'audit')
    right = outboard('token', 'create', '--file', file, '--name', 'alice "the" first')
    check('the token file is its owner\'s only', os.stat(file).st_mode & 0o77 == 0)
    with open(file, encoding='utf-8') as text:
        check('the token itself is not in the file', right.split('_')[2] not in text.read())
    with Server('--listen', 'tls://127.0.0.1:0', '--tls-cert', cert, '--tls-key', key, '--tokens', file, '--audit', log) as server:
        trust = {'OUTBOARD_TLS_CA': cert}
        let_in('the right token', server.url, OUTBOARD_TOKEN=right, **trust)
        turned_away('no token', 'wants a token', server.url, **trust)
        turned_away('a token that is none', 'not one of Outboard', server.url, OUTBOARD_TOKEN='letmein', **trust)
        turned_away('a forged token', 'unknown here', server.url, OUTBOARD_TOKEN=right[:-1] + ('0' if right[-1] != '0' else '1'), **trust)
        shift_expiry(file, -1)
        turned_away('an expired token', 'has expired', server.url, OUTBOARD_TOKEN=right, **trust)
        shift_expiry(file, 100)
        let_in('a token with some time left', server.url, OUTBOARD_TOKEN=right, **trust)
        looking = outboard('token', 'create', '--file', file, '--scope', 'look', '--days', '0')
        listed = outboard('token', 'list', '--file', file)
        check('both are listed', right.split('_')[1] in listed and 'look' in listed and 'never' in listed and 'alice' in listed, listed)
        inside, said, _ = client(server.url, OUTBOARD_TOKEN=looking, **trust)
        check('a token of scope look runs nothing', "scope is not 'use'" in said, said)
        outboard('token', 'revoke', '--file', file, right.split('_')[1])
        turned_away('a revoked token', 'was revoked', server.url, OUTBOARD_TOKEN=right, **trust)
        outboard('token', 'revoke', '--file', file, '01234567', status=1)
    with open(log, encoding='utf-8') as text:
        content = text.read()
    lines = [json.loads(line) for line in content.splitlines()]
    events = [(line['event'], line['who'].split(' ')[0]) for line in lines]
    check('the audit names who came and went', events.count(('open', 'token')) == 3 and events.count(('close', 'token')) == 3, events)
    check('the audit names those who were turned away', sum(line['count'] for line in lines if line['event'] == 'refused' and line['how'] != 'there is no such session') == 5, lines)
    check('the audit says how sessions ended', [line['how'] for line in lines if line['event'] == 'close'].count('bye') == 2, content)
    check('the audit quotes names', any('alice "the" first' in line['who'] for line in lines), content)
    check('no token is in the audit', right.split('_')[2] not in content)
    check('the audit is its owner\'s only', os.stat(log).st_mode & 0o77 == 0)


def message(**keys):
    """An unencrypted control message: one msgpack map of short texts and small numbers."""
    def pack(value):
        return bytes([0xd9, len(value)]) + value.encode() if isinstance(value, str) else b'\xcf' + struct.pack('>Q', value)
    body = bytes([0x80 | len(keys)]) + b''.join(pack(key) + pack(value) for key, value in keys.items())
    raw = len(body)
    body += bytes(-raw % 8)
    return struct.pack('<IBBHIIQQQII', 0x4452424f, 1, 4, 0, len(body), 0, 0, 0, 0, raw, 0) + body


def guesses(where):
    """Connections opened before the first wrong token get no more attempts than others."""
    file = os.path.join(where, 'tokens-guessed')
    outboard('token', 'create', '--file', file)
    with Server('--listen', 'tcp://127.0.0.1:0', '--tokens', file, '--count-local') as server, contextlib.ExitStack() as stack:
        peers = [stack.enter_context(contextlib.closing(socket.create_connection(address(server.url), timeout=TIMEOUT + MARGIN))) for _ in range(40)]
        for peer in peers:
            peer.sendall(PREFACE)
        answers, began = [], time.monotonic()
        for peer in peers:
            peer.sendall(message(type=1, version='0', program='x', token='obt_01234567_' + '0' * 64))
            answer = b''
            with contextlib.suppress(OSError):
                while data := peer.recv(4096):
                    answer += data
            answers.append(answer)
        wait = sum(b'too many wrong tokens' in answer for answer in answers)
        check('each is answered', wait + sum(b'unknown here' in answer for answer in answers) == len(peers), answers)
        # Five attempts are free; the sixth is followed by a delay of one second, then two, then
        # four.
        guesses_allowed, passed, pause = 6, time.monotonic() - began, 1
        while passed >= pause:
            guesses_allowed, passed, pause = guesses_allowed + 1, passed - pause, 2 * pause
        check('an address guesses six times and then has to wait', wait >= len(peers) - guesses_allowed, f'{len(peers) - wait} guesses, {guesses_allowed} allowed')


def memory_has(pid, needles):
    """Returns whether the memory of a process has one of these byte strings; None: not
    permitted."""
    try:
        with open(f'/proc/{pid}/maps', encoding='ascii') as maps, open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory:
            for line in maps:
                begin, end = (int(x, 16) for x in line.split()[0].split('-'))
                # Skip large mappings: a session's range reserves far more addresses than there is
                # memory.
                if 'rw' not in line.split()[1] or end - begin > 1 << 28 or '[v' in line:
                    continue
                memory.seek(begin)
                with contextlib.suppress(OSError):
                    data = memory.read(end - begin)
                    if any(needle in data for needle in needles):
                        return True
    except PermissionError:
        return None
    return False


def secrets_stay(files, where):
    """The certificate's key is in the memory of one process only, which does not execute clients'
    calls."""
    cert, key, _ = files['right']
    file = os.path.join(where, 'tokens4')
    token = outboard('token', 'create', '--file', file)
    with open(key, encoding='ascii') as text:
        der = base64.b64decode(''.join(line for line in text if not line.startswith('-')))
    at = der.index(b'\x04\x20') + 2 if b'\x04\x20' in der else 0
    scalar = der[at:at + 32]
    needles = (scalar, scalar[::-1], token.split('_')[2].encode())
    with Server('--listen', 'tls://127.0.0.1:0', '--tls-cert', cert, '--tls-key', key, '--tokens', file) as server:
        program = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, 'wait'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=dict(PLAIN, OUTBOARD_TLS_CA=cert, OUTBOARD_TOKEN=token))
        program.stdout.readline()
        looked, kept = {}, []
        for child in children(server.process.pid) + [server.process.pid]:
            args = arguments(child).split(bytes(1))
            role = 'admission' if b'--admission' in args else 'worker' if b'--worker' in args else 'supervisor'
            looked.setdefault(role, []).append(memory_has(child, needles))
            if role == 'admission':
                kept.append(memory_has(child, needles[2:]))
            if role == 'worker':
                check('a worker is not told where the key and the tokens are', not any(x.encode() in args for x in (cert, key, file)), args)
        check('no worker and not the supervisor has the key or the token in its memory', True not in looked['worker'] + looked['supervisor'] and looked['worker'], looked)
        # Checks that the search finds the key at all; needs the right to inspect that process.
        check('admission has the key', looked['admission'] in ([True], [None]), looked)
        check('admission does not keep a token that it has looked at', kept in ([False], [None]), kept)
        program.communicate('\n')


def limits_of_tokens(files, where):
    """A token gets up to its number of sessions. A peer that guesses tokens has to wait; a right
    token is then accepted."""
    cert, key, _ = files['right']
    file = os.path.join(where, 'tokens5')
    one, other = (outboard('token', 'create', '--file', file, *options) for options in (('--sessions', '1'), ()))
    trust = {'OUTBOARD_TLS_CA': cert}
    with Server('--listen', 'tls://127.0.0.1:0', '--tls-cert', cert, '--tls-key', key, '--tokens', file, '--max-sessions', '8') as server:
        holder = subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, 'wait'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env=dict(PLAIN, OUTBOARD_TOKEN=one, **trust))
        holder.stdout.readline()
        turned_away('a token that has its session', 'limit of sessions', server.url, OUTBOARD_TOKEN=one, **trust)
        let_in('another token', server.url, OUTBOARD_TOKEN=other, **trust)
        holder.communicate('\n')
        # The place is free once the worker has ended.
        let_in_soon('a token whose session is over', server.url, OUTBOARD_TOKEN=one, **trust)
    with Server('--listen', 'tls://127.0.0.1:0', '--tls-cert', cert, '--tls-key', key, '--tokens', file, '--count-local') as server:
        for _ in range(5):
            _, said, _ = client(server.url, OUTBOARD_TOKEN=other[:-1] + ('0' if other[-1] != '0' else '1'), **trust)
        check('the first wrong tokens are told so', 'unknown here' in said, said)
        for _ in range(3):  # on a slow machine, one of the first delays may be over; they grow
            _, said, _ = client(server.url, OUTBOARD_TOKEN=other[:-1] + ('0' if other[-1] != '0' else '1'), **trust)
        check('more of them have to wait', 'too many wrong tokens' in said, said)
        let_in_soon('then a right one gets in', server.url, OUTBOARD_TOKEN=other, **trust)


def client_certificates(files, where):
    cert, key, _ = files['right']
    authority, client_key, _ = files['client']
    file = os.path.join(where, 'tokens2')
    token = outboard('token', 'create', '--file', file)
    trust = {'OUTBOARD_TLS_CA': cert}
    with Server('--listen', 'tls://127.0.0.1:0', '--tls-cert', cert, '--tls-key', key, '--tls-client-ca', authority) as server:
        let_in('the right client certificate', server.url, OUTBOARD_TLS_CERT=authority, OUTBOARD_TLS_KEY=client_key, **trust)
        turned_away('no client certificate', 'wants a client certificate', server.url, **trust)
        turned_away('a client certificate of nobody', 'certificate is not accepted', server.url, OUTBOARD_TLS_CERT=files['wrong'][0],
                    OUTBOARD_TLS_KEY=files['wrong'][1], **trust)
        turned_away('a client key that does not belong', 'OUTBOARD_TLS_CERT', server.url, OUTBOARD_TLS_CERT=authority,
                    OUTBOARD_TLS_KEY=files['wrong'][1], **trust)
    with Server('--listen', 'tls://127.0.0.1:0', '--tls-cert', cert, '--tls-key', key, '--tls-client-ca', authority, '--tokens', file) as server:
        let_in('a client certificate where a token would do', server.url, OUTBOARD_TLS_CERT=authority, OUTBOARD_TLS_KEY=client_key, **trust)
        let_in('a token where a client certificate would do', server.url, OUTBOARD_TOKEN=token, **trust)
        turned_away('neither', 'wants a token', server.url, **trust)


def listening(files, where):
    """Options with which a server refuses to start."""
    cert, key, _ = files['right']
    file = os.path.join(where, 'tokens3')
    outboard('token', 'create', '--file', file)
    secure = ('--tls-cert', cert, '--tls-key', key)

    def refuses(what, sentence, *options):
        server = Server(*options)
        said = ''.join(server.lines)
        started = server.url is not None
        if started:
            server.process.kill()
        check(f'a server does not start: {what}', not started and server.process.returncode not in (0, None), said)
        check(f'and says so: {what}', sentence in said, said)

    refuses('clear, reachable', '--insecure', '--listen', 'tcp://0.0.0.0:0')
    refuses('TLS, reachable, anybody', '--tokens', '--listen', 'tls://0.0.0.0:0', *secure)
    refuses('TLS without a certificate', '--tls-cert', '--listen', 'tls://127.0.0.1:0')
    refuses('a certificate without its key', 'belong together', '--listen', 'tls://127.0.0.1:0', '--tls-cert', cert)
    refuses('a key of another certificate', 'certificate', '--listen', 'tls://127.0.0.1:0', '--tls-cert', cert, '--tls-key', files['wrong'][1])
    refuses('tokens that are none', 'line 1', '--listen', 'tls://127.0.0.1:0', *secure, '--tokens', cert)
    refuses('an audit that cannot be written', 'audit', '--listen', 'tcp://127.0.0.1:0', '--audit', '/nonexistent/audit')
    for what, *options in (('clear, told --insecure', '--listen', 'tcp://0.0.0.0:0', '--insecure'),
                           ('TLS, anybody, told --insecure', '--listen', 'tls://0.0.0.0:0', *secure, '--insecure'),
                           ('TLS and tokens', '--listen', 'tls://0.0.0.0:0', *secure, '--tokens', file)):
        with contextlib.suppress(SystemExit), Server(*options) as server:
            check(f'a server starts: {what}', server.url)
            continue
        check(f'a server starts: {what}', False)


def main():
    where = tempfile.mkdtemp(prefix='outboard-tls-')
    try:
        files = certificates(where)
        listening(files, where)
        servers_certificate(files)
        tokens(files, where)
        guesses(where)
        secrets_stay(files, where)
        limits_of_tokens(files, where)
        client_certificates(files, where)
    finally:
        shutil.rmtree(where)
    print(f'{len(bad)} failed')
    return 1 if bad else 0


sys.exit(main())
