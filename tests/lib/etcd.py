# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""An etcd of one or several members on the loopback, with its data in a temporary folder.

    with etcd.Cluster(3) as cluster:
        cluster.url                    "etcd:http://127.0.0.1:…,…", for obl_registry_open
        cluster.kill(cluster.leader())
        cluster.start(0)

A test that needs it calls etcd.needed() first: exit code 77 where etcd is not installed.
"""
import atexit
import base64
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import tempfile
import urllib.request

import waiting
from listening import free_ports
from outboard_test import skip

PR_SET_PDEATHSIG = 1
PRCTL = ctypes.CDLL(None).prctl
PROGRAM, TOOL = shutil.which('etcd'), shutil.which('etcdctl')


def needed():
    if not PROGRAM or not TOOL:
        skip('etcd or etcdctl is not installed (Debian: etcd-server, etcd-client)')


def end_with_test():
    """In a child: it gets SIGKILL when the test ends, also when the test was killed."""
    PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)


def coded(text):
    return base64.b64encode(text.encode()).decode()


class Cluster:
    """tls: (certificate, key, authority) of the members, which then want a client's certificate.
    options: more options of the members. wait: until there is a quorum."""

    def __init__(self, n=1, tls=None, options=(), wait=True):
        self.n, self.tls, self.options = n, tls, options
        self.folder = tempfile.mkdtemp(prefix='outboard-etcd-')
        ports = free_ports(2 * n)
        self.clients = [f'{"https" if tls else "http"}://127.0.0.1:{port}' for port in ports[:n]]
        self.peers = [f'http://127.0.0.1:{port}' for port in ports[n:]]
        self.url = 'etcd:' + ','.join(self.clients)
        self.processes = [None] * n
        self.begun = False
        self.user = ()
        atexit.register(self.close)  # also when the test fails
        for i in range(n):
            self.start(i, wait=False)
        if wait:
            self.wait()
        self.begun = True

    def start(self, i, wait=True):
        member = ','.join(f'm{k}={peer}' for k, peer in enumerate(self.peers))
        arguments = [PROGRAM, '--name', f'm{i}', '--data-dir', f'{self.folder}/m{i}', '--listen-client-urls', self.clients[i], '--advertise-client-urls', self.clients[i],
                     '--listen-peer-urls', self.peers[i], '--initial-advertise-peer-urls', self.peers[i], '--initial-cluster', member,
                     '--initial-cluster-state', 'existing' if self.begun else 'new', '--initial-cluster-token', self.folder, *self.options]
        if self.tls:
            arguments += ['--cert-file', self.tls[0], '--key-file', self.tls[1], '--trusted-ca-file', self.tls[2], '--client-cert-auth']
        with open(f'{self.folder}/m{i}.log', 'ab') as log:
            env = {k: v for k, v in os.environ.items() if not k.startswith('ETCD')}
            self.processes[i] = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, preexec_fn=end_with_test)
        if wait:
            self.wait()

    def kill(self, *members):
        for i in members:
            self.processes[i].kill()
        for i in members:
            self.processes[i].wait(waiting.LONG)
            self.processes[i] = None

    def stop(self, i):
        self.processes[i].terminate()
        self.processes[i].wait(waiting.LONG)
        self.processes[i] = None

    def pause(self, *members):
        """The members are stopped, but their connections stay open."""
        for i in members:
            self.processes[i].send_signal(signal.SIGSTOP)

    def resume(self, *members):
        for i in members:
            self.processes[i].send_signal(signal.SIGCONT)

    def call(self, i, path, body, timeout=2):
        """One call of the JSON gateway of member i; None: it does not answer, or with an error."""
        context = None
        if self.tls:
            context = ssl.create_default_context(cafile=self.tls[2])
            context.load_cert_chain(self.tls[0], self.tls[1])
        request = urllib.request.Request(self.clients[i] + path, json.dumps(body).encode(), {'Content-Type': 'application/json'})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        try:
            with opener.open(request, timeout=timeout) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None

    def running(self):
        return [i for i in range(self.n) if self.processes[i]]

    def wait(self):
        """Waits until the running members have a quorum."""
        def ready():
            return any(self.call(i, '/v3/kv/range', {'key': coded('x')}) for i in self.running())
        if not waiting.until(ready, waiting.LONG, 0.1):
            logs = ''.join(pathlib.Path(f'{self.folder}/m{i}.log').read_text(errors='replace')[-2000:] for i in range(self.n))
            raise SystemExit('etcd does not start: ' + logs)

    def leader(self):
        """The index of the member that leads."""
        def find():
            for i in self.running():
                status = self.call(i, '/v3/maintenance/status', {})
                if status and status.get('leader') == status['header']['member_id']:
                    return i + 1
            return 0
        return waiting.until(find) - 1

    def ctl(self, *arguments, members=None, text=None):
        """etcdctl; returns its output. text: its input."""
        at = ','.join(self.clients[i] for i in (self.running() if members is None else members))
        tls = ('--cert', self.tls[0], '--key', self.tls[1], '--cacert', self.tls[2]) if self.tls else ()
        done = subprocess.run([TOOL, '--endpoints', at, *tls, *self.user, *arguments], input=text, capture_output=True, text=True, timeout=waiting.LONG, env={**os.environ, 'ETCDCTL_API': '3'})
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def revision(self):
        answer = self.call(self.running()[0], '/v3/kv/range', {'key': coded('x')})
        return int(answer['header']['revision'])

    def close(self):
        for process in self.processes:
            if process:
                process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(waiting.LONG)
        self.processes = [None] * self.n
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
