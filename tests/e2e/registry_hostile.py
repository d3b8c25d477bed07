# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The pool's registry against an etcd that answers what etcd does not: wrong shapes, numbers that are
none, huge answers, silence, revisions that go back, a watch without an end. No answer may end the
client, be taken for the truth or use much memory; afterwards the client works again.

    registry_hostile.py CLIENT
"""
import json
import re
import sys

sys.path.append(sys.path[0] + '/../lib')
import registry
import waiting
from fake_etcd import CLOSE, SILENT, FakeEtcd, coded
from outboard_test import check, finish

CLIENT = sys.argv[1]
RANGE, TXN, GRANT, KEEP = '/v3/kv/range', '/v3/kv/txn', '/v3/lease/grant', '/v3/lease/keepalive'
PATIENT = {'timeout_ms': 1000 * waiting.LONG}  # the answer decides, not the time it takes on a busy machine
MEMORY_MAX = 400  # MiB: an answer of 32 MiB, its JSON tree, and the rest

KV = {'key': coded(b'p/a'), 'value': coded(b'1'), 'mod_revision': '2'}
HEADER = {'revision': '5'}
SHAPES = [b'', b'x', b'[]', b'7', b'null', b'{}', b'{"header": 7}', b'{"header": {"revision": "x"}}', b'{"header": {"revision": "-1"}}', b'{"header": {"revision": -1}}', b'{"header": {"revision": 1.5}}',
          b'{"header": {"revision": "99999999999999999999"}}', b'{"header": {"revision": "0x10"}}', b'{"header": {"revision": " 5"}}', b'\xff\xfe', b'{"a":' * 5000, b'[' * 100000,
          b'{"error": {}}', b'{"error": 7, "code": "x"}', b'{"error": "x", "code": 1e99}', (500, b'<html>'), (200, b'<html>'), (404, b'{}'), (302, b''), CLOSE]
LISTS = [{'header': HEADER, 'kvs': kvs} for kvs in (7, {}, 'x', [7], [{}], [{**KV, 'key': 7}], [{**KV, 'key': '=='}], [{**KV, 'key': 'a'}], [{**KV, 'value': '!!!!'}], [{**KV, 'value': []}], [{**KV, 'mod_revision': 'x'}],
         [{**KV, 'mod_revision': '0'}], [{**KV, 'mod_revision': '6'}], [{**KV, 'key': coded(b'q/a')}], [KV, KV], [{**KV, 'lease': '-7'}], [{**KV, 'key': coded(b'p/b')}, KV])]


class Stand:
    """A fake etcd with a client that has begun well."""

    def __init__(self, **options):
        self.fake = FakeEtcd()
        self.client = registry.Client(CLIENT, self.fake.url, prefix='p/', **options)
        check('usable', self.client.is_usable(), [event.text for event in self.client.events])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        memory = int(re.search(r'VmHWM:\s+(\d+)', open(f'/proc/{self.client.process.pid}/status', encoding='ascii').read()).group(1)) >> 10
        check('memory is bounded', memory < MEMORY_MAX, f'{memory} MiB')
        check('the client ends as it should', self.client.close() == 0, self.client.log[-5:])
        self.fake.close()

    def well(self, what):
        """After the fake is sane again: the client works, and its state is the fake's."""
        self.fake.answers.clear()
        check(f'{what}: works again', waiting.until(lambda: self.client.put('well', what.replace(' ', '_')).error == 'NONE'))

        def same():
            with self.fake.lock:
                return self.client.state == {key[2:].decode(): row[0].decode() for key, row in self.fake.rows.items() if key != b'p/leader'}
        check(f'{what}: the state is right', waiting.until(same), self.client.state)


def fixed(body):
    return lambda request, sane: body


def timed(client, what, errors, *command):
    began = registry.now()
    answer = client.do(*command)
    check(f'{what}: {answer.error}', answer.error in errors and answer.time - began < waiting.AT_ONCE, (answer.error, answer.rest, answer.time - began))
    return answer


