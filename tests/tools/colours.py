# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""What the command prints into a pipe or a file has no control sequences, and with NO_COLOR nothing
on a terminal has a colour (https://no-color.org). tools/quickstart follows the same rule.

    colours.py ROOT OUTBOARD SERVER
"""
import os
import pathlib
import pty
import re
import subprocess
import sys

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, Server, check, finish

ROOT, OUTBOARD, SERVER = sys.argv[1:4]
COLOUR = re.compile(r'\x1b\[[\d;:]*m')
COMMANDS = [['--help'], ['run', '--help'], ['run', '--', '/nowhere'], ['no-such-verb'], ['check'], ['info'], ['smi'], ['top', '--once'],
            ['bench', 'launch', '--rounds', '1'], ['config', 'check', '/nowhere']]
STEP = re.compile(r'^bold=.*?^step\(\).*?$', re.MULTILINE | re.DOTALL)


def piped(command, env):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=env, check=False)
    return done.stdout + done.stderr


def on_terminal(command, env):
    """Returns what a command prints on a terminal of its own."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True) as process:
        os.close(theirs)
        text = b''
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the last process has closed the terminal
                break
            if not part:
                break
            text += part
        os.close(ours)
        process.wait(60)
    return text.decode(errors='replace')


def commands(url):
    env = {**ENV, 'OUTBOARD_SERVER': url, 'TERM': 'xterm-256color'}
    for words in COMMANDS:
        name = ' '.join(words)
        text = piped([OUTBOARD, *words], env)
        check(f'outboard {name} into a pipe', text and '\x1b' not in text, repr(text[:200]))
        text = on_terminal([OUTBOARD, *words], {**env, 'NO_COLOR': '1'})
        check(f'outboard {name} on a terminal with NO_COLOR', text and not COLOUR.search(text), repr(text[:200]))


def quickstart():
    """Runs the lines of the script that print a heading."""
    lines = STEP.search(pathlib.Path(ROOT, 'tools/quickstart').read_text(encoding='utf-8'))
    check('tools/quickstart has the function step', lines)
    command = ['sh', '-euc', f'{lines[0]}\nstep heading']
    env = {**ENV, 'TERM': 'xterm'}
    env.pop('NO_COLOR', None)
    check('a heading in bold on a terminal', COLOUR.search(on_terminal(command, env)))
    check('a plain heading into a pipe', piped(command, env) == '\n== heading\n', piped(command, env))
    for more in {'NO_COLOR': '1'}, {'TERM': 'dumb'}:
        check(f'a plain heading on a terminal with {more}', '\x1b' not in on_terminal(command, {**env, **more}))


with Server(SERVER, '--driver', 'null') as server:
    commands(server.url)
quickstart()
finish()
