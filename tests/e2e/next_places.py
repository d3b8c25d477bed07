# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""`outboard run --restartable` between the end of a program and its next start: the balancer decides
what happens when it is asked for the offered place.

    next_places.py OUTBOARD
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import fake_pool
import frames
import waiting
from listening import Nobody
from outboard_test import ENV, check, finish

OUTBOARD, = sys.argv[1:]
GPU = Nobody()
FOLLOW, MOVED = 78, 79


class Pool(fake_pool.Balancer):
    """Offers a place once. asked(link, message): the answer to a request after the program has ended, or
    None for a grant. garbled: so many connections are answered in clear then, though the address is
    tls://."""

    def __init__(self, asked=None, garbled=0, **more):
        self.asked, self.garbled, self.left, self.successor, self.ended = asked, 0, garbled, None, False
        super().__init__(self.told, **more)

    def serve(self, sock):
        if not self.garbled:
            super().serve(sock)
            return
        self.garbled -= 1
        frames.receive(sock, frames.PREFACE)
        sock.sendall(b'no TLS' * 20)
        sock.recv(1)

    def told(self, link, message):
        if message['type'] == FOLLOW and not self.successor:
            self.successor = os.urandom(16)
            waiting.until(lambda: self.log.exists() and self.log.read_text())  # the program works
            link.send(MOVED, id=message['id'], successor=self.successor, server='gpu2', text='the pool moves it', left=60)
        elif message['type'] == FOLLOW:
            link.sock.recv(1)  # until it closes
        elif message['type'] != fake_pool.ASK:
            link.done()
        elif self.ended and self.asked and (answer := self.asked(message)):
            link.refused(*answer)
        else:
            link.granted(message, [('gpu1', GPU.url, '')])
            if message.get('offered') and not self.ended:
                self.ended, self.garbled = True, self.left

    def offered(self):
        """Requests for the offered place after the program's end."""
        return [m for m in self.of(fake_pool.ASK) if m['id'] == self.successor][1:]

    def back(self):
        """Requests for the place that the program had."""
        asks = self.of(fake_pool.ASK)
        return [m for m in asks[1:] if m['id'] == asks[0]['id']]


def run(folder, pool, **env):
    """The exit code, how often the program was started, and stderr. It ends when it was started twice."""
    pool.log = log = pathlib.Path(tempfile.mkdtemp(dir=folder), 'log')
    script = 'echo begin >> "$LOG"; while [ $(wc -l < "$LOG") -lt 2 ]; do sleep 0.05; done'
    pool.process = process = subprocess.Popen([OUTBOARD, 'run', '--pool', pool.url, '--restartable', '--grace', '1', '--', 'sh', '-c', script], stdin=subprocess.DEVNULL,
                                              stderr=subprocess.PIPE, text=True, env={**ENV, 'LOG': str(log), 'OUTBOARD_COMPILERS': '0', **env})
    try:
        err = process.communicate(timeout=waiting.LONG)[1]
    finally:
        process.kill()
    return process.returncode, log.read_text().count('begin\n'), err


def broken_connections(folder):
    """Connections that fail do not mean that the program was ended by command."""
    cert, key = folder + '/cert.pem', folder + '/key.pem'
    pin = subprocess.run([OUTBOARD, 'cert', '--cert', cert, '--key', key, '--names', '127.0.0.1'], capture_output=True, text=True, env=ENV).stdout.strip()
    with Pool(garbled=2, files=(cert, key)) as pool:
        code, starts, err = run(folder, pool, OUTBOARD_TLS_PIN=pin)
        check('after two TLS failures it is started again', (code, starts) == (0, 2) and not pool.garbled and len(pool.offered()) == 1, (code, starts, err))


def denied(folder):
    with Pool(lambda message: (fake_pool.DENIED, 'it was ended by its user')) as pool:
        code, starts, err = run(folder, pool)
        check('what a balancer denies is final', (code, starts) == (77, 1) and 'ended by its user' in err and len(pool.offered()) == 1, (code, starts, err))


def told_once(folder):
    """Equal refusals are printed once."""
    with Pool(lambda message: (fake_pool.LATER, 'the registry is away') if len(pool.offered()) < 3 else (fake_pool.INVALID, 'it is not kept') if message.get('offered') else
              (fake_pool.CAPACITY, 'none fits') if len(pool.of(fake_pool.ASK)) < 9 else None) as pool:
        code, starts, err = run(folder, pool)
        check('it is asked again and again', (code, starts) == (0, 2) and len(pool.offered()) == 3 and len(pool.of(fake_pool.ASK)) == 9, (code, starts, err))
        check('the place that it had once, before any other one', pool.back() == [pool.of(fake_pool.ASK)[5]] and pool.back()[0]['offered'] == 1, pool.of(fake_pool.ASK))
        check('the last refusal of the offered place is told', 'registry is away' not in err and err.count('it is not kept') == 1, err)
        check('and that of others once', err.count('none fits') == 1, err)


def messages(folder):
    """SIGUSR1 and SIGUSR2 while there is no program: they end neither the command nor the next program."""
    def asked(message):
        for number in signal.SIGUSR1, signal.SIGUSR2:
            pool.process.send_signal(number)
        return (fake_pool.LATER, 'a moment') if len(pool.offered()) < 2 else None

    with Pool(asked) as pool:
        code, starts, err = run(folder, pool)
        check('it is started again', (code, starts) == (0, 2) and len(pool.offered()) == 2, (code, starts, err))


def main():
    with tempfile.TemporaryDirectory() as folder:
        for case in broken_connections, denied, told_once, messages:
            case(folder)


main()
finish()
