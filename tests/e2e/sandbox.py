# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A compromised worker: its driver tries operations that must be denied in all threads, as root and
as another user, by the profile for any driver and by that of the software device. The same for the
admission process.

    sandbox.py OUTBOARD SERVER PROGRAM DRIVER soft|none
"""
import os
import pathlib
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, Server, check, finish

OUTBOARD, SERVER, PROGRAM, DRIVER, SOFT = sys.argv[1:6]
# In the order of the driver's table.
ATTEMPTS = re.search(r'attempts\[\]\)\(void\) = \{(.*?)\}', pathlib.Path(__file__).with_name('sandbox_driver.c').read_text(), re.S).group(1).replace('\n', ' ')
ATTEMPTS = [name.strip() for name in ATTEMPTS.split(',')]
# Operations that succeed in a worker without a sandbox, as any user: if they fail, the test proves
# nothing.
ALWAYS = {'key', 'tokens', 'other_cache', 'write_outside', 'passwd', 'tcp_socket', 'netlink_socket', 'unix_connect', 'listens', 'signals_supervisor', 'signals_worker', 'signals_by_file',
          'executes', 'forks', 'readable_again', 'has_capabilities', 'shared_memory'}


def names(bits):
    return {name for i, name in enumerate(ATTEMPTS) if bits >> i & 1}


def attempt(s):
    """Returns the operations that succeeded, in the calling thread and in one that is older than
    the sandbox. Another session exists meanwhile."""
    start = [OUTBOARD, 'run', '--server', s.url, '--', PROGRAM]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
    with subprocess.Popen(start, **pipes) as other:
        first = other.stdout.readline()
        done = subprocess.run(start, input='\n', capture_output=True, text=True, timeout=60, env=ENV)
        other.communicate('\n', timeout=60)
        check('another session is not disturbed', first.startswith('0 ') and other.returncode == 0, first)
    found = re.match(r'0 (\w+)', done.stdout)
    if not found:
        check('the program runs', False, done.stdout + done.stderr)
        return set(), set()
    bits = int(found.group(1), 16)
    return names(bits & 0xffffffff), names(bits >> 32)


def scene(folder, user):
    """Creates files that a worker must not reach. Returns the environment variables that tell the
    driver their paths."""
    paths = {name: folder / name for name in ('KEY', 'TOKENS', 'OTHER', 'OUTSIDE', 'SOCKET')}
    (folder / 'cache').mkdir(mode=0o700)
    paths['OTHER'] = folder / 'cache' / ('f' * 32) / ('c' + 'f' * 64)  # as an upload is named: the server removes others
    paths['OTHER'].parent.mkdir(mode=0o700)
    for name in ('KEY', 'TOKENS', 'OTHER'):
        paths[name].write_text('secret')
        paths[name].chmod(0o600)
    if user:
        for path in [folder, *folder.rglob('*')]:
            os.chown(path, user.pw_uid, user.pw_gid)
    return {f'OUTBOARD_ATTACK_{name}': str(path) for name, path in paths.items()} | {'OUTBOARD_ATTACK_HOME': user.pw_dir if user else os.path.expanduser('~')}


def attack(user, mode, server, driver):
    """The attempts in a worker. driver: the driver's file, or `soft` if that file is installed
    beside the server in place of the software device."""
    who = (user.pw_name if user else 'this user') + (', profile soft' if driver == 'soft' else '')
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder = pathlib.Path(top) / 'scene'
        folder.mkdir()
        places = scene(folder, user)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(places['OUTBOARD_ATTACK_SOCKET'])
        os.chmod(places['OUTBOARD_ATTACK_SOCKET'], 0o777)
        listener.listen(64)
        with Server(server, '--driver', driver, '--cache', str(folder / 'cache'), '--sandbox', mode, '--warm', '2', env=places,
                    user=user and user.pw_uid, group=user and user.pw_gid) as s:
            late, early = attempt(s)
            if mode == 'off':
                check(f'{who}, no sandbox: the attempts work', late & ALWAYS == ALWAYS, ALWAYS - late)
                return
            for name in ATTEMPTS:
                check(f'{who}, {mode}: {name} is denied', name not in late and name not in early, 'in ' + ', '.join(
                    thread for thread, done in (('the thread that asked', late), ('an older thread', early)) if name in done))
            done = subprocess.run([OUTBOARD, 'check', '--server', s.url], capture_output=True, text=True, timeout=60, env=ENV)
            told = re.search(r'^sandbox +(.*)$', done.stdout, re.M)
            check('check tells what is in force', told and all(part in told.group(1) for part in ('privileges', 'files (Landlock', 'system calls', 'limits')) and
                  'missing' not in told.group(1), done.stdout)
            check('so does the log', s.line('sandbox of workers: '), s.lines)
        listener.close()


def admission(user, mode):
    """The same attempts in the admission process."""
    who = f"{user.pw_name if user else 'this user'}, admission"
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder = pathlib.Path(top) / 'scene'
        folder.mkdir()
        places = scene(folder, user)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(places['OUTBOARD_ATTACK_SOCKET'])
            os.chmod(places['OUTBOARD_ATTACK_SOCKET'], 0o777)
            listener.listen(64)
            with Server(SERVER, '--driver', 'null', '--cache', str(folder / 'cache'), '--sandbox', mode, env=places | {'LD_PRELOAD': DRIVER},
                        user=user and user.pw_uid, group=user and user.pw_gid) as s:
                done = subprocess.run([OUTBOARD, 'check', '--server', s.url], capture_output=True, text=True, timeout=60, env=ENV)
                check(f'{who}, {mode}: a client comes in', done.returncode == 0, done.stdout + done.stderr)
                found = s.line(r'attempts in admission: (\w+)')
                succeeded = names(int(found.group(1), 16)) if found else set(ATTEMPTS)
                if mode == 'off':
                    check(f'{who}, no sandbox: the attempts work', succeeded >= ALWAYS - {'signals_worker'}, ALWAYS - succeeded)
                    return
                for name in ATTEMPTS:
                    check(f'{who}, {mode}: {name} is denied', name not in succeeded)
                told = re.search(r'^sandbox .*; of admission: (.*)$', done.stdout, re.M)
                check('check tells what is in force', told and all(part in told.group(1) for part in ('privileges', 'files (none', 'system calls', 'limits')) and
                      'missing' not in told.group(1), done.stdout)
                check('so does the log', s.line('sandbox of admission: '), s.lines)


def status(pid):
    return dict(line.split(':\t', 1) for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines() if ':\t' in line)


def soft():
    """With the software device: the strict profile, a separate user, and requests for features that
    the profile disables."""
    with tempfile.TemporaryDirectory() as folder, Server(SERVER, '--driver', 'soft', '--sandbox', 'strict', '--cache', folder, '--warm', '1') as s:
        with subprocess.Popen([OUTBOARD, 'run', '--server', s.url, '--', PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV) as program:
            check('a program runs under strict', program.stdout.readline().startswith('0 '))
            worker = int(s.line(r'starts on worker (\d+)').group(1))
            now = status(worker)
            check('no privileges, no capabilities, a filter', now['NoNewPrivs'].strip() == '1' and now['Seccomp'].strip() == '2' and
                  all(int(now[name], 16) == 0 for name in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb')), now)
            if os.geteuid() == 0:
                check('not even in reserve', int(now['CapBnd'], 16) == 0, now['CapBnd'])
                check('a user of its own', int(now['Uid'].split()[0]) not in (0, 65534), now['Uid'])
                check('no groups', now['Groups'].strip() in ('', now['Gid'].split()[0]), now['Groups'])
            tasks = [status(f'{worker}/task/{task}') for task in os.listdir(f'/proc/{worker}/task')]
            check('the same in each thread', len(tasks) > 1 and all(task['Seccomp'].strip() == '2' and int(task['CapEff'], 16) == 0 for task in tasks), len(tasks))
            program.communicate('\n', timeout=60)
    done = subprocess.run([SERVER, '--listen', 'tcp://127.0.0.1:0', '--sandbox', 'somewhat'], capture_output=True, text=True, timeout=60, env=ENV)
    check('another word is refused', done.returncode == 2 and 'auto, strict or off' in done.stderr, done.stderr)
    done = subprocess.run([SERVER, '--listen', 'tcp://127.0.0.1:0', '--driver', 'null', '--worker-user', 'no-such-user-here'], capture_output=True, text=True, timeout=60,
                          env=ENV)
    check('a user that is not there is refused', done.returncode == 1 and ('no such user' in done.stderr or 'started as root' in done.stderr), done.stderr)


def stranger():
    """Returns another user who can run the built programs, if this process is root."""
    if os.geteuid() != 0:
        return None
    user = pwd.getpwnam('nobody')
    done = subprocess.run([SERVER, '--version'], capture_output=True, user=user.pw_uid, group=user.pw_gid, extra_groups=[], check=False) if shutil.which(SERVER) else None
    return user if done and done.returncode == 0 else None


def reachable(user):
    try:
        return stranger()
    except PermissionError:
        return user


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        server = shutil.copy(SERVER, folder)
        shutil.copy(DRIVER, os.path.join(folder, 'liboutboard-softdevice.so'))
        for user in [None, *filter(None, [reachable(None)])]:
            attack(user, 'off', SERVER, DRIVER)
            attack(user, 'auto', SERVER, DRIVER)
            attack(user, 'auto', server, 'soft')
            admission(user, 'off')
            admission(user, 'auto')
    finish()


if SOFT == 'soft':
    soft()
main()
