# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The dashboard of a real balancer with two invented GPU servers: documents, commands that arrive at
the servers, scopes, history, and metrics that promtool accepts. All metrics that the alert rules
and the Grafana dashboard name are exported; a real Prometheus scrapes the balancer and evaluates
the rules, where one is installed.

    dashboard_balancer.py OUTBOARD_BALANCER OUTBOARD SOURCE
"""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request

sys.path.append(sys.path[0] + '/../lib')
import waiting
from dashboard_pool import Stream, ask, command
from listening import free_ports
from outboard_test import check, finish
from pool_peers import CORDON, DRAIN, GIB, GRANT, KILL, REFUSED, Balancer, Client, Member  # noqa: E402

BALANCER, OUTBOARD, SOURCE = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
NAMES = re.compile(r'\boutboard_[a-z_]+')


class Warm(Member):
    """A server that reports temperatures and power. Device 0 is hot."""

    def load(self):
        load = super().load()
        load['max_sessions'] = 0 if self.name == 'gpu-b' else 64
        for i, device in enumerate(load['devices']):
            device['used'] = self.memory // 4
            device['facts'] = {'temperature': 60 if i else 91, 'power': 350000, 'use_gpu': 70}
        return load


def token(folder, name, scope):
    made = subprocess.run([OUTBOARD, 'token', 'create', '--file', f'{folder}/tokens', '--name', name, '--scope', scope], capture_output=True, text=True)
    found = re.search(r'obt_\w+', made.stdout)
    if not found:
        raise SystemExit(f'no token was made: {made.stdout}{made.stderr}')
    return found.group()


def documents(port, tokens, members):
    def all_ready():
        servers = ask(port, '/api/v1/servers', token=tokens['look']).json()['servers']
        return len(servers) == 2 and all(s['state'] == 'ready' for s in servers)
    check('the servers are in the document', waiting.until(all_ready))
    gpus = ask(port, '/api/v1/gpus', token=tokens['look']).json()['gpus']
    check('their GPUs too', len(gpus) == 6 and {g['celsius'] for g in gpus} == {60, 91} and all(g['milliwatts'] == 350000 for g in gpus), gpus)
    check('no token', ask(port, '/api/v1/fleet').status == 401)
    check('a server\'s token may not look', ask(port, '/api/v1/fleet', token=tokens['serve']).status == 401)
    caller = ask(port, '/api/v1/caller', token=tokens['admin']).json()
    check('an admin', caller['may_command'] and caller['sees_all'] and caller['scope'] == 'admin', caller)
    check('a user', ask(port, '/api/v1/caller', token=tokens['use']).json() == {'schema': 1, 'tenant': 'vision', 'scope': 'use', 'sees_all': False, 'may_command': False})
    check('members are registered', all(m.registered for m in members))


def sessions(port, url, tokens, members):
    """Returns the reservation's id, as text."""
    with Client(url, tokens['use']) as client:
        grant = client.grant(memory=4 * GIB, gpus=1)
        check('a reservation is granted', grant['type'] == GRANT, grant)
        check('one is refused', client.grant(gpus=60)['type'] == REFUSED)
    member = next(m for m in members if m.name == grant['parts'][0]['server'])
    member.claim(grant['id'])

    def running():
        listed = ask(port, '/api/v1/sessions', token=tokens['use']).json()['reservations']
        return listed and listed[0]['parts'][0]['state'] == 'running' and listed[0]
    listed = waiting.until(running)
    check('it is running', listed and listed['id'] == grant['id'].hex() and listed['tenant'] == 'vision', listed)
    other = ask(port, '/api/v1/sessions', token=tokens['other']).json()
    check('another tenant does not see it', other['reservations'] == [] and other['other_reservations'] == 1, other)
    return grant['id'], member


