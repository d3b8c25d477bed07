# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Copies over stripes whose connections break at random times, alone and together with the
session's other connections. The output must be that of an unbroken run, and the server must have
executed no other call twice. Then servers and limits that allow no stripes.

    stripes.py OUTBOARD SERVER PROGRAM CUTS [ROUNDS] [SEED]
"""
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import resume  # resume.py reads the same arguments
from outboard_test import needs
from resume import CUTS, OUTBOARD, PROGRAM, ROUNDS, Server, check, compare, run

STRIPED = {'OUTBOARD_STRIPES': '3', 'OUTBOARD_STRIPE_MIN': '512K'}
needs('stripe')
SIZE = str(9 << 20)


def striped(err):
    """Returns the number of copies over stripes in each direction, and of sets that broke."""
    found = {d: int(n) for d, n in re.findall(r'stripes (out|in): (\d+) copies', err)}
    broke = re.search(r'stripes: broke (\d+) times', err)
    return found.get('out', 0), found.get('in', 0), int(broke[1]) if broke else 0


def cuts(server, folder, scheme, **env):
    command = [PROGRAM, '3', ROUNDS, SIZE]
    made = compare(f'{scheme}stripes alone', server, folder, scheme, command, CUTS, 2 << 20, 0, False, kinds=('stripe',) if scheme == 'tcp:' else ('data',),
                   copies=False, **STRIPED, **env)
    made += compare(f'{scheme}stripes, data and control', server, folder, scheme, command, CUTS, 4 << 20, 0, True, copies=False, **STRIPED, **env)
    made += compare(f'{scheme}packed', server, folder, scheme, [PROGRAM, '2', '3', SIZE], CUTS, 1 << 20, 0, True, copies=False,
                    OUTBOARD_CODEC='planes', **STRIPED, **env)
    return made


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(f'unix:{folder}/s')
        # A copy uses the ring if another thread's copy uses the stripes: only one thread's number
        # of copies over stripes is known.
        code, _, err, _ = run(server.url, [PROGRAM, '1', '3', SIZE], **STRIPED)
        server.calls()
        check('copies go over stripes', code == 0 and striped(err) == (3, 3, 0), err)
        code, out, err, _ = run(server.url, [PROGRAM, '2', '3', SIZE], **STRIPED)
        server.calls()
        check('and of two threads', code == 0 and striped(err)[2] == 0 and max(striped(err)) > 0, err)
        plain = run(server.url, [PROGRAM, '2', '3', SIZE], OUTBOARD_STRIPES='0')
        server.calls()
        check('the same without', plain[0] == 0 and plain[1] == out and striped(plain[2]) == (0, 0, 0), plain[:3])
        switched = run(server.url, [PROGRAM, '2', '3', SIZE], **dict(STRIPED, OUTBOARD_OPT='-stripe'))
        server.calls()
        check('and switched off', switched[0] == 0 and switched[1] == out and striped(switched[2]) == (0, 0, 0), switched[:3])
        made = cuts(server, folder, 'tcp:')
        check('enough breaks', made >= CUTS, made)
        compare('open but dead', server, folder, 'tcp:', [PROGRAM, '2', '3', SIZE], 2, 4 << 20, 1, False, kinds=('stripe',), copies=False, **STRIPED)
        server.stop()

        for most, name in (('0', 'none'), ('2', 'two')):
            server = Server(f'unix:{folder}/{name}', '--max-stripes', most)
            code, again, err, _ = run(server.url, [PROGRAM, '2', '3', SIZE], **STRIPED)
            said = re.findall(r'over (\d+) stripes', err)
            check(f'a server that allows {name}', code == 0 and again == out and set(said) <= {'0', most}, (code, again, err))
            server.stop()

        cert, key = f'{folder}/cert.pem', f'{folder}/key.pem'
        subprocess.run([OUTBOARD, 'cert', '--cert', cert, '--key', key], check=True, stdout=subprocess.DEVNULL)
        server = Server('tls://127.0.0.1:0', '--tls-cert', cert, '--tls-key', key)
        made = cuts(server, folder, 'tls:', OUTBOARD_TLS_CA=cert)
        check('enough breaks of TLS', made >= CUTS, made)
        server.stop()
    print(f'{len(resume.bad)} wrong')
    return 1 if resume.bad else 0


if __name__ == '__main__':
    sys.exit(main())
