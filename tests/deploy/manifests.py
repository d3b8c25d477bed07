# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The Kubernetes manifests agree with each other, with the container files and with the programs; and
with Kubernetes' schemas, where the checker can be installed.

    manifests.py ROOT OUTBOARD [SERVER BALANCER]
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import checkers
import waiting
from outboard_test import ENV, check, finish, skip

try:
    import yaml
except ImportError:
    skip('Python has no module yaml: `tools/dev/install-packages test` installs it')

ROOT, OUTBOARD = pathlib.Path(sys.argv[1]), sys.argv[2]
SERVER, BALANCER = sys.argv[3:5] if len(sys.argv) > 4 else (None, None)
FOLDER = ROOT / 'deploy/kubernetes'
DEPLOYING = (ROOT / 'docs/DEPLOYING.md').read_text(encoding='utf-8')
IMAGES = {path.name.split('.')[0]: path.read_text(encoding='utf-8') for path in (ROOT / 'deploy/container').glob('*.Containerfile')}
VERSION = re.search(r"version: '([^']+)'", (ROOT / 'meson.build').read_text(encoding='utf-8'))[1]


def pod_of(document):
    """Returns the labels and the specification of the pods that a document makes; or None."""
    if document['kind'] == 'Pod':
        return document['metadata'].get('labels', {}), document['spec']
    template = document.get('spec', {}).get('template')
    return (template['metadata']['labels'], template['spec']) if template else None


def containers_of(spec):
    return spec.get('initContainers', []) + spec['containers']


def pods_agree(documents, pods):
    for name, (labels, spec) in pods.items():
        document = documents[name]
        selector = document['spec'].get('selector', {}).get('matchLabels')
        check(f'{name}: the selector is in the labels', selector is None or selector.items() <= labels.items(), (selector, labels))
        check(f"{name}: no token for Kubernetes' API", spec.get('automountServiceAccountToken') is False)
        check(f'{name}: an ordinary user', spec['securityContext'].get('runAsNonRoot') and spec['securityContext'].get('runAsUser', 0) > 0)
        volumes = {v['name'] for v in spec.get('volumes', [])} | {c['metadata']['name'] for c in document['spec'].get('volumeClaimTemplates', [])}
        for container in containers_of(spec):
            where = f'{name}, {container["name"]}'
            mounted = {m['name'] for m in container.get('volumeMounts', [])}
            check(f'{where}: its volumes exist', mounted <= volumes, mounted - volumes)
            own = container.get('securityContext', {})
            check(f'{where}: no privileges', own.get('allowPrivilegeEscalation') is False and own['capabilities'] == {'drop': ['ALL']}, own)
            check(f'{where}: a limit of memory', 'memory' in container['resources']['limits'])
            check(f'{where}: the image has a version', re.search(r':\S*\d', container['image']), container['image'])
            ports = {p['name'] for p in container.get('ports', [])}
            used = {probe[kind]['port'] for probe in (container.get(p, {}) for p in ('startupProbe', 'livenessProbe', 'readinessProbe')) for kind in probe if kind in ('tcpSocket', 'httpGet')}
            check(f'{where}: its probes use its ports', used <= ports, used - ports)


def services_agree(documents, pods):
    for name, document in documents.items():
        if document['kind'] != 'Service':
            continue
        selector = document['spec']['selector']
        chosen = [spec for labels, spec in pods.values() if selector.items() <= labels.items()]
        check(f'{name} has pods', len(chosen) == 1, selector)
        ports = {p['name'] for spec in chosen for c in spec['containers'] for p in c.get('ports', [])}
        wanted = {p['targetPort'] for p in document['spec']['ports']}
        check(f'{name}: the pods have its ports', wanted <= ports, wanted - ports)


