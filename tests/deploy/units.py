# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""systemd accepts the units of deploy/, and they agree with the settings and the files of the packages.

    units.py ROOT OUTBOARD [BALANCER]
"""
import configparser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
from outboard_test import ENV, check, finish

ROOT, OUTBOARD = pathlib.Path(sys.argv[1]), sys.argv[2]
DEPLOY = ROOT / 'deploy'
SETTINGS = (DEPLOY / 'server.ini').read_text(encoding='utf-8')
# What these units must not leave out. The server's driver needs devices, and memory that is written and
# executed.
COMMON = {'NoNewPrivileges': 'yes', 'CapabilityBoundingSet': '', 'ProtectSystem': 'strict', 'ProtectHome': 'yes', 'PrivateTmp': 'yes', 'ProtectKernelTunables': 'yes',
          'ProtectKernelModules': 'yes', 'ProtectControlGroups': 'yes', 'RestrictNamespaces': 'yes', 'RestrictSUIDSGID': 'yes', 'LockPersonality': 'yes',
          'SystemCallArchitectures': 'native', 'DevicePolicy': 'closed', 'UMask': '0077'}
BALANCER = {**COMMON, 'MemoryDenyWriteExecute': 'yes', 'PrivateDevices': 'yes', 'PrivateUsers': 'yes', 'ProtectProc': 'invisible',
            'RestrictAddressFamilies': 'AF_INET AF_INET6 AF_UNIX'}


def unit(name):
    parser = configparser.RawConfigParser(strict=False, interpolation=None, delimiters='=')
    parser.optionxform = str
    parser.read(DEPLOY / name, encoding='utf-8')
    return parser


def confined(name, wanted):
    service = dict(unit(name)['Service'])
    wrong = {key: service.get(key) for key, value in wanted.items() if service.get(key) != value}
    check(f'{name} is confined', not wrong, wrong)
    check(f'{name} has a user that is not root', service.get('User') not in (None, 'root'))


def files_of_the_package():
    service, socket = unit('outboard-server.service')['Service'], unit('outboard-server.socket')['Socket']
    users = (DEPLOY / 'debian/outboard-server.sysusers').read_text(encoding='utf-8')
    folders = (DEPLOY / 'debian/outboard-server.tmpfiles').read_text(encoding='utf-8')
    user = service['User']
    check('the package makes the user of the unit', re.search(rf'^u {user} ', users, re.MULTILINE))
    groups = set(re.findall(rf'^m {user} (\w+)$', users, re.MULTILINE))
    check('and puts it into its groups', groups == set(service['SupplementaryGroups'].split()), groups)
    for parent, key in ('/run', 'RuntimeDirectory'), ('/var/cache', 'CacheDirectory'):
        check(f'tmpfiles and {key} agree', re.search(rf'^d {parent}/{service[key]} 0\d+ {user} {user} ', folders, re.MULTILINE), folders)
    check('the cache of the settings is that of the unit', f'cache = /var/cache/{service["CacheDirectory"]}\n' in SETTINGS)
    listened = re.findall(r'^listen = unix:(\S+)$', SETTINGS, re.MULTILINE)
    check('the settings listen on the address of the socket', listened == [socket['ListenStream']], listened)
    check('and on nothing that other machines can reach', not re.search(r'^listen = \w+://(?!127\.0\.0\.1:)', SETTINGS, re.MULTILINE))
    done = subprocess.run([OUTBOARD, 'config', 'check', DEPLOY / 'server.ini'], capture_output=True, text=True, env=ENV, timeout=20, check=False)
    check('the settings have no errors', done.returncode == 0, done.stdout + done.stderr)
    rules = (DEPLOY / 'debian/rules').read_text(encoding='utf-8')
    check('an installation enables nothing, an upgrade ends no session', re.search(r'^\tdh_installsystemd --no-enable --no-restart-after-upgrade --no-stop-on-upgrade$', rules, re.MULTILINE))


def balancer_settings(program):
    """The settings of the package are right, also with each commented one, and fit the unit."""
    text = (DEPLOY / 'balancer.ini').read_text(encoding='utf-8')
    every = re.sub(r'^;(?=[a-z-]+ = )', '', text, flags=re.MULTILINE)
    known = set(re.findall(r'^ +--([a-z-]+)', subprocess.run([program, '--help'], capture_output=True, text=True, env=ENV, timeout=20, check=True).stdout, re.MULTILINE))
    keys = set(re.findall(r'^([a-z-]+) = ', every, re.MULTILINE))
    check('the settings name options only, commented ones too', keys <= known and len(keys) > 15, keys - known)
    for what, settings in ('as they are', text), ('with all that is commented', every):
        with tempfile.NamedTemporaryFile('w', suffix='.ini', encoding='utf-8') as file:
            file.write(settings)
            file.flush()
            done = subprocess.run([program, '--check-config', file.name], capture_output=True, text=True, env=ENV, timeout=20, check=False)
        check(f"the balancer's settings {what} have no errors", done.returncode == 0 and 'no errors' in done.stdout, done.stdout + done.stderr)
    service = unit('outboard-balancer.service')['Service']
    for parent, key in ('/var/lib', 'StateDirectory'), ('/run', 'RuntimeDirectory'):
        used = set(re.findall(rf'{parent}/([\w-]+)/', every))
        check(f'what the balancer writes is below its {key}', used == {service[key]}, used)
    open_to_all = re.findall(r'^(?:listen|http) = (?!tls://|unix:|tcp://127\.0\.0\.1:).*', every, re.MULTILINE)
    check('other machines reach it by TLS and with tokens only', not open_to_all and re.search(r'^tokens = /etc/outboard/', text, re.MULTILINE) and 'insecure' not in text, open_to_all)
    rules = (DEPLOY / 'debian/rules').read_text(encoding='utf-8')
    check('the package has them where the unit reads them', ' deploy/balancer.ini debian/outboard-balancer' + service['ExecStart'].split()[-1] in rules)


def verified():
    """systemd-analyze needs the programs to exist; their names are replaced by one that does."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for path in [*DEPLOY.glob('*.service'), *DEPLOY.glob('*.socket')]:
            text = re.sub(r'^ExecStart=\S+', 'ExecStart=/bin/true', path.read_text(encoding='utf-8'), flags=re.MULTILINE)
            paths.append(pathlib.Path(folder, path.name))
            paths[-1].write_text(text, encoding='utf-8')
        done = subprocess.run(['systemd-analyze', 'verify', '--man=no', *paths], capture_output=True, text=True, timeout=60, check=False)
        faults = [line for line in done.stderr.splitlines() if 'outboard' in line]
        check('systemd accepts the units', not faults and done.returncode == 0, faults or done.stderr)


confined('outboard-server.service', COMMON)
confined('outboard-balancer.service', BALANCER)
check('the balancer reads its settings', unit('outboard-balancer.service')['Service']['ExecStart'] == '/usr/bin/outboard-balancer --config /etc/outboard/balancer.ini')
balancer = unit('outboard-balancer.service')['Service']['User']
check('the package makes the user of the balancer', re.search(rf'^u {balancer} ', (DEPLOY / 'debian/outboard-balancer.sysusers').read_text(encoding='utf-8'), re.MULTILINE))
files_of_the_package()
if len(sys.argv) > 3:
    balancer_settings(sys.argv[3])
if shutil.which('systemd-analyze'):
    verified()
else:
    print('systemd-analyze is not installed: the units were not read by systemd')
finish()
