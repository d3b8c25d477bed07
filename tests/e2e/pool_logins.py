# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""`outboard login`, and which pool the commands use then.

    pool_logins.py OUTBOARD
"""
import json
import os
import pathlib
import re
import sys

sys.path.append(sys.path[0] + '/../lib')
import fake_pool
from fake_pool import Balancer
from listening import Nobody
from outboard_test import check, finish
from pool_user import GPU, HOME, SHOW, grant, on_terminal, tool, variables

NOBODY = Nobody()


def logins():
    token, other = 'obt_01234567_' + '89' * 32, 'obt_76543210_' + '98' * 32
    config = HOME.name + '/config'
    path = pathlib.Path(config, 'outboard', 'pool.ini')
    cert, key, tokens = HOME.name + '/c2.pem', HOME.name + '/k2.pem', HOME.name + '/tokens'
    pin = tool('cert', '--cert', cert, '--key', key, '--names', '127.0.0.1').stdout.strip()

    def admits(link, message):
        if message.get('token') not in (token, made) and message['type'] != fake_pool.CANCEL:
            link.refused(fake_pool.DENIED, 'unknown token')
        elif message['type'] == fake_pool.QUERY:
            link.answer({'schema': 1})
        else:
            grant(link, message)

    def user(*arguments, env=None, stdin=None):
        return tool(*arguments, stdin=stdin, env={'XDG_CONFIG_HOME': config, **(env or {})})

    made = ''
    with Balancer(admits, files=(cert, key)) as pool, Balancer(admits) as plain:
        string = tool('token', 'create', '--file', tokens, '--pool', pool.url, '--cert', cert).stdout.strip()
        check('the string of an operator', re.fullmatch(rf'outboard\+{re.escape(pool.url)}\?pin={pin}#obt_\w{{8}}_\w{{64}}', string), string)
        made = string.partition('#')[2]
        done = user('login', '-', '--name', 'lab', stdin=string + '\n')
        check('login by the string', done.returncode == 0 and 'logged in to lab' in done.stdout and made not in done.stdout + done.stderr, done)
        check('asks the pool once', [(m['type'], m['what'], m['token']) for m in pool.heard] == [(fake_pool.QUERY, 'info', made)], pool.heard)
        check('the file is for its owner only', path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700, oct(path.stat().st_mode))
        done = user('run', '--', *SHOW)
        check('then run needs no option', done.returncode == 0 and variables(done.stdout)['OUTBOARD_SERVER'] == GPU and pool.of(fake_pool.ASK)[-1]['token'] == made, done.stderr)
        done = user('login', plain.url, '--token', token, '--name', 'second')
        check('login by address and token', done.returncode == 0, done.stderr)
        asked = len(plain.of(fake_pool.ASK))
        check('the last login is the default', user('run', '--', 'true').returncode == 0 and len(plain.of(fake_pool.ASK)) == asked + 1)
        asked = len(pool.of(fake_pool.ASK))
        done = user('run', '--pool', 'lab', '--', 'true')
        check('another one by its name', done.returncode == 0 and len(pool.of(fake_pool.ASK)) == asked + 1, done.stderr)
        done = user('run', '--pool', pool.url, '--', 'true')
        check('or by its address: pin and token are the login\'s', done.returncode == 0 and pool.of(fake_pool.ASK)[-1]['token'] == made, done.stderr)
        done = user('run', '--', 'true', env={'OUTBOARD_TOKEN': other})
        check('a token of the environment is used before', done.returncode == 77 and plain.heard[-1]['token'] == other, done.stderr)
        done = user('run', '--server', 'tcp://elsewhere:1', '--', *SHOW)
        check('--server is used before a login', variables(done.stdout)['OUTBOARD_SERVER'] == 'tcp://elsewhere:1' and 'OUTBOARD_TOKEN' not in variables(done.stdout), done.stdout)
        done = user('run', '--', *SHOW, env={'OUTBOARD_SERVER': 'tcp://elsewhere:1'})
        check('OUTBOARD_SERVER too', variables(done.stdout)['OUTBOARD_SERVER'] == 'tcp://elsewhere:1', done.stdout)
        shown = json.loads(user('config', 'show', '--json').stdout)
        check('config show names the login', shown['pool'] == {'value': plain.url, 'from': 'login second'} and shown['token'] == {'value': 'set', 'from': 'login'}, shown)
        text = user('config', 'show', '--pool', 'lab', env={'OUTBOARD_TOKEN': other}).stdout
        check('and option and environment', re.search(r'pool +\S+ +\(option\)', text) and re.search(r'token +set +\(environment\)', text) and pin in text and
              token not in text, text)
        text = user('config', 'show', env={'XDG_CONFIG_HOME': HOME.name + '/none'}).stdout
        check('and the default', re.search(r'server +tcp://127.0.0.1:14800 +\(default\)', text) and 'token    -' in text, text)
        before = path.read_text()
        done = user('login', plain.url, '--token', other)
        check('a token that the pool refuses is not stored', done.returncode == 77 and path.read_text() == before, done.stderr)
        done = user('login', NOBODY.url, '--token', other)
        check('nor a pool that cannot be reached', done.returncode == 75 and path.read_text() == before, done.stderr)
        for wrong in ('', 'http://x', f'{pool.url}?pin=12', f'{plain.url}?pin={pin}', f'{pool.url}?key=1', ','.join([plain.url] * 9), 'tcp://' + 'h' * 300, plain.url + '#' + 'x' * 90, plain.url + '#a;b', plain.url + '#a\tb', 'unix:/a b'):
            done = user('login', '-', stdin=wrong + '\n')
            check('no pool: ' + wrong[:30], done.returncode == 2 and path.read_text() == before, done.stderr)
        path.chmod(0o644)
        for arguments in (['run', '--', 'true'], ['config', 'show'], ['login', plain.url, '--token', token]):
            done = user(*arguments)
            check(f'a file that others can read is refused by {arguments[0]}', done.returncode == 1 and f'chmod 600 {path}' in done.stderr, done.stderr)
        path.chmod(0o600)
        for damaged in ('[lab\n', '[lab]\nnonsense = 1\n', '[lab]\npin = ' + pin, '[lab]\ntoken = x\n', '[a b]\nbalancer = tcp://h:1\n', '[l]\nbalancer = ' + 'x' * 500):
            path.write_text(damaged)
            done = user('run', '--', 'true')
            check('a damaged file: ' + repr(damaged[:20]), done.returncode == 1 and str(path) in done.stderr, done.stderr)
        path.write_text(before)
        if os.geteuid() == 0:
            os.chown(path, 12345, -1)
            done = user('run', '--', 'true')
            check("another user's file is refused", done.returncode == 1 and 'another user' in done.stderr, done.stderr)
            os.chown(path, 0, -1)
        done = user('logout')
        check('logout of the default', done.returncode == 0 and 'second' in done.stdout and 'second' not in path.read_text() and token not in path.read_text(), done)
        check('the other is the default then', user('run', '--', 'true').returncode == 0)
        check('logout of an unknown one', user('logout', 'nobody').returncode == 1)
        check('the last logout removes the file', user('logout', 'lab').returncode == 0 and not path.exists())
        check('logout of nothing', user('logout').returncode == 1 and user('logout', '--all').returncode == 0)
        both = tool('token', 'create', '--file', tokens, '--pool', f'{pool.url},{plain.url}').stdout.strip()
        made = both.partition('#')[2]
        check('a string of two balancers', user('login', both, env={'OUTBOARD_TLS_PIN': pin}).returncode == 0, both)
        check('is kept as two', user('config', 'show').stdout.split()[1] == f'{pool.url},{plain.url}')
        said, status = on_terminal('login', plain.url, prompt='Token', keys=token.encode() + b'\n', env={'XDG_CONFIG_HOME': config})
        check('a terminal is asked for the token, and does not show it', status == 0 and 'Token' in said and token not in said.partition('Token')[2], said)
        done = tool('token', 'create', '--file', tokens, '--pool', f'{pool.url},{plain.url}', '--cert', cert, '--cert', cert, '--cert', cert)
        check('more certificates than balancers', done.returncode == 2, done.stderr)


logins()
finish()