def references_agree(documents, pods):
    """Whatever a pod refers to is in the manifests, or the page says how to make it."""
    made = {(d['kind'], d['metadata']['name']) for d in documents.values()}
    for name, (_, spec) in pods.items():
        volumes = [v for v in spec.get('volumes', [])]
        needs = {('ConfigMap', v['configMap']['name']) for v in volumes if 'configMap' in v} | {('Secret', v['secret']['secretName']) for v in volumes if 'secret' in v}
        for variable in (e for c in containers_of(spec) for e in c.get('env', [])):
            if 'secretKeyRef' in variable.get('valueFrom', {}):
                needs.add(('Secret', variable['valueFrom']['secretKeyRef']['name']))
        for kind, wanted in needs - made:
            check(f'{name}: docs/DEPLOYING.md makes the {kind} {wanted}', re.search(rf'create {kind.lower()}( generic)? {wanted}\b', DEPLOYING))
        for container in containers_of(spec):
            image, _, tag = container['image'].partition(':')
            if image.startswith('outboard-'):
                check(f'{name}: {image} is built by a container file, for this version', image.removeprefix('outboard-') in IMAGES and tag == VERSION, tag)


def programs_agree(documents, pods):
    settings = documents['ConfigMap/outboard-server']['data']['server.ini']
    with tempfile.NamedTemporaryFile('w', suffix='.ini') as file:
        file.write(settings)
        file.flush()
        done = subprocess.run([OUTBOARD, 'config', 'check', file.name], capture_output=True, text=True, timeout=20, env=ENV, check=False)
    check("the server's settings have no errors", done.returncode == 0, done.stdout + done.stderr)
    server = pods['DaemonSet/outboard-server'][1]
    ports = {str(p['containerPort']) for p in server['containers'][0]['ports']}
    check("the server's settings name its ports", ports == set(re.findall(r'^(?:listen|metrics) = .*:(\d+)$', settings, re.MULTILINE)), ports)
    drain = int(re.search(r'^drain-timeout = (\d+)', settings, re.MULTILINE)[1])
    check('Kubernetes waits longer than the server drains', server['terminationGracePeriodSeconds'] > drain)
    user = re.search(r'^USER (\d+):\d+$', IMAGES['server'], re.MULTILINE)[1]
    check('the user is that of the image', server['securityContext']['runAsUser'] == int(user) == pods['StatefulSet/outboard-balancer'][1]['securityContext']['runAsUser'])
    copied = re.search(r'^CMD (\[.*\])$', IMAGES['client'], re.MULTILINE)[1]
    example = pods['Pod/outboard-example'][1]
    check("the client's image copies into the volume of the pod", f'"{example["initContainers"][0]["volumeMounts"][0]["mountPath"]}/"' in copied, copied)
    code = example['containers'][0]['args'][-1]
    compile(code, 'example-pod.yaml', 'exec')
    if shutil.which('etcd'):
        known = subprocess.run(['etcd', '--help'], capture_output=True, text=True, timeout=20, check=False)
        flags = {a.split('=')[0] for a in pods['StatefulSet/outboard-etcd'][1]['containers'][0]['args']}
        unknown = [f for f in flags if not re.search(rf'{f}\b', known.stdout + known.stderr)]
        check('etcd has the options', flags and not unknown, unknown)


def settings_of(documents, name):
    return documents[f'ConfigMap/{name}']['data'][name.removeprefix('outboard-') + '.ini']


def check_settings(documents):
    with tempfile.NamedTemporaryFile('w', suffix='.ini') as file:
        file.write(settings_of(documents, 'outboard-balancer'))
        file.flush()
        done = subprocess.run([BALANCER, '--check-config', file.name], capture_output=True, text=True, timeout=20, env=ENV, check=False)
    check("the balancer's settings have no errors", done.returncode == 0, done.stdout + done.stderr)


