# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Links into a separate network namespace. Needs root and ip. Link: a pair of virtual Ethernet
devices and tc's tbf, for rates. Line: a link of known rate, round trip and loss by
tests/e2e/wire.c, packet by packet, up to about 0.2 Gb/s."""
import os
import shutil
import subprocess


def do(*words):
    subprocess.run(words, check=True, capture_output=True, text=True)


class Link:
    """with Link() as link: link.set(rate=125e6); link.inside: prefix of a command that runs at the
    other end"""
    number = 0

    def __init__(self):
        Link.number += 1
        self.name = f'ob{os.getpid() % 100000}x{Link.number}'
        self.near, self.far = self.name + 'a', self.name + 'b'
        net = f'10.{98 + Link.number % 100}.{os.getpid() % 250 + 1}'
        self.own, self.address = net + '.1', net + '.2'
        self.inside = ['ip', 'netns', 'exec', self.name]

    @staticmethod
    def missing():
        """Returns why a link cannot be made here, or None."""
        if os.geteuid() != 0:
            return 'only root may make network namespaces'
        if not shutil.which('ip') or not shutil.which('tc'):
            return 'ip and tc (iproute2) are missing'
        return None

    def __enter__(self):
        do('ip', 'netns', 'add', self.name)
        do('ip', 'link', 'add', self.near, 'type', 'veth', 'peer', 'name', self.far, 'netns', self.name)
        do('ip', 'addr', 'add', self.own + '/24', 'dev', self.near)
        do('ip', 'link', 'set', self.near, 'up')
        do(*self.inside, 'ip', 'addr', 'add', self.address + '/24', 'dev', self.far)
        do(*self.inside, 'ip', 'link', 'set', self.far, 'up')
        do(*self.inside, 'ip', 'link', 'set', 'lo', 'up')
        return self

    def __exit__(self, *_):
        subprocess.run(['ip', 'link', 'del', self.near], capture_output=True)
        subprocess.run(['ip', 'netns', 'del', self.name], capture_output=True)

    def set(self, rate=None):
        """rate: bytes/s each way; None: unlimited"""
        for before, device in (([], self.near), (self.inside, self.far)):
            subprocess.run([*before, 'tc', 'qdisc', 'del', 'dev', device, 'root'], capture_output=True)
            if rate:
                burst = max(256 << 10, int(rate / 1000))
                subprocess.run([*before, 'tc', 'qdisc', 'add', 'dev', device, 'root', 'tbf', 'rate', f'{rate * 8:.0f}bit', 'burst', str(burst),
                                'latency', '50ms'], check=True)


class Line(Link):
    """with Line(WIRE_PROGRAM) as line: line.set(rate=12.5e6, round_trip=0.01, loss=0.001)

    mtu: with larger packets the process that forwards them takes less of a core"""

    def __init__(self, wire, mtu=1500):
        super().__init__()
        self.wire = wire
        self.mtu = mtu

    @staticmethod
    def missing():
        return Link.missing() or (None if os.path.exists('/dev/net/tun') else '/dev/net/tun is missing')

    def __enter__(self):
        self.process = subprocess.Popen([self.wire, self.near, self.far, str(max(self.mtu, 2048))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != 'ready\n':
            raise SystemExit('no line: ' + self.wire)
        do('ip', 'netns', 'add', self.name)
        do('ip', 'link', 'set', self.far, 'netns', self.name)
        do('ip', 'addr', 'add', self.own, 'peer', self.address, 'dev', self.near)
        do('ip', 'link', 'set', self.near, 'mtu', str(self.mtu), 'up')
        do(*self.inside, 'ip', 'addr', 'add', self.address, 'peer', self.own, 'dev', self.far)
        do(*self.inside, 'ip', 'link', 'set', self.far, 'mtu', str(self.mtu), 'up')
        do(*self.inside, 'ip', 'link', 'set', 'lo', 'up')
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)
        subprocess.run(['ip', 'netns', 'del', self.name], capture_output=True)

    def set(self, rate=None, round_trip=0, loss=0):
        """rate: bytes/s each way; round_trip: seconds, half of it each way; loss: fraction of the
        packets, each way"""
        self.process.stdin.write(f'{rate or 0:.0f} {round_trip / 2:.7f} {loss * 1e6:.1f}\n')
        self.process.stdin.flush()