def ranges():
    with Stand(timeout_ms=300) as stand:
        for number, body in enumerate(SHAPES + [SILENT] + [json.dumps(one).encode() for one in LISTS]):
            stand.fake.answers[RANGE] = fixed(body)
            timed(stand.client, f'range {number} {str(body)[:60]}', ('PROTOCOL', 'TIMEOUT', 'CONNECT'), 'range', 'x')
        stand.well('ranges')
    with Stand(**PATIENT) as stand:
        stand.fake.answers[RANGE] = fixed(b'{"header": {"revision": "5"}, "x": "' + b'a' * (40 << 20) + b'"}')
        timed(stand.client, 'a huge list', ('PROTOCOL',), 'range', 'x')
        page = json.dumps({'header': HEADER, 'kvs': [KV], 'more': True}).encode()
        stand.fake.answers[RANGE] = fixed(page)
        timed(stand.client, 'pages that do not advance', ('PROTOCOL',), 'range', 'x')
        pages = iter(range(10**9))

        def endless(request, sane):
            first = next(pages) * 500
            kvs = [{**KV, 'key': coded(b'p/%012d' % (first + i)), 'mod_revision': '2'} for i in range(500)]
            return json.dumps({'header': HEADER, 'kvs': kvs, 'more': True}).encode()
        stand.fake.answers[RANGE] = endless
        answer = stand.client.do('range', 'x')
        check('pages without an end', answer.error in ('LIMIT', 'PROTOCOL'), answer.rest)
        stand.well('lists')


def transactions():
    with Stand(**PATIENT) as stand:
        broken = [{'header': HEADER, **rest} for rest in ({'succeeded': 'yes'}, {'succeeded': False}, {'responses': 7}, {'responses': []}, {'responses': [{}]}, {'responses': [{'response_range': {'kvs': [KV, KV]}}]},
                  {'responses': [{'response_range': {'kvs': [{**KV, 'key': coded(b'p/b')}]}}]}, {'responses': [{'response_range': {}}] * 2})]
        for number, body in enumerate(SHAPES + [json.dumps(one).encode() for one in broken]):
            stand.fake.answers[TXN] = fixed(body)
            timed(stand.client, f'transaction {number} {str(body)[:60]}', ('PROTOCOL', 'TIMEOUT'), 'cas', 'a', 7, 'x')
        stand.well('transactions')
        for code, text, error in ((14, 'etcdserver: no leader', 'REFUSED'), (14, 'etcdserver: request timed out', 'TIMEOUT'), (8, 'etcdserver: too many requests', 'REFUSED'),
                                  (2, 'context canceled', 'TIMEOUT'), (7, 'etcdserver: permission denied', 'REFUSED')):
            stand.fake.answers[TXN] = fixed((503, json.dumps({'error': text, 'message': text, 'code': code}).encode()))
            timed(stand.client, text, (error,), 'put', 'a', 'x')
        stand.well('refusals')


def sent_once():
    """A connection that was used before ends in place of an answer. libcurl repeats a request then; a
    transaction must not be."""
    with Stand(**PATIENT) as stand:
        for _ in range(5):
            check('connections are kept', stand.client.put('a', '1').error == 'NONE')
            stand.fake.answers[TXN] = fixed(CLOSE)
            before = stand.fake.requests.count(TXN)
            timed(stand.client, 'the connection ends', ('TIMEOUT',), 'put', 'a', '2')
            check('the transaction was sent once', stand.fake.requests.count(TXN) == before + 1, stand.fake.requests.count(TXN) - before)
            stand.well('once')


def watches():
    event = {'kv': {**KV, 'mod_revision': '3'}}
    lines = [b'x\n', b'\n', b'[]\n', b'{}\n', b'{"result": 7}\n', b'{"result": {}}\n', b'{"result": {"header": {"revision": "x"}}}\n', b'{"error": {}}\n', b'{"error": "x"}\n', b'{"error": {"grpc_code": 14, "message": "no leader"}}\n',
             *(json.dumps({'result': {'header': HEADER, **rest}}).encode() + b'\n' for rest in (
                 {'events': 7}, {'events': [7]}, {'events': [{}]}, {'events': [event]}, {'events': [{'kv': {**KV, 'mod_revision': '999999'}}, {'kv': {**KV, 'mod_revision': '999998'}}]}, {'created': True},
                 {'canceled': True}, {'canceled': True, 'compact_revision': '7'}, {'canceled': True, 'compact_revision': 'x'}, {'canceled': True, 'cancel_reason': 7},
                 {'events': [{'type': 7, 'kv': {**KV, 'mod_revision': '999999'}}]}, {'events': [{'kv': {**KV, 'key': '!', 'mod_revision': '999999'}}]}))]
    with Stand() as stand:
        for number, line in enumerate(lines):
            told = waiting.until(lambda line=line: stand.fake.tell(line))
            check(f'watch {number}: another one is opened', told and waiting.until(lambda told=told: stand.fake.replaced(told)), line)
            stand.well(f'watch {number}')
        told = waiting.until(lambda: stand.fake.tell(b'y'))
        for _ in range(40):
            stand.fake.tell(b'y' * (1 << 20))
        check('a message without an end: another watch is opened', told and waiting.until(lambda: stand.fake.replaced(told)))
        stand.well('a message without an end')
        stand.fake.end_streams()
        stand.well('the stream is ended')
        # Parts of one revision, and the stream ends between them.
        stand.fake.tell({'result': {'header': HEADER, 'fragment': True, 'events': [{'kv': {**KV, 'key': coded(b'p/part'), 'mod_revision': str(stand.fake.revision + 1)}}]}})
        check('a part is told', waiting.until(lambda: 'part' in stand.client.state))
        resets = stand.client.count('reset')
        stand.fake.end_streams()
        check('all keys are read again', waiting.until(lambda: stand.client.count('reset') > resets))
        stand.well('a part of a revision')


