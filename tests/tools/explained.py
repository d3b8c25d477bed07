# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Errors are reported once, with the cause and what to do: an unreachable server, a kernel that
fails, PTX and images that the device does not accept, a driver that a server cannot use.

    explained.py OUTBOARD SERVER FAILING_PROGRAM INIT_PROGRAM COMPILER...
"""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import waiting  # noqa: E402
from listening import Nobody  # noqa: E402
from outboard_test import ENV, Server, check, finish  # noqa: E402

OUTBOARD, SERVER, FAILING, INIT, COMPILER = *sys.argv[1:5], sys.argv[5:]


def tool(*words, **env):
    return subprocess.run([OUTBOARD, *map(str, words)], capture_output=True, text=True, timeout=waiting.LONG, env={**ENV, **env})


def lines(text):
    return [line for line in text.splitlines() if line.startswith('outboard')]


def ways(folder):
    """Unreachable server: `run`, `check` and `top` report the same."""
    nobody = Nobody()
    closed = nobody.url
    silent = socket.create_server(('127.0.0.1', 0))
    silent_url = 'tcp://127.0.0.1:%d' % silent.getsockname()[1]
    for url, words in (('tcp://no-such-host.invalid:1', ["the name 'no-such-host.invalid' could not be resolved", 'numeric address']),
                       (closed, ['Connection refused: nothing listens there', 'outboard-server --listen']),
                       (f'unix:{folder}/none', ['there is no such socket', 'outboard-server --listen']),
                       (silent_url, ['accepted the connection and did not answer within 1 s', 'OUTBOARD_TIMEOUT'])):
        told = [lines(tool('run', '--server', url, '--', INIT, OUTBOARD_TIMEOUT='1').stderr), lines(tool('check', '--server', url, OUTBOARD_TIMEOUT='1').stderr)]
        check(f'{url}: one line each, with the cause and the remedy', all(len(t) == 1 and all(w in t[0] for w in words) for t in told), told)
        check(f'{url}: run and check say the same', [t[0].split(': ', 2 if 'error' in t[0].split(': ')[1] else 1)[-1] for t in told][0] ==
              told[1][0].split(': ', 1)[1], told)
        if url != silent_url:
            done = tool('top', '--once', '--server', url)
            check(f'{url}: and so does top', done.returncode == 1 and words[0] in done.stderr, done.stderr)
    silent.close()
    done = tool('check', '--server', f'tcp://no-such-host.invalid:1,{closed}')
    check('a list tells each', "the server's name cannot be resolved" in done.stdout and 'Connection refused' in done.stdout, done.stdout)


def certificates(folder):
    cert, key = folder / 'cert.pem', folder / 'key.pem'
    pin = tool('cert', '--cert', cert, '--key', key).stdout.strip()
    with Server(SERVER, '--driver', 'null', '--tls-cert', str(cert), '--tls-key', str(key), listen='tls://127.0.0.1:0') as s:
        for name, env, words in (('another pin', {'OUTBOARD_TLS_PIN': '0' * 64}, 'is not the one that OUTBOARD_TLS_PIN names'),
                                 ('no authority', {}, 'certificate is not trusted'),
                                 ('a pin that is none', {'OUTBOARD_TLS_PIN': 'xyz'}, '64 hexadecimal digits'),
                                 ('no such file', {'OUTBOARD_TLS_CA': '/nowhere/ca.pem'}, 'OUTBOARD_TLS_CA: /nowhere/ca.pem')):
            run, seen = tool('run', '--server', s.url, '--', INIT, **env).stderr, tool('check', '--server', s.url, **env)
            check(f'{name}: run says why', words in run, run)
            check(f'{name}: check knows as much', seen.returncode == 1 and seen.stderr.removeprefix('outboard check: ') == run.removeprefix('outboard: error: '),
                  (run, seen.stderr))
        done = tool('check', '--server', s.url, OUTBOARD_TLS_PIN=pin)
        check('the right pin: all is well', done.returncode == 0 and 'all is well' in done.stdout, done.stdout + done.stderr)


def device(how, name):
    for what, code, words in (('fault', 700, ['kernel writes_to_nowhere', 'Invalid __global__ write of size 4 bytes at 0x10', 'error 700', 'OUTBOARD_SOFT_MEMCHECK=1']),
                              ('ptx', 218, [*(['kernel is_no_ptx'] if how == ['--direct'] else []), 'unknown qualifier .foo of ld', 'OUTBOARD_LOG=info'])):
        done = tool('run', *how, '--', FAILING, what, 5)
        told = lines(done.stderr)
        check(f'{name}, {what}: the results', done.stdout.split() == [str(code)] * 5, done.stdout + done.stderr)
        check(f'{name}, {what}: one line, with kernel, cause and how to learn more', len(told) == 1 and all(w in told[0] for w in words), done.stderr)
    done = tool('run', *how, '--', FAILING, 'image', 400)
    told = lines(done.stderr)
    check(f'{name}, image: the results', done.stdout.split() == ['209'] * 400, done.stdout[-200:])
    check(f'{name}, image: whose it is, what it holds, what helps', told and all(w in told[0] for w in (os.path.realpath(FAILING), 'sm_86 (no PTX)',
          'Rebuild it with PTX', 'a server with a GPU')), told[:2])
    check(f'{name}, image: 400 equal lines are one', len(told) == 1, told)


def gpu():
    """A kernel that fails on a GPU (the null driver returns the error): the driver reports only
    an error code, so the message names the command that finds the kernel."""
    with Server(SERVER, '--driver', 'null', env={'OUTBOARD_FAULT': 'cuCtxSynchronize:1=700'}) as s:
        done = tool('run', '--server', s.url, '--', FAILING, 'sync', 2, OUTBOARD_OPT='-local')
        told = lines(done.stderr)
        check('a GPU: a failed kernel is told once, with the way to find it', done.stdout.split()[0] == '700' and len(told) == 1 and
              all(w in told[0] for w in ('error 700 (CUDA_ERROR_ILLEGAL_ADDRESS)', "'outboard run --sync'")), (done.stdout, done.stderr))


def server(*options, **env):
    """Returns the exit code (None: the server started and was stopped) and the messages."""
    process = subprocess.Popen([SERVER, '--listen', 'tcp://127.0.0.1:0', *options], stderr=subprocess.PIPE, text=True, env={**ENV, 'LD_LIBRARY_PATH': '', **env})
    said = ''
    for line in process.stderr:
        said += line
        if 'listening on' in line:
            process.terminate()
            process.communicate(timeout=waiting.LONG)
            return None, said
    return process.wait(waiting.LONG), said


def drivers(folder, soft):
    code, said = server('--driver', '/nonexistent')
    check('a driver that does not exist: the server ends, with one line', code == 1 and said.count('\n') == 1 and '--driver /nonexistent cannot be used' in said and
          'No such file' in said, (code, said))
    code, said = server('--driver', SERVER)
    check('a file that is no driver: likewise', code == 1 and said.count('\n') == 1 and 'cannot be used' in said, (code, said))
    (folder / 'libcuda.so.1').symlink_to(soft)
    code, said = server('--driver', 'gpu', LD_LIBRARY_PATH=str(folder))
    check('--driver gpu does not take a software device for a GPU', code == 1 and 'is the software device' in said and '--driver soft' in said, (code, said))
    code, said = server('--driver', 'auto', LD_LIBRARY_PATH=str(folder))
    check('--driver auto without a GPU warns', code is None and re.search(r'warn: driver: soft: no GPU can be used \(.*\): kernels run on this machine.s CPU', said), said)
    code, said = server('--driver', 'soft')
    check('--driver soft says nothing', code is None and said.count('\n') == 1, said)


def seen_by_check():
    for driver, device, verdict in (('soft', 'SOFTWARE DEVICE, NO GPU', 'there is NO GPU'), ('null', 'NULL DRIVER, NO GPU', 'NOTHING IS COMPUTED')):
        with Server(SERVER, '--driver', driver) as s:
            done = tool('check', '--server', s.url)
            check(f'check says what computes: {driver}', done.returncode == 0 and device in done.stdout and verdict in done.stdout, done.stdout)


def no_memory_files(folder):
    """A server that cannot use memfd_create ends with a message that says so."""
    source, library = folder / 'forbid.c', folder / 'forbid.so'
    source.write_text('#include <errno.h>\nint memfd_create(const char *name, unsigned flags);\n'
                      'int memfd_create(const char *name, unsigned flags) { (void)name; (void)flags; errno = ENOSYS; return -1; }\n')
    if subprocess.run([*COMPILER, '-shared', '-fPIC', '-o', library, source], capture_output=True).returncode:
        return print('skip: no library can be built here')
    code, said = server('--driver', 'null', LD_PRELOAD=str(library))
    check('a server without memfd_create ends and says so', code == 1 and 'has no memfd_create' in said and 'listening' not in said, (code, said))
    return None


def main():
    soft = next(pathlib.Path(SERVER).resolve().parents[1].glob('softdevice/liboutboard-softdevice.so'), None)
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        ways(folder)
        certificates(folder)
        if soft:
            with Server(SERVER, '--driver', 'soft', env={'OUTBOARD_LOG': 'warn'}) as s:
                device(['--server', s.url], 'over a server')
            device(['--direct'], 'direct')
            drivers(folder, soft)
            seen_by_check()
        gpu()
        no_memory_files(folder)
    finish()


main()
