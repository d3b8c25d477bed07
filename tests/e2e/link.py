# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A link of a known rate, round trip and loss: a pair of virtual Ethernet devices into a network namespace of its own. Needs root, ip and tc."""
import os
import shutil
import subprocess


class Link:
    """with Link() as link: link.set(rate=125e6, round_trip=0.01, loss=0.001); link.inside: words before a command that runs behind it"""
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
        """Why there can be none here; None when there can."""
        if os.geteuid() != 0:
            return 'only root may make network namespaces'
        if not shutil.which('ip') or not shutil.which('tc'):
            return 'ip and tc (iproute2) are missing'
        return None

    def __enter__(self):
        def do(*words):
            subprocess.run(words, check=True, capture_output=True, text=True)
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

    def set(self, rate=None, round_trip=0, loss=0):
        """rate: bytes/s each way, None as fast as it goes; round_trip: seconds, half of it each way; loss: part of the packets lost, each way."""
        for before, device in (([], self.near), (self.inside, self.far)):
            subprocess.run([*before, 'tc', 'qdisc', 'del', 'dev', device, 'root'], capture_output=True)
            parent = ['root']
            if round_trip or loss:
                # Room for what is under way: netem's own queue would drop it.
                limit = int((rate or 3e9) * max(round_trip, 1e-3) / 1000) + 10000
                words = ['netem', 'limit', str(limit)] + (['delay', f'{round_trip * 5e5:.0f}us'] if round_trip else [])
                words += ['loss', f'{loss * 100:g}%'] if loss else []
                subprocess.run([*before, 'tc', 'qdisc', 'add', 'dev', device, *parent, 'handle', '1:', *words], check=True)
                parent = ['parent', '1:1']
            if rate:
                burst = max(256 << 10, int(rate / 1000))
                subprocess.run([*before, 'tc', 'qdisc', 'add', 'dev', device, *parent, 'handle', '2:', 'tbf', 'rate', f'{rate * 8:.0f}bit',
                                'burst', str(burst), 'latency', '50ms'], check=True)
