# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""`outboard top` on a terminal: it fits on a screen of 80 columns and few rows, q ends it, and the
terminal's state is restored.

    top_screen.py OUTBOARD SERVER INIT_PROGRAM
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading

sys.path.append(sys.path[0] + '/../lib')
import waiting  # noqa: E402
from outboard_test import ENV, Server, check, finish  # noqa: E402

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
ROW = re.compile(r' *\d+ e2e_init ')


class Terminal:
    """`outboard top` on a terminal of the given columns and rows. .text: its output so far."""

    def __init__(self, url, columns, rows):
        self.near, self.far = pty.openpty()
        fcntl.ioctl(self.far, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.far)
        self.text = ''
        self.process = subprocess.Popen([OUTBOARD, 'top', '--server', url, '--interval', '0.2'], stdin=self.far, stdout=self.far, stderr=subprocess.PIPE, env=ENV,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.ended = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while not self.ended:
            if select.select([self.near], [], [], 0.1)[0]:
                self.text += os.read(self.near, 65536).decode()

    def screens(self):
        """Returns the complete screens that were drawn."""
        return [part.replace('\r', '').splitlines() for part in self.text.split('\033[H\033[2J')[1:-1]]

    def close(self):
        """Returns the exit code; None: it had to be killed."""
        try:
            return self.process.wait(waiting.LONG)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None
        finally:
            self.ended = True
            self.reader.join()

    def as_before(self):
        return termios.tcgetattr(self.far) == self.before


def looks(url, columns, rows, sessions):
    terminal = Terminal(url, columns, rows)
    screens = waiting.until(lambda: [s for s in terminal.screens() if any(map(ROW.match, s))])
    check(f'{columns} x {rows}: sessions are shown', screens, terminal.text[-2000:])
    screen = (screens or [[]])[-1]
    check(f'{columns} x {rows}: no line is longer than the screen', all(len(line) <= columns for line in screen), screen)
    check(f'{columns} x {rows}: no more lines than the screen has', len(screen) < rows, screen)
    check(f'{columns} x {rows}: as many sessions as there is room for', sum(bool(ROW.match(line)) for line in screen) == sessions, screen)
    check(f'{columns} x {rows}: keys are not echoed', not termios.tcgetattr(terminal.far)[3] & (termios.ECHO | termios.ICANON))
    os.write(terminal.near, b'x')
    drawn = len(terminal.screens())
    check(f'{columns} x {rows}: another key does nothing', waiting.until(lambda: len(terminal.screens()) > drawn + 1) and terminal.process.poll() is None)
    os.write(terminal.near, b'q')
    check(f'{columns} x {rows}: q ends it', terminal.close() == 0, terminal.process.stderr.read())
    check(f'{columns} x {rows}: the terminal is as before', terminal.as_before())
    return screen


def main():
    with Server(SERVER, '--driver', 'null') as server:
        held = [subprocess.Popen([OUTBOARD, 'run', '--server', server.url, '--', PROGRAM, 'wait'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV)
                for _ in range(12)]
        for process in held:
            process.stdout.readline()
        narrow = looks(server.url, 80, 40, 12)
        check('80 columns: the names of the columns fit', any(re.fullmatch(r' *pid +program +memory +calls/s +bytes/s +device +share +state', line) for line in narrow), narrow)
        wide = looks(server.url, 160, 40, 12)
        check('160 columns: all of them', any('client' in line and 'age' in line for line in wide), wide)
        looks(server.url, 80, 12, 6)
        for sign in (signal.SIGINT, signal.SIGQUIT):
            terminal = Terminal(server.url, 80, 24)
            waiting.until(lambda: terminal.screens())
            terminal.process.send_signal(sign)
            check(f'{sign.name} ends it as it ends any program', terminal.close() == -sign)
            check(f'{sign.name}: the terminal is as before', terminal.as_before())
        for process in held:
            process.communicate('\n', timeout=waiting.LONG)
    finish()


main()