def names_agree(documents, pods):
    """Names of pods and services, in settings, arguments and environment, exist, and have that port."""
    texts = [settings_of(documents, name) for name in ('outboard-balancer', 'outboard-server')]
    for _, spec in pods.values():
        for container in containers_of(spec):
            texts += container.get('args', []) + [e.get('value', '') for e in container.get('env', [])]
    found = {host for text in texts for host in re.findall(r'(?:tls|http)://(outboard-[^/,:\s]+):(\d+)', text)}
    check('the pool is named', len(found) >= 9, found)
    for host, port in sorted(found):
        first, *rest = host.split('.')
        service = documents.get(f'Service/{first}')
        if service is None:
            owner, _, number = first.rpartition('-')
            owned = documents.get(f'StatefulSet/{owner}', {}).get('spec', {})
            check(f'{host}: such a pod exists', owned and owned['serviceName'] == rest[0] and int(number) < owned['replicas'], owned and owned['replicas'])
            service = documents[f'Service/{rest.pop(0)}']
        check(f'{host}: the namespace', rest in ([], ['outboard', 'svc']), rest)
        ports = {str(p['port']) for p in service['spec']['ports']}
        check(f'{host} has the port {port}', port in ports, ports)
    servers = re.search(r'^pool = (.*)$', settings_of(documents, 'outboard-server'), re.MULTILINE)[1].count('tls://')
    check('servers register at each balancer', servers == documents['StatefulSet/outboard-balancer']['spec']['replicas'], servers)


def options_agree(pods, programs):
    for name, container in programs.items():
        arguments = [a for a in pods[name][1]['containers'][0]['args'] if a.startswith('--')]
        known = subprocess.run([container, '--help'], capture_output=True, text=True, timeout=20, env=ENV, check=True).stdout
        check(f'{name}: the program has its options', arguments and all(re.search(rf'^ +{a}\b', known, re.MULTILINE) for a in arguments), arguments)
        variables = {e['name'] for e in pods[name][1]['containers'][0]['env']}
        used = {v for a in pods[name][1]['containers'][0]['args'] for v in re.findall(r'\$\((\w+)\)', a)}
        check(f'{name}: the variables of its arguments exist', used <= variables, used - variables)


def secrets_agree(documents, pods):
    """Settings and pods use keys of secrets that the page makes, and those only."""
    made = {}
    for line in DEPLOYING.replace('\\\n', ' ').splitlines():
        if found := re.search(r'create secret generic ([\w-]+)', line):
            made[found[1]] = set(re.findall(r'--from-(?:file|literal)=([\w.-]+)', line))
    for name in 'outboard-balancer', 'outboard-server':
        used = set(re.findall(r'/etc/outboard/secret/([\w.-]+)', settings_of(documents, name)))
        used |= {e['valueFrom']['secretKeyRef']['key'] for _, spec in pods.values() for c in containers_of(spec) for e in c.get('env', [])
                 if e.get('valueFrom', {}).get('secretKeyRef', {}).get('name') == name}
        check(f'the keys of the Secret {name}', used == made[name], used ^ made[name])


def joins(documents, folder, url):
    """A server with the settings and the files of the page joins the balancer, and a user sees it."""
    settings = settings_of(documents, 'outboard-server').replace('/etc/outboard/secret/cert', f'{folder}/server-cert').replace('/etc/outboard/secret/key', f'{folder}/server-key')
    settings = re.sub(r'^cache = .*$', f'cache = {folder}/cache', settings.replace('/etc/outboard/secret', str(folder)).replace('0.0.0.0:14800', '0.0.0.0:0').replace('0.0.0.0:9464', '127.0.0.1:0'), flags=re.MULTILINE)
    settings = re.sub(r'^driver = .*$', 'driver = soft', re.sub(r'^pool = .*$', f'pool = {url}', settings, flags=re.MULTILINE), flags=re.MULTILINE)
    (folder / 'server.ini').write_text(settings)
    pin = (folder / 'pin').read_text().strip()
    user = {**ENV, 'OUTBOARD_TOKEN': (folder / 'alice.token').read_text().strip(), 'OUTBOARD_TLS_PIN': pin, 'OUTBOARD_POOL': url}
    with open(folder / 'log', 'w') as log:
        server = subprocess.Popen([SERVER, '--config', folder / 'server.ini', '--pool-name', 'node-7', '--advertise', 'tls://127.0.0.1:14800'], env={**ENV, 'OUTBOARD_TLS_PIN': pin}, stderr=log)

    def ready():
        listed = subprocess.run([OUTBOARD, 'server', 'list', '--json'], env=user, capture_output=True, text=True, timeout=60, check=False)
        return server.poll() is not None or '"node-7","state":"ready"' in re.sub(r'\s', '', listed.stdout)
    try:
        check('a server joins, and a user with token and pin sees it', waiting.until(ready) and server.poll() is None, (folder / 'log').read_text())
    finally:
        server.terminate()
        server.wait(waiting.LONG)