def commands(port, tokens, members, reservation, owner):
    stream = Stream(port, tokens['look'])
    stream.until('servers', lambda doc: True)
    check('a user may not command', command(port, 'servers/gpu-a/cordon', tokens['use']).status == 403)
    done = command(port, 'servers/gpu-a/cordon', tokens['admin'])
    check('cordon', done.status == 200, done.body)
    stream.until('servers', lambda doc: any(s['name'] == 'gpu-a' and s['state'] == 'cordoned' for s in doc['servers']))
    event = stream.until('events', lambda doc: any(e['kind'] == 'cordoned' for e in doc['events']))
    check('the event says who', any('operator' in e['text'] for e in event['events'] if e['kind'] == 'cordoned'), event)
    a = members[0]
    check('the server is told', waiting.until(lambda: any(o['kind'] == CORDON and o['number'] == 1 for o in list(a.orders))), a.orders)
    check('uncordon', command(port, 'servers/gpu-a/uncordon', tokens['admin']).status == 200)
    check('drain', command(port, 'servers/gpu-a/drain', tokens['admin'], '{"grace_s": 90}').status == 200)
    check('with its time', waiting.until(lambda: any(o['kind'] == DRAIN and 60000 < o['number'] <= 90000 for o in list(a.orders))), a.orders)
    command(port, 'servers/gpu-a/uncordon', tokens['admin'])
    check('no such server', 'no server of this name' in command(port, 'servers/gpu-x/cordon', tokens['admin']).error())
    killed = command(port, f'sessions/{reservation.hex()}/kill', tokens['admin'])
    check('kill', killed.status == 200 and waiting.until(lambda: owner.got(KILL, reservation)), (killed.body, owner.orders))
    stream.close()


def moves(port, url, tokens, members):
    """As by 'outboard session move', and by operators only."""
    a, b = members
    with Client(url, tokens['use']) as client:
        grant = client.grant(restartable=1, memory=4 * GIB)
        at = grant['parts'][0]['server']
        here, there = (a, b) if at == a.name else (b, a)
        here.claim(grant['id'])
        path = f'sessions/{grant["id"].hex()}/move'

        def listed():
            rows = ask(port, '/api/v1/sessions', token=tokens['use']).json()['reservations']
            return next((r for r in rows if r['id'] == grant['id'].hex()), None)
        waiting.until(lambda: listed() and listed()['parts'][0]['state'] == 'running')
        check('its own tenant may not move it', command(port, path, tokens['use']).status == 403)
        check('there must be such a server', 'no server of this name' in command(port, path, tokens['admin'], '{"server": "gpu-x"}').error())
        check('another one than now', 'on this server already' in command(port, path, tokens['admin'], json.dumps({'server': at})).error())
        done = command(port, path, tokens['admin'], json.dumps({'server': there.name}))
        check('a move is offered', done.status == 200 and done.json()['text'] == f'it is offered a place on {there.name}', done.body)
        check('the document says where to', listed()['restartable'] and listed()['moving_to'] == there.name, listed())
        check('once at a time', 'already' in command(port, path, tokens['admin']).error())


def stays_out(folder, port, tokens, stream):
    """A revoked token's stream ends, also while wrong tokens come from the same address."""
    known = subprocess.run([OUTBOARD, 'token', 'list', '--file', f'{folder}/tokens'], capture_output=True, text=True, check=True).stdout
    number = next(line.split()[0] for line in known.splitlines() if line.endswith(' leaver'))
    stop = threading.Event()

    def guess():
        while not stop.wait(0.05):
            with contextlib.suppress(OSError, EOFError):
                ask(port, '/api/v1/info', token='obt_00000000_' + '0' * 64)
    guesses = threading.Thread(target=guess)
    guesses.start()
    try:
        check('the address waits', waiting.until(lambda: ask(port, '/api/v1/info', token=tokens['look']).status == 429))
        subprocess.run([OUTBOARD, 'token', 'revoke', '--file', f'{folder}/tokens', number], check=True)

        def ends():
            with contextlib.suppress(EOFError):
                return not stream.next()
            return True
        check('a stream whose token is revoked ends', waiting.until(ends))
    finally:
        stop.set()
        guesses.join()


