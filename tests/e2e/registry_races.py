# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Several processes reserve and release parts of servers at random in one etcd of three members
(tests/bench/races). No revision may have a ledger above its capacity or unlike the sum of its reservations.

    registry_races.py RACES [--count N] [--latency N] [--faults] [--write FILE]

--count: transactions that succeed, of all processes together; --latency: transactions that are timed one
after another; 0: none. --faults: the leader is killed in the middle, and a process. --write: the results as
rows of docs/results/registry.json.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import time

sys.path.append(sys.path[0] + '/../lib')
import etcd
import waiting
from outboard_test import ENV, check, finish

SERVERS, CAPACITY, SLOTS = 48, 40, 12
PLACE_P50_MS, PLACE_P99_MS = 2.0, 10.0  # the targets for one placement-like transaction


def races(command, url, prefix, count, slots, seed):
    return subprocess.Popen([RACES, command, url, prefix, str(SERVERS), str(count), str(slots), str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)


def result(process, what):
    try:
        out, err = process.communicate(timeout=1800)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    check(f'{what} ends as it should', process.returncode == 0, err[-2000:])
    return json.loads(out) if process.returncode == 0 else {}


def final_sums(cluster, prefix):
    """Reads the registry without the program: ledgers, and the sums of the reservations."""
    ledgers, sums = [0] * SERVERS, [0] * SERVERS
    lines = cluster.ctl('get', prefix, '--prefix').split('\n')
    for key, value in zip(lines[::2], lines[1::2]):
        kind, _, name = key[len(prefix):].partition('/')
        if kind == 'ledger':
            ledgers[int(name)] = int(value.split()[0])
        elif kind == 'reservations':
            for part in value.split():
                server, _, amount = part.partition(':')
                sums[int(server)] += int(amount)
    return ledgers, sums


def run(cluster, processes, count, faults):
    prefix = f'races{processes}{"f" if faults else ""}/'
    audit = races('audit', cluster.url, prefix, 0, 1, 0)
    audit.stderr.readline()  # it follows
    began = time.monotonic()
    each = count // processes
    workers = [races('worker', cluster.url, prefix, each, SLOTS, seed + 1) for seed in range(processes)]
    if faults:
        waiting.until(lambda: int(cluster.revision()) > count // 4)
        leader = cluster.leader()
        cluster.kill(leader)
        waiting.let_pass(1, 'transactions of unknown outcome need time without a leader')
        workers.pop().kill()
        cluster.start(leader)
    done = [result(worker, f'worker {i} of {processes}') for i, worker in enumerate(workers)]
    seconds = time.monotonic() - began
    ledgers, sums = final_sums(cluster, prefix)
    cluster.ctl('put', prefix + 'operator/end', '1')
    audit = result(audit, 'the auditor')
    total = {key: sum(one[key] for one in done) for key in ('placed', 'released', 'conflicts', 'unknown', 'refused', 'full')}
    made = total['placed'] + total['released']
    print(f'{processes} processes: {made} transactions in {seconds:.1f} s, {total}')
    print(f'     auditor: {audit}')
    check('all transactions were made', made >= each * len(workers))
    check('the auditor saw each revision', audit['revisions'] >= made and audit['resets'] == 1 and audit['broken'] == 0, audit)
    check('no ledger was ever above its capacity', audit['oversubscribed'] == 0 and max(ledgers) <= CAPACITY, audit)
    check('each ledger was the sum of its reservations at each revision', audit['unequal'] == 0, audit)
    check('and is it in the end, as etcdctl reads them', ledgers == sums, (ledgers, sums))
    check('the ledgers were full at times', audit['most'] > CAPACITY * 9 // 10, audit['most'])
    check('processes were in each other\'s way', total['conflicts'] > 0)
    return {**total, 'wrong': audit['oversubscribed'] + audit['unequal'], 'processes': processes, 'made': made, 'seconds': seconds, **{key: max(one[key] for one in done) for key in done[0] if key.startswith('each_')}}


def latency(cluster, count):
    """One at a time, through the leader and through another member: the registry beside the bare call."""
    leader = cluster.leader()
    for where, member in (('the leader', leader), ('another member', (leader + 1) % cluster.n)):
        got = result(races('latency', 'etcd:' + cluster.clients[member], f'latency{member}/', count, 1, 1), f'latency, {where}')
        print(f'latency through {where}: {got}')
        check('none failed', got['failed'] == 0)
        yield {**got, 'where': where}


def rows(runs, latencies):
    common = {'date': datetime.date.today().isoformat(), 'machine': 'M5', 'command': ' '.join(['tests/e2e/registry_races.py', *sys.argv[1:]])}
    for one in runs:
        who = f'{one["processes"]} balancers'
        yield {'metric': f'{who}: revisions with a ledger above its capacity, or unlike the sum of its reservations', 'target': '0', 'measured': str(one['wrong']), 'unit': f'of {one["made"]:,}', 'met': one['wrong'] == 0, **common,
               'note': f'{one["conflicts"]:,} conflicts; {one["unknown"]} of unknown outcome'}
        yield {'metric': f'{who} with {SLOTS} requests at a time each: transactions', 'target': '', 'measured': f'{one["made"] / one["seconds"]:.0f}', 'unit': '/s', 'met': None, **common,
               'note': f'{one["conflicts"] / (one["made"] + one["conflicts"]) * 100:.0f} % of all attempts were conflicts'}
    for got in latencies:
        for name, quantile, target in (('median', 'p50', PLACE_P50_MS), ('99th percentile', 'p99', PLACE_P99_MS)):
            measured, bare = got[f'registry_{quantile}_ms'], got[f'bare_{quantile}_ms']
            yield {'metric': f'transaction of a placement (3 comparisons, 3 puts) through {got["where"]}, {name}', 'target': f'<= {target:g}', 'measured': f'{measured:.2f}', 'unit': 'ms', 'met': measured <= target,
                   **common, 'note': f'the same bytes by curl over a kept connection, in turn: {bare:.2f} ms'}


def write(path, new):
    """Replaces the rows of the same metric; the others stay."""
    subject = json.loads(path.read_text(encoding='utf-8'))
    new = {row['metric']: row for row in new}
    subject['results'] = [new.pop(row['metric'], row) for row in subject['results']] + list(new.values())
    path.write_text(json.dumps(subject, indent=2, ensure_ascii=False) + '\n', encoding='utf-8')


def main():
    etcd.needed()
    with etcd.Cluster(3) as cluster:
        latencies = list(latency(cluster, OPTIONS.latency)) if OPTIONS.latency else []
        runs = [run(cluster, processes, OPTIONS.count, False) for processes in (2, 3)] if OPTIONS.count else []
        if OPTIONS.faults:
            run(cluster, 3, OPTIONS.count, True)
    if OPTIONS.write:
        write(pathlib.Path(OPTIONS.write), rows(runs, latencies))
    finish()


PARSER = argparse.ArgumentParser()
PARSER.add_argument('races')
PARSER.add_argument('--count', type=int, default=1500)
PARSER.add_argument('--latency', type=int, default=200)
PARSER.add_argument('--faults', action='store_true')
PARSER.add_argument('--write')
OPTIONS = PARSER.parse_args()
RACES = OPTIONS.races
main()