def silent_watch():
    with Stand(lease_s=2) as stand:
        stand.fake.deaf = True
        began = registry.now()
        stand.fake.put(b'p/unheard', b'1')
        check('a change that the watch does not tell', waiting.until(lambda: 'unheard' in stand.client.state))
        print(f'     after {registry.now() - began:.1f} s')
        check('is found at once', registry.now() - began < waiting.AT_ONCE)
        stand.fake.deaf = False
        stand.fake.created = False
        began = registry.now()
        stand.fake.end_streams()
        check('a watch that is not confirmed: unusable', stand.client.until('unusable', began))
        stand.fake.created = True
        check('usable again', stand.client.is_usable())
        stand.well('silent watch')
        # The revision goes back between two streams.
        resets = stand.client.count('reset')
        with stand.fake.lock:
            stand.fake.rows, stand.fake.revision = {b'p/old': (b'1', 2, 0)}, 2
        stand.fake.end_streams()
        check('a revision that goes back: all keys are read again', waiting.until(lambda: stand.client.count('reset') > resets))
        stand.well('back')


def leases():
    with Stand(lease_s=2) as stand:
        def gone(request, sane):
            return json.dumps({'result': {'header': HEADER, 'ID': request['ID']}}).encode()
        began = registry.now()
        stand.fake.answers[KEEP] = gone
        check('a keepalive without TTL: the lease is lost', stand.client.until('lease', began))
        stand.well('lost')
        for body in (b'{"result": 7}', b'{"result": {"ID": "x", "TTL": "2"}}', b'{"result": {"ID": "1", "TTL": "2"}}', b'{"result": {"ID": "1", "TTL": "99999999"}}', b'x', SILENT):
            for _ in range(5):  # a busy machine may make it unusable for another reason first
                began = registry.now()
                stand.fake.answers[KEEP] = fixed(body)
                check(f'a keepalive {str(body)[:50]}: unusable', stand.client.until('unusable', began))
                why = [event.text for event in stand.client.events if event.kind == 'unusable'][-1]
                stand.fake.answers.clear()
                check('usable again', stand.client.is_usable())
                if 'lease' in why:
                    break
            check('says why', 'lease' in why, why)
        for body in (b'{"ID": "0", "TTL": "2"}', b'{"ID": "-4", "TTL": "2"}', b'{"TTL": "2"}', b'{"ID": "7"}', b'{"ID": "7", "TTL": "x"}', b'[]'):
            stand.fake.answers[GRANT] = fixed(body)
            number = max(stand.fake.leases)
            stand.fake.leases.clear()
            began = registry.now()
            check(f'a grant {str(body)[:50]}: unusable', stand.client.until('unusable', began))
            timed(stand.client, 'a leased key without a lease', ('REFUSED',), 'lease', 'a', '1')
            stand.fake.answers.clear()
            check('a new one', stand.client.is_usable() and max(stand.fake.leases) > number)
        stand.well('leases')


def silence():
    """Nothing answers any more, and every call ends in time."""
    with Stand() as stand:
        began = registry.now()
        for path in (RANGE, TXN, GRANT, KEEP):
            stand.fake.answers[path] = fixed(SILENT)
        timed(stand.client, 'silence', ('TIMEOUT',), 'put', 'a', '1')
        timed(stand.client, 'silence', ('TIMEOUT', 'CONNECT'), 'range', 'x')
        event = stand.client.until('unusable', began)
        check('unusable soon', event.time - began <= waiting.AT_ONCE, event.time - began)
        stand.fake.answers.clear()
        back = registry.now()
        check('usable again soon', stand.client.is_usable() and [e for e in stand.client.events if e.kind == 'usable'][-1].time - back <= waiting.AT_ONCE)
        stand.well('silence')
        for path in (RANGE, TXN, GRANT, KEEP):
            stand.fake.answers[path] = fixed(SILENT)
        began = registry.now()
        check('closes without an answer', stand.client.close() == 0 and registry.now() - began < 5)
        stand.client = registry.Client(CLIENT, stand.fake.url, prefix='p/')


def main():
    parts = {part.__name__: part for part in (ranges, transactions, sent_once, watches, silent_watch, leases, silence)}
    for name in sys.argv[2:] or parts:
        print(f'--- {name}')
        parts[name]()
    finish()


main()