def unreadable(folder, port, tokens):
    """A token file with an error says nothing about the tokens."""
    path = pathlib.Path(folder, 'tokens')
    good = path.read_text()
    path.write_text('no token\n')
    got = ask(port, '/api/v1/info', token=tokens['look'])
    check('tokens that cannot be read: later, not "wrong"', got.status == 503 and 'cannot read its tokens' in got.error(), (got.status, got.body))
    path.write_text(good)
    check('and then as before', waiting.until(lambda: ask(port, '/api/v1/info', token=tokens['look']).status == 200))


def unknown(port, tokens, member):
    """What nobody tells is null, not 0."""
    def rows(what):
        return [row for row in ask(port, f'/api/v1/{what}', token=tokens['look']).json()[what] if row.get('server', row['name']) == member.name]
    there, = rows('servers')
    check('what a server reports is a number', there['sessions'] is not None and rows('gpus')[0]['used_bytes'] is not None, there)
    check('no limit of sessions is null too', there['max_sessions'] is None, there)
    member.close()
    check('it is lost', waiting.until(lambda: rows('servers')[0]['state'] == 'lost'), rows('servers'))
    gone, = rows('servers')
    check('what a lost server would report is null', [gone[key] for key in ('sessions', 'max_sessions', 'busy_per_mille', 'uptime_s', 'heartbeat_age_ms')] == [None] * 5, gone)
    check('and of its GPUs', waiting.until(lambda: all([gpu[key] for key in ('used_bytes', 'busy_per_mille', 'sessions', 'celsius', 'milliwatts')] == [None] * 5 and gpu['memory_bytes'] > 0 for gpu in rows('gpus'))), rows('gpus'))  # another document may be older


def exported(port, tokens):
    """Returns the names of the metrics, and checks the text with promtool."""
    text = ask(port, '/metrics', token=tokens['look']).body.decode()
    if promtool := shutil.which('promtool'):
        said = subprocess.run([promtool, 'check', 'metrics'], input=text, capture_output=True, text=True)
        wrong = [line for line in said.stderr.splitlines() if line and 'camelCase' not in line]  # modelName: dcgm-exporter's label
        check('promtool finds nothing wrong with the metrics', not wrong, wrong)
    for line in ('outboard_pool_servers{state="ready"} 2', 'outboard_pool_placement_total{result="granted",reason="none"} 1',
                 'outboard_pool_placement_total{result="refused",reason="capacity"} 1', 'outboard_pool_registry_usable 1', 'outboard_pool_placement_duration_seconds_count 1',
                 'outboard_pool_tenant_gpus{tenant="vision"} 1'):
        check(f'metrics: {line}', line + '\n' in text, text)
    names = set()
    for line in text.splitlines():
        if line.startswith('# TYPE '):
            _, _, name, kind = line.split()
            names |= {name} | ({name + suffix for suffix in ('_bucket', '_sum', '_count')} if kind == 'histogram' else set())
    return names


def expressions(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ('expr', 'query') and isinstance(inner, str):
                yield inner
            yield from expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner)


def deployed(names):
    rules = (SOURCE / 'deploy/prometheus/outboard.rules.yml').read_text()
    board = json.loads((SOURCE / 'deploy/grafana/outboard.json').read_text())
    in_rules = {n for line in rules.splitlines() if 'expr:' in line for n in NAMES.findall(line)}
    in_board = {n for text in expressions(board) for n in NAMES.findall(text)}
    check('metrics of the alert rules are exported', len(in_rules) > 8 and in_rules <= names, in_rules - names)
    check('metrics of the Grafana dashboard are exported', len(in_board) > 15 and in_board <= names, in_board - names)
    ids = [panel['id'] for panel in board['panels']]
    check('panels have different ids', len(ids) == len(set(ids)))
    documented = set(re.findall(r'`(outboard_pool_\w+)`', (SOURCE / 'docs/DASHBOARD.md').read_text()))
    base = {n for n in names if n.startswith('outboard_pool_') and not (n.endswith(('_bucket', '_sum', '_count')))}
    check('all metrics are documented', base == documented, base ^ documented)