def starts(documents):
    """The commands of the page make what balancer and server need; the balancer starts with it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='outboard-manifests-'))
    block = DEPLOYING[DEPLOYING.index('## Kubernetes'):DEPLOYING.index('## Slurm')]
    lines = [line for line in block.splitlines() if re.match(r'(umask|outboard|openssl|printf) ', line)]
    check('the page has commands', len(lines) == 6, lines)
    check('no command shows a token to other users of the machine', not re.search(r'--from-literal=(token|pool)', block))
    path = {**ENV, 'PATH': f'{pathlib.Path(OUTBOARD).parent}:{ENV["PATH"]}'}
    try:
        done = subprocess.run(['sh', '-exc', '\n'.join(['umask 022', *lines])], cwd=folder, env=path, capture_output=True, text=True, timeout=120, check=False)
        check('the commands make files', done.returncode == 0 and len(list(folder.iterdir())) == 9, done.stderr)
        modes = {file.name: oct(file.stat().st_mode) for file in folder.iterdir() if file.stat().st_mode & 0o077}
        check('which others cannot read', not modes, modes)
        check("a pod's token has no line end", re.fullmatch(r'obt_\w+', (folder / 'alice.token').read_text()))
        settings = settings_of(documents, 'outboard-balancer').replace('/etc/outboard/secret', str(folder)).replace('0.0.0.0:14900', '127.0.0.1:0').replace('0.0.0.0:14980', '127.0.0.1:0')
        file = folder / 'balancer.ini'
        file.write_text(re.sub(r'^registry = .*$', 'registry = memory', settings, flags=re.MULTILINE))
        balancer = subprocess.Popen([BALANCER, '--config', file, '--name', 'outboard-balancer-0'], env=ENV, stderr=subprocess.PIPE, text=True)
        try:
            said = []
            for line in balancer.stderr:
                said.append(line)
                if 'dashboard and metrics at' in line or 'error' in line:
                    break
            check('the balancer starts with these files', 'dashboard and metrics at https://' in said[-1], said)
            url = next((found[0] for line in said if (found := re.search(r'tls://127\.0\.0\.1:\d+', line))), None)
            joins(documents, folder, str(url))
        finally:
            balancer.terminate()
            balancer.wait(waiting.LONG)
    finally:
        shutil.rmtree(folder)


def schemas_agree():
    program, why = checkers.installed('kubernetes-validate')
    if not program:
        print(f'the schemas of Kubernetes were not checked: {why}')
        return
    done = subprocess.run([program, '--strict', *sorted(FOLDER.glob('*.yaml'))], capture_output=True, text=True, timeout=120, check=False)
    passed = (done.stdout + done.stderr).count(' passed ')
    check("Kubernetes' schemas", done.returncode == 0 and passed >= 10, done.stdout + done.stderr)
    print(f'{passed} resources follow the schemas of Kubernetes')


def main():
    documents = {}
    for path in sorted(FOLDER.glob('*.yaml')):
        for document in yaml.safe_load_all(path.read_text(encoding='utf-8')):
            documents[f'{document["kind"]}/{document["metadata"]["name"]}'] = document
    pods = {name: pod for name, document in documents.items() if (pod := pod_of(document))}
    check('there are manifests', len(pods) == 4, list(documents))
    spaces = {d['metadata'].get('namespace') for d in documents.values() if d['kind'] not in ('Namespace', 'Pod')}
    check('one namespace', spaces == {'outboard'} and 'Namespace/outboard' in documents, spaces)
    pods_agree(documents, pods)
    services_agree(documents, pods)
    references_agree(documents, pods)
    programs_agree(documents, pods)
    names_agree(documents, pods)
    secrets_agree(documents, pods)
    if BALANCER:
        check_settings(documents)
        options_agree(pods, {'StatefulSet/outboard-balancer': BALANCER, 'DaemonSet/outboard-server': SERVER})
        starts(documents)
    schemas_agree()
    finish()


main()
