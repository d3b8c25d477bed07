# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Requests at a balancer while servers have registered whose devices are not known, or never will be.

    pool_joining.py BALANCER
"""
import itertools
import select
import sys
import threading

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import check, finish
from pool_peers import CAPACITY, GRANT, LATER, QUEUED, REFUSED, Balancer, Client, Member, asked, looked

BALANCER, = sys.argv[1:]
STARTED = 11  # seconds: a balancer that has run for so long knows its servers


def refused(answer, code, words=''):
    return answer and answer['type'] == REFUSED and answer['code'] == code and words in answer['text']


def bare(name, url, **more):
    """A server without devices that is registered."""
    member = Member(name, url, gpus=0, **more)
    check(f'{name} is registered', waiting.until(lambda: url in member.registered, waiting.AT_ONCE))
    return member


def devices_come():
    """A server that has registered and has not named its devices yet."""
    with Balancer(BALANCER, 'one') as b, Member('gpu1', b.url, beats=False) as m:
        check('it is registered', waiting.until(lambda: b.url in m.registered, waiting.AT_ONCE))
        with Client(b.url) as c:
            c.ask()
            check('a request that does not wait is not refused for that', not waiting.until(lambda: select.select([c.sock], [], [], 0)[0], 1))
            m.beating = True
            check('and is granted when it has', c.answer()['type'] == GRANT)


def unwell():
    """A server whose driver does not load has no devices to wait for."""
    with Balancer(BALANCER, 'one') as b, Member('gpu1', b.url) as m, bare('gpu2', b.url) as sick:
        sick.healthy = 0
        check('there are both', m.ready(b.url) and waiting.until(lambda: [e for e in looked(b.url, 'events')['events'] if (e['kind'], e['subject']) == ('unwell', 'gpu2')]))
        check('too much is never', refused(asked(b.url, gpus=2), CAPACITY))
        check('the balancer knows its servers', waiting.until(lambda: looked(b.url, 'info')['info']['uptime_s'] >= STARTED))
        check('also for a request that may wait', refused(asked(b.url, gpus=2, wait=600), CAPACITY))


def again_and_again():
    """Servers that register again and again do not keep requests from their answers."""
    done = threading.Event()
    with Balancer(BALANCER, 'one') as b, bare('gpu1', b.url) as one, bare('gpu2', b.url) as two:
        def cut():
            """One after the other, so that one of them is there at any time."""
            for member in itertools.cycle((one, two)):
                before = member.links.get(b.url)
                member.cut()
                waiting.until(lambda member=member, before=before: member.links.get(b.url) not in (None, before))
                if done.is_set():
                    return
        thread = threading.Thread(target=cut)
        thread.start()
        answer = asked(b.url)
        done.set()
        thread.join()
        check('the answer says what is not known', refused(answer, LATER, 'devices of a server that has registered are not known yet'), answer)


def never():
    """What waits for the devices of a server that has none is refused at last. What others may fulfil
    waits on."""
    with Balancer(BALANCER, 'one') as b, bare('gpu1', b.url), Client(b.url) as c, Client(b.url) as d:
        c.ask(gpus=2, wait=600)
        check('it waits at first', c.receive()['type'] == QUEUED)
        with Member('gpu2', b.url) as other:
            other.ready(b.url)
            got = asked(b.url, exclusive=1)
            check('the only device is given away', got['type'] == GRANT, got)
            other.claim(got['id'])
            d.ask(wait=600)
            check('another request waits for it', d.receive()['type'] == QUEUED)
            answer = c.answer()
            check('the first one is refused for ever', refused(answer, CAPACITY), answer)
            check('the other one waits on', len(looked(b.url, 'queue')['queue']) == 1, looked(b.url, 'queue'))


for test in devices_come, unwell, again_and_again, never:
    test()
finish()
