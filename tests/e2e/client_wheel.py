# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The Python wheel of the client: installed by pip into a new virtual environment, without network,
its command runs programs through a server that is not in the environment.

    client_wheel.py ROOT BUILD SERVER
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, Server, check, finish, skip

ROOT, BUILD, SERVER = sys.argv[1:4]
PYTHON_PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL('libcuda.so.1')
count = ctypes.c_int()
print(cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
sys.exit(7)
"""


def call(*command, env=None, limit=120):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=limit, env=env or ENV, check=False)


def glibc_of(wheel):
    """Returns the newest version of the C library whose symbols the wheel's files use, by readelf."""
    newest = (0, 0)
    with tempfile.TemporaryDirectory() as top, zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if archive.read(name)[:4] == b'\x7fELF':
                text = call('readelf', '--wide', '--version-info', archive.extract(name, top)).stdout
                newest = max([newest, *(tuple(map(int, v.split('.')[:2])) for v in re.findall(r'Name: GLIBC_(\d+\.\d+)', text))])
    return newest


def made(top):
    # It may compile, and a compiler cache needs the user's cache folder, which ENV hides.
    env = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_')}
    done = call(ROOT + '/tools/dev/make-wheel', BUILD, top / 'dist', env=env)
    wheels = list((top / 'dist').glob('*.whl')) if done.returncode == 0 else []
    check('a wheel is made', len(wheels) == 1, done.stdout + done.stderr)
    if not wheels:
        finish()
    tag = re.fullmatch(r'outboard-[\d.]+-py3-none-manylinux_(\d+)_(\d+)_\w+\.whl', wheels[0].name)
    check('its tag is that of the C library whose symbols it uses', tag and (int(tag[1]), int(tag[2])) == glibc_of(wheels[0]), (wheels[0].name, glibc_of(wheels[0])))
    first = wheels[0].read_bytes()
    call(ROOT + '/tools/dev/make-wheel', BUILD, top / 'dist', env=env)
    check('the same build gives the same wheel', wheels[0].read_bytes() == first)
    return wheels[0]


def installed(top, wheel):
    """Returns the folder of the programs of the environment."""
    for step in ((sys.executable, '-m', 'venv', top / 'env'), (top / 'env/bin/pip', 'install', '--quiet', '--no-index', '--disable-pip-version-check', wheel)):
        done = call(*step)
        check(' '.join(map(str, step[1:3])), done.returncode == 0, done.stdout + done.stderr)
    return top / 'env/bin'


def used(programs, url):
    outboard = programs / 'outboard'
    env = {**ENV, 'PATH': f'{programs}:{ENV["PATH"]}', 'OUTBOARD_SERVER': url}
    env.pop('LD_LIBRARY_PATH', None)
    done = call('outboard', 'check', env=env)
    check('the command reaches the server', done.returncode == 0 and 'all is well' in done.stdout, done.stdout + done.stderr)
    done = call('outboard', 'run', '--', BUILD + '/examples/saxpy_driver', env=env)
    check('a program runs through it', done.returncode == 0 and 'all right' in done.stdout, done.stdout + done.stderr)
    done = call('outboard', 'run', '--', 'python', '-c', PYTHON_PROGRAM, env=env)
    check("python finds the devices, and its exit code is the program's", done.returncode == 7 and re.match(r'0 0 [1-9]', done.stdout), (done.returncode, done.stdout, done.stderr))
    done = call(programs / 'python', '-m', 'outboard', '--version')
    check('python -m outboard is the command', done.returncode == 0 and done.stdout.startswith('outboard '), done.stdout + done.stderr)
    command = call(programs / 'python', '-c', 'import outboard; print(outboard.COMMAND)').stdout.strip()
    lines = call('ldd', command, env=env).stdout.splitlines()
    foreign = [x for x in lines if '=>' in x and str(programs.parent) not in x and not re.match(r'\s*(libc|libm|libdl|libpthread|librt|libresolv)\.so', x)]
    check('the command needs of the system nothing but the C library', lines and not foreign, foreign or command)
    done = call(outboard, 'no-such-verb')
    check('wrong usage has the code of the command', done.returncode == 2, done.returncode)


def removed(programs):
    done = call(programs / 'pip', 'uninstall', '--quiet', '--yes', '--disable-pip-version-check', 'outboard')
    left = [str(path) for path in programs.parent.rglob('*outboard*')]
    check('uninstalling leaves nothing', done.returncode == 0 and not left, left or done.stderr)


def main():
    if call(sys.executable, '-c', 'import venv, ensurepip').returncode:
        skip(f'{sys.executable} has no venv: `tools/dev/install-packages test` installs it')
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        programs = installed(top, made(top))
        with Server(SERVER, '--driver', 'soft') as server:
            used(programs, server.url)
        removed(programs)
    finish()


main()