def promtool(folder):
    tool = shutil.which('promtool')
    if not tool:
        print('no promtool: the rules were not checked')
        return
    rules = SOURCE / 'deploy/prometheus/outboard.rules.yml'
    for what, args in {'check rules': [rules], 'test rules': [SOURCE / 'deploy/prometheus/outboard.rules.test.yml'],
                       'check config': ['--syntax-only', SOURCE / 'deploy/prometheus/scrape.yml']}.items():
        done = subprocess.run([tool, *what.split(), *args], capture_output=True, text=True, cwd=folder)
        check(f'promtool {what}', done.returncode == 0, done.stdout + done.stderr)


def prometheus(folder, port, tokens):
    """A real Prometheus scrapes the balancer with a token and has the alert of the hot GPUs."""
    program = shutil.which('prometheus')
    if not program:
        print('no prometheus: nothing was scraped')
        return
    pathlib.Path(folder, 'token').write_text(tokens['look'])
    config = pathlib.Path(folder, 'prometheus.yml')
    config.write_text(f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{SOURCE / 'deploy/prometheus/outboard.rules.yml'}']\n"
                      f"scrape_configs: [{{job_name: outboard-balancer, authorization: {{credentials_file: '{folder}/token'}}, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n")
    listen = free_ports(1)[0]
    process = subprocess.Popen([program, f'--config.file={config}', f'--storage.tsdb.path={folder}/data', f'--web.listen-address=127.0.0.1:{listen}', '--log.level=error'])

    def api(path):
        with contextlib.suppress(OSError, ValueError), urllib.request.urlopen(f'http://127.0.0.1:{listen}/api/v1/{path}', timeout=10) as answer:
            return json.load(answer)['data']
        return None

    def scraped():
        got = api('query?query=outboard_pool_servers')
        return got and {r['metric']['state']: r['value'][1] for r in got['result']}.get('ready') == '2'

    def alerts():
        got = api('alerts')
        hot = [a for a in got['alerts'] if a['labels']['alertname'] == 'OutboardGpuHot'] if got else []
        return len(hot) == 2 and hot
    try:
        check('Prometheus scrapes the balancer', waiting.until(scraped))
        hot = waiting.until(alerts)
        check('and has an alert for each hot GPU', hot and {a['labels']['hostname'] for a in hot} == {'gpu-a', 'gpu-b'} and {a['state'] for a in hot} <= {'pending', 'firing'}, api('alerts'))
        groups = api('rules')['groups']
        check('no rule fails', all(rule['health'] == 'ok' for group in groups for rule in group['rules']), groups)
    finally:
        process.terminate()
        process.wait(waiting.LONG)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tokens = {key: token(folder, name, scope) for key, name, scope in (('admin', 'operator/desk', 'admin'), ('look', 'wall', 'look'), ('use', 'vision/maria', 'use'), ('other', 'physics', 'use'), ('leaver', 'leaver', 'look'), ('serve', 'rack', 'serve'))}
        with Balancer(BALANCER, 'b1', '--tokens', f'{folder}/tokens', '--http', 'http://127.0.0.1:0/') as balancer:
            port = int(balancer.line(r'dashboard and metrics at http://127\.0\.0\.1:(\d+)/').group(1))
            members = [Warm(name, balancer.url, gpus=3, token=tokens['serve']) for name in ('gpu-a', 'gpu-b')]
            documents(port, tokens, members)
            reservation, owner = sessions(port, balancer.url, tokens, members)
            deployed(exported(port, tokens))
            promtool(folder)
            prometheus(folder, port, tokens)
            commands(port, tokens, members, reservation, owner)
            moves(port, balancer.url, tokens, members)
            unreadable(folder, port, tokens)
            unknown(port, tokens, members.pop())
            last, leaver = Stream(port, tokens['look']), Stream(port, tokens['leaver'])
            wrong = [ask(port, '/api/v1/info', token='obt_00000000_' + '0' * 64) for _ in range(8)]
            check('guessing tokens gets slower', wrong[0].status == 401 and wrong[-1].status == 429 and 'too many wrong tokens from this address' in wrong[-1].error(), wrong[-1].body)
            stays_out(folder, port, tokens, leaver)
            for member in members:
                member.close()
        last.close()
        check('the balancer ended in order', balancer.process.returncode == 0, balancer.process.returncode)
    finish()


main()
