# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tokens that a real balancer cannot look at now: all who show one are told to come again, and do.

    pool_tokens.py BALANCER OUTBOARD
"""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting
from listening import Nobody
from outboard_test import ENV, check, finish
from pool_peers import CANCEL, DENIED, DONE, FOLLOW, GRANT, LATER, REFUSED, Balancer, Client, Link, Member, asked, looked, ordered

BALANCER, OUTBOARD = sys.argv[1:3]
UNREADABLE, GUESSED = 'cannot read its tokens', 'too many wrong tokens from this address; try again in'


def token(folder, name, scope):
    done = subprocess.run([OUTBOARD, 'token', 'create', '--file', folder / 'tokens', '--name', name, '--scope', scope], capture_output=True, text=True, timeout=60, env=ENV)
    return done.stdout.split()[-1]


@contextlib.contextmanager
def broken(path):
    good = path.read_text()
    path.write_text('no token\n')
    try:
        yield
    finally:
        path.write_text(good)


def sent(url, **message):
    with Link(url) as link:
        link.send(**message)
        return link.receive()


def answers(url, user, admin, serve, reservation):
    """What each kind of message gets that has a token."""
    with Member('gpu2', url, token=serve) as member:
        waiting.until(lambda: member.refused)
    return {'ask': asked(url, user), 'follow': sent(url, type=FOLLOW, id=reservation, token=user), 'query': looked(url, 'info', user), 'server': member.refused[0],
            'command': ordered(url, 'kill', reservation.hex(), token=admin), 'cancel': sent(url, type=CANCEL, id=reservation, token=user)}


def told_later(words, got):
    for kind, answer in got.items():
        check(f'{kind}: later: {words}', answer['type'] == (DONE if kind in ('command', 'cancel') else REFUSED) and answer['code'] == LATER and words in answer['text'], answer)
        check(f'{kind}: when', answer['type'] == DONE or answer['retry'] > 0, answer)


def protocol():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        user, serve, admin = (token(folder, *words) for words in (('alice', 'use'), ('rack', 'serve'), ('root', 'admin')))
        with Balancer(BALANCER, 'one', '--tokens', folder / 'tokens') as b, Member('gpu1', b.url, token=serve) as m:
            check('a server is ready', m.ready(b.url, user))
            got = asked(b.url, user, restartable=1)
            check('a token is good', got['type'] == GRANT, got)
            with broken(folder / 'tokens'):
                told_later(UNREADABLE, answers(b.url, user, admin, serve, got['id']))
            check('a wrong token is final', asked(b.url, 'obt_00000000_' + '0' * 64)['code'] == DENIED)
            check('as is none', asked(b.url)['code'] == DENIED)
            check('another user of the address is to come later', waiting.until(lambda: guessing(b.url, user)))


def guessing(url, user):
    """Guesses until the address has to wait, and shows a right token. False: the wait was over before."""
    waiting.until(lambda: GUESSED in asked(url, 'obt_00000000_' + '0' * 64)['text'])
    got = asked(url, user)
    return got['type'] == REFUSED and got['code'] == LATER and GUESSED in got['text'] and got['retry'] > 0


def programs():
    """Programs wait until the tokens can be read, at their beginning and after a move."""
    with tempfile.TemporaryDirectory() as name:
        folder, nobody = pathlib.Path(name), Nobody()
        tokens, log, err, stop = folder / 'tokens', folder / 'log', folder / 'err', folder / 'stop'
        user, serve, admin = (token(folder, *words) for words in (('alice', 'use'), ('rack', 'serve'), ('root', 'admin')))
        (folder / 'bad').write_text('no token\n')
        (folder / 'good').write_bytes(tokens.read_bytes())
        with Balancer(BALANCER, 'one', '--tokens', tokens) as b, Member('gpu1', b.url, token=serve, address=nobody.url) as one, Member('gpu2', b.url, token=serve, address=nobody.url) as two:
            servers = {'gpu1': one, 'gpu2': two}
            check('two servers are ready', one.ready(b.url, user) and two.ready(b.url, user))
            # the program breaks the file as it ends for the move
            script = f'trap "cat {folder}/bad > {tokens}; exit" TERM; echo begin >> {log}; while [ ! -e {stop} ]; do sleep 0.05; done'
            with broken(tokens), open(err, 'w') as file:
                run = subprocess.Popen([OUTBOARD, 'run', '--pool', b.url, '--vram', '64MiB', '--restartable', '--wait-for', f'{waiting.LONG:.0f}', '--', 'sh', '-c', script],
                                       stdin=subprocess.DEVNULL, stdout=file, stderr=file, env={**ENV, 'OUTBOARD_TOKEN': user, 'OUTBOARD_LOG': 'info'})
                check('a program asks while they cannot be read', b.line(r'tokens: ') and run.poll() is None, err.read_text())
            check('and begins when they can be read', waiting.until(lambda: log.exists()), err.read_text())

            def granted():
                return [r for r in looked(b.url, 'sessions', user)['reservations'] if r['parts'][0]['state'] == 'granted']
            reservation = waiting.until(granted)[0]
            servers[reservation['parts'][0]['server']].claim(bytes.fromhex(reservation['id']))
            check('a move is ordered', waiting.until(lambda: ordered(b.url, 'move', reservation['id'], token=admin)['code'] == 0))
            check('it cannot start again at once', waiting.until(lambda: UNREADABLE in err.read_text()), err.read_text())
            tokens.write_bytes((folder / 'good').read_bytes())
            check('but when they can be read', waiting.until(lambda: log.read_text().count('begin') == 2), err.read_text())
            stop.touch()
            check('and ends well', run.wait(waiting.LONG) == 0, err.read_text())


for test in protocol, programs:
    test()
finish()
