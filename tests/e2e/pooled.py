# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tickets: which a server of a pool takes, which it refuses and with which words, what the processes
of one reservation share, and when a reservation ends.

    pooled.py OUTBOARD SERVER PROGRAM
"""
import os
import re
import sys
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import check, finish, Server
from pooling import CLAIMED, ENDED, CREDITED, VOID, VOIDED, Balancer, Key, Program, reservation_of

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
NAME, MIB = 'rack-1', 1 << 20


def program(server, ticket=None, **more):
    return Program(OUTBOARD, PROGRAM, server.url, ticket, **more)


def refused(what, server, ticket, words, **more):
    with program(server, ticket, **more) as p:
        answer = p.do('kernel 0')
        said = p.end()
        check(f'{what} is refused', answer != 'ok' and re.search(words, said), answer + said)


def taken(what, server, ticket):
    with program(server, ticket) as p:
        answer = p.do('kernel 0')
        check(f'{what} is taken', answer == 'ok', answer)
        check('and the program ends well', p.end() == '')


def good_and_bad(balancer, server):
    device = balancer.devices(NAME)[:1]

    def ticket(**changed):
        return balancer.ticket(NAME, changed.pop('devices', device), **changed)

    good = ticket()
    taken('a good ticket', server, good)
    check('the reservation has ended', balancer.beat(NAME, lambda _: balancer.state(NAME, reservation_of(good)) == ENDED))
    refused('a ticket whose reservation has ended', server, good, 'the reservation has ended')
    check('the end is credited', balancer.order(NAME, CREDITED, reservation_of(good)) == 1)
    check('and no longer reported', balancer.beat(NAME, lambda beat: all(h['id'] != reservation_of(good) for h in beat['held'])))
    refused('a ticket whose end was credited', server, good, 'the reservation has ended')
    refused('no ticket', server, None, 'belongs to a pool.*outboard run --pool')
    refused('a forged ticket', server, ticket(key=Key()), 'signed by a balancer that this server does not know')
    altered = bytearray(ticket())
    altered[-1] ^= 1
    refused('an altered ticket', server, bytes(altered), 'signature is wrong')
    refused('an expired ticket', server, ticket(expires=now() - 100, issued=now() - 200), 'the ticket expired 1[0-9][0-9] s ago')
    refused('a ticket from the future', server, ticket(issued=now() + 100, expires=now() + 160), 'in the future.*this server.s clock is behind')
    refused('a ticket that is valid for too long', server, ticket(expires=now() + 100000), 'valid for longer than')
    refused('a ticket for another server', server, ticket(server='rack-2'), 'for server rack-2, and this is rack-1')
    refused('a ticket for another incarnation', server, ticket(incarnation=7), 'restarted since the ticket was made')
    refused('a ticket for an unknown device', server, ticket(devices=[os.urandom(16)]), 'a device that this server does not have')
    refused('a ticket that names a device twice', server, ticket(devices=device * 2), 'or one twice')
    refused('a ticket for too much memory', server, ticket(memory=1 << 60), 'reservations of device 0 would be .* together')
    refused('what is no ticket', server, b'x' * 100, 'not a ticket')
    refused('an odd text', server, None, 'hexadecimal', env={'OUTBOARD_TICKET': server.url + ' 123'})
    late = ticket(expires=now() - 20, issued=now() - 80)
    taken('a ticket within the tolerance of the clocks', server, late)
    lost = ticket()
    check('a ticket is made void in time', balancer.order(NAME, VOID, reservation_of(lost)) == VOIDED)
    refused('a void ticket', server, lost, 'taken the reservation back')
    check('the void one is reported', balancer.state(NAME, reservation_of(lost)) == VOIDED)


def now():
    return int(time.time())


def shared(balancer, server):
    """Two processes of one reservation have its memory together, to the byte."""
    device, size = balancer.devices(NAME)[:1], 64 * MIB
    ticket = balancer.ticket(NAME, device, memory=size)
    with program(server, ticket) as a, program(server, ticket) as b:
        check('the devices are as large as the reservation', a.do('info 0').split()[1] == str(size), a.do('info 0'))
        check('one takes a half', a.do(f'alloc 0 {32 * MIB}') == '0')
        check('the other sees what is left', int(b.do('info 0').split()[0]) <= 32 * MIB, b.do('info 0'))
        check('it cannot take more than that', b.do(f'alloc 0 {33 * MIB}') == '2')
        left = int(b.do('info 0').split()[0])
        check('it can take all of that', b.do(f'alloc 0 {left}') == '0', left)
        check('now neither gets a byte more', a.do('alloc 0 4194304') == '2' and b.do('alloc 0 4194304') == '2')
        check('both are in one reservation', balancer.beat(NAME, lambda _: (balancer.held(NAME, reservation_of(ticket)) or {}).get('sessions') == 2))
        b.kill()
        check('one is left', balancer.beat(NAME, lambda _: (balancer.held(NAME, reservation_of(ticket)) or {}).get('sessions') == 1))
        check('what a killed process had is free again', waiting.until(lambda: a.do(f'alloc 0 {left}') == '0', waiting.AT_ONCE))
        other = balancer.ticket(NAME, device, id=reservation_of(ticket), memory=2 * size)
        refused('another ticket of the same reservation', server, other, 'began with another ticket')
    check('it ends', balancer.beat(NAME, lambda _: balancer.state(NAME, reservation_of(ticket)) == ENDED))


def lingers(balancer, server):
    device = balancer.devices(NAME)[:1]
    ticket = balancer.ticket(NAME, device, linger=2)
    id = reservation_of(ticket)
    taken('a ticket with a linger time', server, ticket)
    check('the reservation lives on without a session', balancer.beat(NAME, lambda _: (balancer.held(NAME, id) or {}).get('sessions') == 0) and
          balancer.state(NAME, id) == CLAIMED)
    taken('a second program with it', server, ticket)
    check('it ends when the time is over', balancer.beat(NAME, lambda _: balancer.state(NAME, id) == ENDED))
    exclusive = balancer.ticket(NAME, device, exclusive=1)
    with program(server, exclusive) as a:
        check('an exclusive reservation is taken', a.do('kernel 0') == 'ok')
        refused('a second one of the same device', server, balancer.ticket(NAME, device), 'one of the two wants it alone')
    balancer.beat(NAME, lambda _: balancer.state(NAME, reservation_of(exclusive)) == ENDED)
    low = balancer.ticket(NAME, device, priority=1, share=250000)
    with program(server, low) as a:
        a.do('kernel 0')
        found = balancer.beat(NAME, lambda beat: any(s.get('priority') == 0 and s.get('share') == 250000 for s in beat['load'].get('listed', [])))
        check('priority and share are those of the ticket', found, balancer.last(NAME)['load'])


def skewed():
    """A balancer whose clock is wrong: the text says so."""
    balancer = Balancer(skew=500)
    with Server(SERVER, '--driver', 'soft', '--pool', balancer.url, '--pool-name', NAME) as server:
        device = balancer.devices(NAME)[:1]
        refused('a ticket of a balancer that is ahead', server, balancer.ticket(NAME, device), 'balancer.s clock is (499|500|501) s ahead')
    balancer.close()
    balancer = Balancer(skew=-500)
    with Server(SERVER, '--driver', 'soft', '--pool', balancer.url, '--pool-name', NAME) as server:
        device = balancer.devices(NAME)[:1]
        refused('a ticket of a balancer that is behind', server, balancer.ticket(NAME, device), 'balancer.s clock is (499|500|501) s behind')
        check('the server says so too', server.line('the clock of balancer b is (499|500|501) s behind'))
    balancer.close()


def without_pool():
    balancer = Balancer()
    balancer.members[NAME] = {'incarnation': 1}
    with Server(SERVER, '--driver', 'soft') as server:
        refused('a ticket at a server without a pool', server, balancer.ticket(NAME, [bytes(16)]), 'does not belong to a pool')
    with Server(SERVER, '--driver', 'soft', '--pool', balancer.url, '--pool-direct') as server:
        taken('no ticket, with --pool-direct', server, None)
    balancer.close()
    wrong = Server(SERVER, '--driver', 'soft', '--pool', 'tcp://127.0.0.1:1', '--insecure', listen='tcp://0.0.0.0:0', must_start=False)
    check('an address of all interfaces needs --advertise', wrong.url is None and wrong.said('name the server\'s address with --advertise'), wrong.lines)


BALANCER = Balancer()
with Server(SERVER, '--driver', 'soft', '--pool', BALANCER.url, '--pool-name', NAME, '--labels', 'zone=a,rack=3') as SERVED:
    check('it registers', BALANCER.beat(NAME) and BALANCER.members[NAME]['urls'] == SERVED.url and BALANCER.members[NAME]['labels'] == 'zone=a,rack=3',
          BALANCER.members)
    check('heartbeats are numbered', BALANCER.beat(NAME, lambda beat: beat['number'] >= 3) and BALANCER.beats[NAME][0]['number'] == 1)
    check('it is healthy', BALANCER.last(NAME)['healthy'] == 1, BALANCER.last(NAME))
    good_and_bad(BALANCER, SERVED)
    shared(BALANCER, SERVED)
    lingers(BALANCER, SERVED)
BALANCER.close()
skewed()
without_pool()
finish()
