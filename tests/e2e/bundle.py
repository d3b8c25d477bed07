# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The bundle runs where it is unpacked, with the libraries it contains. The server accepts the
bundled files for the service manager.

    bundle.py ROOT BUILD
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, Server, check, finish, run

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])


def bundle(top):
    ENV['XDG_RUNTIME_DIR'] = str(top)  # where `outboard run` makes its link to a path with a blank
    # It may compile, and a compiler cache needs the user's cache folder, which ENV hides.
    env = {k: v for k, v in os.environ.items() if not k.startswith('OUTBOARD_')}
    done = subprocess.run([ROOT / 'tools/dev/bundle', BUILD, top / 'b.tar.gz'], capture_output=True, text=True, timeout=120, env=env)
    check('a bundle is made', done.returncode == 0 and 'libraries included' in done.stdout, done.stdout + done.stderr)
    with tarfile.open(top / 'b.tar.gz') as tar:
        names = tar.getnames()
        check('nothing in it points out of it', all(not n.startswith(('/', '..')) and '/../' not in n for n in names))
        inside = {n.partition('/')[2] for n in names}
        installed = json.loads((BUILD / 'meson-info/intro-installed.json').read_text()).values()
        top_folder = os.path.commonpath([p for p in installed if p.endswith(('/bin/outboard', '/bin/outboard-server'))])[:-len('/bin')]
        missing = [p for p in installed if os.path.relpath(p, top_folder) not in inside]
        check('everything that is installed is in it', installed and not missing, missing)
        tar.extractall(top / 'far away')
    tree = next((top / 'far away').iterdir())
    server, outboard = tree / 'bin/outboard-server', tree / 'bin/outboard'
    env = {k: v for k, v in ENV.items() if k != 'LD_LIBRARY_PATH'}
    for program in (server, outboard):
        lines = subprocess.run(['ldd', program], capture_output=True, text=True, env=env).stdout.splitlines()
        system = [x for x in lines if '=>' in x and str(tree) not in x and not re.match(r'\s*(libc|libm|libdl|libpthread|librt|libresolv)\.so', x)]
        check(f'{program.name} needs of the system nothing but the C library', not system, system)
    with Server(str(server), '--driver', 'soft') as s:
        out, done = run(str(outboard), s.url, str(BUILD / 'examples/saxpy_driver'))
        check('a program runs through it', 'all right' in out, out + done.stderr)
        mapped = pathlib.Path(f'/proc/{s.process.pid}/maps').read_text()
        check('with the libraries it brought', str(tree / 'lib/outboard/needed/libuv') in mapped and not re.search(r' /(usr/)?lib/[^/]+/libuv', mapped))
    return outboard, tree


def service(outboard, tree):
    unit = (ROOT / 'deploy/outboard-server.service').read_text()
    check('the unit waits to be told', 'Type=notify' in unit and 'ExecStart=/usr/local/bin/outboard-server --config /etc/outboard/server.ini' in unit)
    done = subprocess.run([outboard, 'config', 'check', tree / 'share/outboard/server.ini'], capture_output=True, text=True, env=ENV, timeout=20)
    check('the settings that come with it have no errors', done.returncode == 0, done.stdout + done.stderr)
    if shutil.which('systemd-analyze'):
        done = subprocess.run(['systemd-analyze', 'verify', ROOT / 'deploy/outboard-server.service'], capture_output=True, text=True, timeout=60)
        faults = [x for x in done.stderr.splitlines() if 'outboard-server.service' in x and 'is not executable' not in x and 'man' not in x]
        check('systemd takes the unit', not faults, faults)
    else:
        keys = {line.split('=')[0] for line in unit.splitlines() if '=' in line and not line.startswith('#')}
        check('each key is one word', all(re.fullmatch(r'[A-Z][A-Za-z]+', k) for k in keys), keys)


with tempfile.TemporaryDirectory() as folder:
    service(*bundle(pathlib.Path(folder)))
finish()
