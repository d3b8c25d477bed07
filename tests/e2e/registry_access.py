# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The pool's registry in an etcd that asks for users and passwords, or for certificates.

    registry_access.py CLIENT
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import etcd
import registry
import waiting
from outboard_test import check, finish

CLIENT = sys.argv[1]


def said(client, words):
    """The client was told that etcd cannot be used, with these words."""
    def find():
        return any(words in event.text for event in list(client.events) if event.kind == 'unusable')
    return waiting.until(find)


def refused(url, words, **options):
    with registry.Client(CLIENT, url, **options) as client:
        event = client.until('refused')
        check(f'refused: {words}', event and words in event.text, event and event.text)


def users(folder):
    secret = folder / 'password'
    secret.write_text('right\n')
    account = {'user': 'lb', 'password_file': secret}
    with etcd.Cluster(1, options=('--auth-token-ttl', '2')) as cluster:
        with registry.Client(CLIENT, cluster.url, prefix='p/', **account) as client:
            check('a user where none is needed', client.is_usable() and client.put('a', '1').succeeded)
        cluster.ctl('user', 'add', 'root:top')
        cluster.ctl('user', 'add', 'lb:right')
        cluster.ctl('role', 'add', 'lb')
        cluster.ctl('role', 'grant-permission', 'lb', 'readwrite', 'p/', '--prefix=true')
        cluster.ctl('user', 'grant-role', 'lb', 'lb')
        cluster.ctl('user', 'grant-role', 'root', 'root')
        cluster.ctl('auth', 'enable')
        cluster.user = ('--user', 'root:top')
        with registry.Client(CLIENT, cluster.url, prefix='p/') as client:
            check('no user', said(client, 'give a user and a password file'), [e.text for e in client.events])
        wrong = folder / 'wrong'
        wrong.write_text('zebra')
        with registry.Client(CLIENT, cluster.url, prefix='p/', user='lb', password_file=wrong) as client:
            check('a wrong password', said(client, 'refuses the user "lb"'), [e.text for e in client.events])
            check('the password is not in the log', not any('zebra' in line for line in client.log))
        with registry.Client(CLIENT, cluster.url, prefix='p/', user='lb', password_file=folder / 'none') as client:
            check('no password file', said(client, 'cannot read the password file'), [e.text for e in client.events])
        with registry.Client(CLIENT, cluster.url, prefix='p/', **account) as client:
            check('the right password', client.is_usable() and client.put('b', '1').succeeded)
            check('leads', waiting.until(client.leads))
            # Tokens are known to the member that made them: after its restart they are refused.
            began = registry.now()
            cluster.stop(0)
            check('unusable', client.until('unusable', began))
            cluster.start(0, wait=False)
            check('after a restart: a new login', client.is_usable() and client.put('b', '2').succeeded)
            check('and the watch goes on', waiting.until(lambda: client.state.get('b') == '2') and client.count('reset') == 1)
            began = registry.now()
            cluster.ctl('user', 'passwd', 'lb', '--interactive=false', text='changed')
            check('a changed password', client.until('unusable', began))
            secret.write_text('changed')
            check('is read again', client.is_usable() and waiting.until(lambda: client.put('b', '3').succeeded))
            cluster.ctl('role', 'add', 'other')  # the authentication's revision changes
            check('a change of roles', waiting.until(lambda: client.put('b', '4').succeeded))
            check('the watch goes on', waiting.until(lambda: client.state.get('b') == '4'))
        with registry.Client(CLIENT, cluster.url, prefix='q/', **account) as client:
            check('another prefix is denied', said(client, 'permission denied'), [e.text for e in client.events])


def openssl(*arguments):
    subprocess.run(['openssl', *map(str, arguments)], check=True, capture_output=True)


def certificate(folder, name, usage, authority=None):
    """Makes NAME.pem and NAME.key; usage: its extended key usage."""
    pem, key, request, extensions = (folder / f'{name}.{end}' for end in ('pem', 'key', 'csr', 'ext'))
    if not authority:
        openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', pem, '-days', '2', '-subj', f'/CN={name}')
        return pem, key
    extensions.write_text(f'subjectAltName=IP:127.0.0.1\nextendedKeyUsage={usage}\n')
    openssl('req', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', request, '-subj', f'/CN={name}')
    openssl('x509', '-req', '-in', request, '-CA', authority[0], '-CAkey', authority[1], '-CAcreateserial', '-out', pem, '-days', '2', '-extfile', extensions)
    return pem, key


def certificates(folder):
    ca, other = certificate(folder, 'ca', ''), certificate(folder, 'other', '')
    member = certificate(folder, 'member', 'serverAuth,clientAuth', ca)
    half = certificate(folder, 'half', 'serverAuth', ca)
    mine = certificate(folder, 'mine', 'clientAuth', ca)
    stranger = certificate(folder, 'stranger', 'clientAuth', other)
    access = {'ca': ca[0], 'cert': mine[0], 'key': mine[1], 'prefix': 'p/'}
    with etcd.Cluster(1, tls=(*map(str, member), str(ca[0]))) as cluster:
        with registry.Client(CLIENT, cluster.url, **access) as client:
            check('certificates on both sides', client.is_usable() and client.put('a', '1').succeeded)
            check('the watch', waiting.until(lambda: client.state == {'a': '1'}))
            check('closes cleanly', client.close() == 0)
        with registry.Client(CLIENT, cluster.url, ca=ca[0]) as client:
            check('no certificate', said(client, 'no etcd with a quorum answers (etcd at https://'), [e.text for e in client.events])
        with registry.Client(CLIENT, cluster.url, **{**access, 'ca': other[0]}) as client:
            check('another authority', said(client, 'certificate'), [e.text for e in client.events])
        with registry.Client(CLIENT, cluster.url, **{**access, 'cert': stranger[0], 'key': stranger[1]}) as client:
            check('a stranger', client.until('unusable'), [e.text for e in client.events])
        with registry.Client(CLIENT, cluster.url.replace('https', 'http'), prefix='p/') as client:
            check('http at https', client.until('unusable'), [e.text for e in client.events])
    # Trap 3: the gateway calls its own member with the member's certificate.
    with etcd.Cluster(1, tls=(*map(str, half), str(ca[0])), wait=False) as cluster, registry.Client(CLIENT, cluster.url, **access) as client:
        check('a member whose certificate is not valid for clients', said(client, 'must be valid for server and client authentication'), [e.text for e in client.events])


def main():
    etcd.needed()
    folder = pathlib.Path(tempfile.mkdtemp(prefix='outboard-registry-'))
    try:
        for url in 'etcd:', 'etcd:tcp://a', 'etcd:http://a:1,https://b:1', 'etcd:http://a b', 'etcd:http://u:p@a', 'etcd:http://a/x', 'etcd:' + ','.join(['http://a'] * 17), 'etcd:http://a,':
            refused(url, 'is no list of etcd')
        refused('etcd:http://a', 'a user and a password file, or neither', user='x')
        refused('etcd:http://a', 'the prefix of the keys', prefix='p' * 129)
        refused('etcd:http://a', 'the lease in etcd', lease_s=1)
        refused('etcd:https://a', 'cannot read the certificate authority', ca=folder / 'none')
        refused('etcd:https://a', 'and its private key, or neither', cert=os.devnull)
        refused('zookeeper:a', 'names no registry')
        users(folder)
        if shutil.which('openssl'):
            certificates(folder)
        else:
            print('skipped: certificates, there is no openssl')
    finally:
        shutil.rmtree(folder)
    finish()


main()
