# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The Kubernetes manifests agree with each other, with the container files and with the programs; and
with Kubernetes' schemas, where the checker can be installed.

    manifests.py ROOT OUTBOARD
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../lib')
import checkers
from outboard_test import ENV, check, finish, skip

try:
    import yaml
except ImportError:
    skip('Python has no module yaml: `tools/dev/install-packages test` installs it')

ROOT, OUTBOARD = pathlib.Path(sys.argv[1]), sys.argv[2]
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
    check('the user is that of the image', server['securityContext']['runAsUser'] == int(user) == pods['Deployment/outboard-balancer'][1]['securityContext']['runAsUser'])
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
    schemas_agree()
    finish()


main()
