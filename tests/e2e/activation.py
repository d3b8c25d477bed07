# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Listening sockets that a service manager passes to the server (LISTEN_FDS): they are used instead of
the server's own, wrong ones are refused, and they are there after the server.

    activation.py OUTBOARD SERVER INIT
"""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, check, children, finish

OUTBOARD, SERVER, INIT = sys.argv[1:4]
FIRST = 3
HIGH = 200  # above every descriptor of this process


def started(passed, *options, pid='$$', count=None):
    """Starts a server with these descriptors passed, as systemd does."""
    def place():
        for i, fd in enumerate(passed):
            os.dup2(fd, HIGH + i)
        for i in range(len(passed)):
            os.dup2(HIGH + i, FIRST + i)
    script = f'LISTEN_PID={pid} LISTEN_FDS={len(passed) if count is None else count} LISTEN_FDNAMES=x; export LISTEN_PID LISTEN_FDS LISTEN_FDNAMES; exec "$@"'
    return subprocess.Popen(['sh', '-c', script, 'sh', SERVER, '--driver', 'null', *options], pass_fds=range(FIRST, FIRST + len(passed)), preexec_fn=place,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENV)


def listening(server, n):
    """Waits until the server has named its n addresses."""
    lines = []
    for line in server.stderr:
        lines.append(line)
        if len([x for x in lines if 'listening on' in x]) == n:
            break
    return [x.split('listening on ')[1].split()[0] for x in lines if 'listening on' in x] or lines


def stopped(server):
    server.terminate()
    return server.communicate(timeout=waiting.LONG)[1], server.returncode


def refused(what, passed, *options, says, **how):
    server = started(passed, *options, **how)
    _, text = server.communicate(timeout=waiting.LONG)
    check(f'{what}: refused with a reason', server.returncode == 1 and re.search(says, text), (server.returncode, text))


def works(url):
    done = subprocess.run([OUTBOARD, 'run', '--server', url, '--', INIT], capture_output=True, text=True, timeout=60, env=ENV, check=False)
    return done.returncode == 0


def used(path, tcp, local):
    urls = ['tcp://127.0.0.1:%d' % tcp.getsockname()[1], f'unix:{path}']
    options = [word for url in urls for word in ('--listen', url)]
    inode = os.stat(path).st_ino
    # A program that comes before the server waits in the queue of the socket.
    early = subprocess.Popen([OUTBOARD, 'run', '--server', urls[1], '--', INIT], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENV)
    for turn in 'first', 'second':
        server = started([local.fileno(), tcp.fileno()], *options)
        told = listening(server, 2)
        check(f'the {turn} server listens on what was passed', told == urls, told)
        check('a program that was there before the server', early.wait(waiting.LONG) == 0, early.returncode)
        check(f'a program through each, {turn} server', all(works(url) for url in urls))
        kept = [pid for pid in children(server.pid) if b'LISTEN_' in pathlib.Path(f'/proc/{pid}/environ').read_bytes()]
        check(f'no child of the {turn} server has the variables', children(server.pid) and not kept, kept)
        text, code = stopped(server)
        check(f'the {turn} server ends', code == 0, (code, text))
        check('the socket is still there', os.stat(path).st_ino == inode)


def wrong(path, tcp, local, top):
    own = ('--listen', 'tcp://127.0.0.1:0')
    refused('an address that no --listen names', [local.fileno()], *own, says=rf'unix:{path}, which no --listen names')
    refused('a file', [os.open(path.parent, os.O_RDONLY)], *own, says='descriptor 3.*not a socket')
    loose = socket.socket()
    refused('a socket that does not listen', [local.fileno(), loose.fileno()], *own, says='descriptor 4.*not a listening')
    for count in '17', '-1', 'x', '99999999999999999999':
        refused(f'LISTEN_FDS={count}', [local.fileno()], *own, says='16 sockets at most', count=count)
    everywhere = socket.create_server(('0.0.0.0', 0))
    url = 'tcp://0.0.0.0:%d' % everywhere.getsockname()[1]
    refused('other machines without TLS', [everywhere.fileno()], '--listen', url, says='other machines can reach it and it has no TLS')
    refused('an address that is in use and was not passed', [local.fileno()], '--listen', f'unix:{path}', '--listen', 'tcp://127.0.0.1:%d' % tcp.getsockname()[1], says='it is in use')
    server = started([local.fileno()], '--listen', f'unix:{top}/own', pid='1')
    check('what is meant for another process is not taken', listening(server, 1) == [f'unix:{top}/own'])
    stopped(server)
    check('the file of its own socket is removed', not (top / 'own').exists())


def most(top):
    """As many sockets as may be passed."""
    passed, options = [], []
    for i in range(16):
        passed.append(socket.socket(socket.AF_UNIX))
        passed[-1].bind(f'{top}/{i}')
        passed[-1].listen(1)
        options += ['--listen', f'unix:{top}/{i}']
    server = started([one.fileno() for one in passed], *options)
    check('16 sockets', len(listening(server, 16)) == 16)
    stopped(server)


with tempfile.TemporaryDirectory() as folder:
    sock = pathlib.Path(folder, 'server.sock')
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(sock))
    unix.listen(64)
    inet = socket.create_server(('127.0.0.1', 0), backlog=64)
    used(sock, inet, unix)
    wrong(sock, inet, unix, pathlib.Path(folder))
    most(folder)
finish()
