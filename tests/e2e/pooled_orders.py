# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Orders of balancers; several balancers, and what happens when they, the server or the process that
speaks with them die.

    pooled_orders.py OUTBOARD SERVER PROGRAM [SENSORS]

SENSORS: tests/e2e/nvml_sensors.c, a management library that reports errors of the hardware.
"""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request

sys.path.append(sys.path[0] + '/../lib')
import waiting
from outboard_test import ENV, Server, arguments, check, children, finish
from pooling import CLAIMED, CORDON, CREDITED, DRAIN, END, ENDED, KEEP, KILL, KILL_SESSION, VOID, VOIDED, Balancer, Key, Program, reservation_of

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
SENSORS = sys.argv[4] if len(sys.argv) > 4 else None
NAME = 'rack-1'
ENV['OUTBOARD_SOFT_UUID'] = 'GPU-30302d6f-7574-626f-6172-642d736f6674'  # as nvml_sensors.c says


def serve(urls, *options, **more):
    return Server(SERVER, '--driver', 'soft', '--pool', urls, '--pool-name', NAME, *options, **more)


def program(server, ticket=None, **more):
    return Program(OUTBOARD, PROGRAM, server.url, ticket, **more)


def members(server):
    """The process ids of the member processes."""
    return [pid for pid in children(server.process.pid) if b'--member' in arguments(pid)]


def refused(server, ticket, words):
    with program(server, ticket) as p:
        answer = p.do('kernel 0')
        said = p.end()
        return answer != 'ok' and words in said or answer + said


def kill(balancer, server):
    device = balancer.devices(NAME)[:1]
    ticket = balancer.ticket(NAME, device, linger=600)
    with program(server, ticket) as a, program(server, ticket) as b:
        check('two processes run', a.do('kernel 0') == 'ok' and b.do('kernel 0') == 'ok')
        check('a claimed ticket is not void', balancer.order(NAME, VOID, reservation_of(ticket)) == CLAIMED)
        check('a claimed one is not credited', balancer.order(NAME, CREDITED, reservation_of(ticket)) == 0)
        check('the reservation is killed', balancer.order(NAME, KILL, reservation_of(ticket), text='too loud') == 1)
        for p in a, b:
            ends, said = waiting.until(lambda p=p: p.do('kernel 0') != 'ok'), p.end()
            check('its program is told why', ends and 'ended by the pool\'s operator: too loud' in said, said)
    check('it ends without lingering', balancer.beat(NAME, lambda _: balancer.state(NAME, reservation_of(ticket)) == ENDED))
    check('no further program gets in, nor asks the pool for more', refused(server, ticket, 'was ended by the pool') is True)
    ticket = balancer.ticket(NAME, device)
    check('one that no program has used is ended, too', balancer.order(NAME, KILL, reservation_of(ticket)) == 1 and balancer.beat(NAME, lambda _: balancer.state(NAME, reservation_of(ticket)) == VOIDED))
    check('its program is told, and asks for no other', refused(server, ticket, 'was ended by the pool') is True)
    ticket = balancer.ticket(NAME, device)
    with program(server, ticket) as a, program(server, ticket) as b:
        a.do('kernel 0'), b.do('kernel 0')
        session = next(s['id'] for s in balancer.beat(NAME, lambda beat: len(beat['load'].get('listed', [])) == 2)['load']['listed'])
        check('one session is killed', balancer.order(NAME, KILL_SESSION, number=session) == 1)
        check('it ends and the other goes on', waiting.until(lambda: sorted([a.do('kernel 0') == 'ok', b.do('kernel 0') == 'ok']) == [False, True]))
        check('an unknown one cannot be killed', balancer.order(NAME, KILL_SESSION, number=12345) == 0)


def keep(balancer, server):
    """A reservation is kept for longer than its linger time, for a program that is started again."""
    def later():
        """A heartbeat after a linger time of 1 s."""
        known = balancer.last(NAME)['number']
        return balancer.beat(NAME, lambda beat: beat['number'] >= known + 5)
    device = balancer.devices(NAME)[:1]
    kept, other = (balancer.ticket(NAME, device, linger=1) for _ in range(2))
    check('one that was not used is not kept', balancer.order(NAME, KEEP, reservation_of(kept), number=600) == 0)
    with program(server, kept) as a, program(server, other) as b:
        check('two programs run', a.do('kernel 0') == 'ok' and b.do('kernel 0') == 'ok')
    check('one is kept', balancer.order(NAME, KEEP, reservation_of(kept), number=600) == 1)
    check('the other one ends', balancer.beat(NAME, lambda _: balancer.state(NAME, reservation_of(other)) == ENDED))
    check('the one that is kept does not', later() and balancer.state(NAME, reservation_of(kept)) == CLAIMED)
    with program(server, kept) as a:
        check('its program may begin again', a.do('kernel 0') == 'ok')
    check('it can be ended all the same', balancer.order(NAME, KILL, reservation_of(kept)) == 1 and balancer.beat(NAME, lambda _: balancer.state(NAME, reservation_of(kept)) == ENDED))
    check('and is not kept then', balancer.order(NAME, KEEP, reservation_of(kept), number=600) == 0)


def over(balancer, server):
    """A program has ended: its reservation does not linger."""
    device = balancer.devices(NAME)[:1]
    ticket = balancer.ticket(NAME, device, linger=600)
    reservation = reservation_of(ticket)
    with program(server, ticket) as a:
        check('a program runs', a.do('kernel 0') == 'ok')
        check('its reservation is to end', balancer.order(NAME, END, reservation) == CLAIMED)
        check('its session goes on', a.do('kernel 0') == 'ok' and balancer.state(NAME, reservation) == CLAIMED)
        check('no other program gets in', refused(server, ticket, 'the reservation has ended') is True)
    check('it ends with its session', balancer.beat(NAME, lambda _: balancer.state(NAME, reservation) == ENDED))
    ticket = balancer.ticket(NAME, device, linger=600)
    with program(server, ticket) as a:
        a.do('kernel 0')
    balancer.beat(NAME, lambda _: (held := balancer.held(NAME, reservation_of(ticket))) and held['sessions'] == 0)
    check('one that lingers ends at once', balancer.order(NAME, END, reservation_of(ticket)) == ENDED)
    check('one that was not used is void', balancer.order(NAME, END, reservation_of(balancer.ticket(NAME, device))) == VOIDED)


def cordon(balancer, server):
    device = balancer.devices(NAME)[:1]
    ticket = balancer.ticket(NAME, device)
    with program(server, ticket) as a:
        a.do('kernel 0')
        check('the server is cordoned', balancer.order(NAME, CORDON, number=1) == 1)
        check('no new reservation is taken', refused(server, balancer.ticket(NAME, device), 'cordoned') is True)
        with program(server, ticket) as b:
            check('a further process of an old one is', b.do('kernel 0') == 'ok')
        check('it is uncordoned', balancer.order(NAME, CORDON, number=0) == 1)
        with program(server, balancer.ticket(NAME, device)) as b:
            check('new ones are taken again', b.do('kernel 0') == 'ok')
        check('a drain begins', balancer.order(NAME, DRAIN, number=600000) == 1)
        check('the heartbeat says so', balancer.beat(NAME, lambda beat: beat['load']['draining'] == 1))
        check('no new reservation is taken', refused(server, balancer.ticket(NAME, device), 'drained') is True)
        balancer.order(NAME, CORDON, number=0)
        check('uncordoning cancels it', balancer.last(NAME)['number'] and waiting.until(lambda: balancer.last(NAME)['load']['draining'] == 0))
        check('the session lives', a.do('kernel 0') == 'ok')
        balancer.order(NAME, DRAIN, number=600000)
        check('cordoning calls it off, too', balancer.order(NAME, CORDON, number=1) == 1 and balancer.beat(NAME, lambda beat: beat['load']['draining'] == 0))
        check('but the server stays closed', refused(server, balancer.ticket(NAME, device), 'cordoned') is True)
        balancer.order(NAME, DRAIN, number=600000)
        balancer.order(NAME, DRAIN, number=100)
        check('at the end of a drain it is ended', waiting.until(lambda: a.do('kernel 0') != 'ok') and 'drained by its operator' in a.end())
    balancer.order(NAME, CORDON, number=0)
    with program(server, balancer.ticket(NAME, device)) as a:
        check('then the server takes new ones', a.do('kernel 0') == 'ok')


def credited(balancer):
    """Credits what the server holds; what is claimed stays. Returns whether it holds nothing more."""
    held = balancer.last(NAME)['held']
    for reservation in held:
        balancer.order(NAME, CREDITED, reservation['id'])
    return held == []


def deaths(first, second, server):
    """One balancer dies and comes back; the member processes die; every balancer is gone."""
    device = first.devices(NAME)[:1]
    old = first.ticket(NAME, device)
    with program(server, second.ticket(NAME, device)) as a:
        check('a ticket of the second balancer is taken', a.do('kernel 0') == 'ok')
        check('both balancers hear of it', all(b.beat(NAME, lambda beat: len(beat['held']) == 1 and beat['held'][0]['state'] == CLAIMED) for b in (first, second)))
        key, port = first.key, first.port
        first.close()
        check('the server notices', server.line('not registered at balancer tcp://127.0.0.1:%d' % port))
        check('the session lives', a.do('kernel 0') == 'ok')
        with program(server, old) as b:
            check('a ticket of the dead balancer is taken', b.do('kernel 0') == 'ok')
        again = Balancer('b', key, port)
        check('the balancer comes back and hears of all', again.beat(NAME, lambda beat: len(beat['held']) >= 1), again.beats)
        check('the numbers begin anew', again.beats[NAME][0]['number'] == 1)
        check('no heartbeat is older than the connection', all(any(h['sessions'] for h in beat['held']) for beat in again.beats[NAME]), again.beats[NAME])
        processes = members(server)
        check('there is one process for each balancer', len(processes) == 2, processes)
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
        check('killed ones are restarted', waiting.until(lambda: len(members(server)) == 2 and not set(members(server)) & set(processes)))
        check('and register again', waiting.until(lambda: all(NAME in b.connections for b in (again, second))) and a.do('kernel 0') == 'ok')
        again.close()
        second.close()
        check('without a balancer the session lives', a.do('kernel 0') == 'ok')
        with program(server, second.ticket(NAME, device)) as b:
            check('and tickets are good', b.do('kernel 0') == 'ok')


def restart(balancer):
    with serve(balancer.url) as server:
        device = balancer.devices(NAME)[:1]
        first = balancer.members[NAME]['incarnation']
        ticket = balancer.ticket(NAME, device)
        with program(server, ticket) as a:
            a.do('kernel 0')
            server.process.kill()
            server.process.wait()
            check('the session is gone', waiting.until(lambda: a.do('kernel 0') != 'ok'))
    del balancer.beats[NAME]
    with serve(balancer.url) as server:
        check('a restarted server registers with another incarnation', balancer.beat(NAME) and balancer.members[NAME]['incarnation'] not in (0, first))
        check('nothing is held', balancer.last(NAME)['held'] == [])
        # Its first heartbeats may come before it knows its devices, and no balancer makes a ticket then.
        check('it has the device again', balancer.devices(NAME)[:1] == device)
        check('old tickets are refused', refused(server, ticket, 'restarted since') is True)
        with program(server, balancer.ticket(NAME, device)) as a:
            check('a new ticket is taken', a.do('kernel 0') == 'ok', a.first)
            server.process.send_signal(signal.SIGTERM)
            check('at SIGTERM the heartbeat says draining', balancer.beat(NAME, lambda beat: beat['load']['draining'] == 1))
            check('the session may end itself', a.do('kernel 0') == 'ok', server.lines[-8:])
        server.process.wait(waiting.LONG)
        check('the last heartbeat reports the end', waiting.until(lambda: all(h['state'] == ENDED for h in balancer.last(NAME)['held'])))


def address_of_host():
    """One that is not a loopback address; None if the machine has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, contextlib.suppress(OSError):
        sock.connect(('192.0.2.1', 9))  # sends nothing
        address = sock.getsockname()[0]
        return None if address.startswith('127.') else address


def registration():
    balancer = Balancer(refuse='this token may not serve')
    with serve(balancer.url) as server:
        check('a refusal is logged', server.line('the balancer refuses this server: this token may not serve'))
    balancer.close()
    balancer = Balancer(cordoned=1)
    with tempfile.TemporaryDirectory() as folder:
        token = os.path.join(folder, 'token')
        with open(token, 'w', encoding='ascii') as f:
            f.write('obt_12345678_secret\n')
        with serve(balancer.url, '--pool-token-file', token, '--advertise', 'tls://gpu-7:14800,tcp://gpu-7:14801', '--metrics', 'tcp://127.0.0.1:0') as server:
            device = balancer.devices(NAME)[:1]
            joined = balancer.members[NAME]
            check('the token is shown', joined['token'] == 'obt_12345678_secret')
            check('the advertised addresses are', joined['urls'] == 'tls://gpu-7:14800 tcp://gpu-7:14801', joined['urls'])
            check('the server is cordoned from the start', refused(server, balancer.ticket(NAME, device), 'cordoned') is True)
            refused(server, balancer.ticket(NAME, device, key=Key()), '')
            check('the token is in no log and no command line', not server.said('obt_12345678') and
                  all(b'obt_' not in arguments(pid) for pid in children(server.process.pid)))
            text = urllib.request.urlopen(server.line(r'metrics on (http\S+)|(http://\S+/metrics)').group(0).split()[-1], timeout=waiting.LONG).read().decode()
            check('refusals are counted by reason', 'outboard_tickets_refused_total{reason="closed"} 1' in text and
                  'outboard_tickets_refused_total{reason="signature"} 1' in text, text)
            check('reservations are counted by state', 'outboard_reservations{state="claimed"} 0' in text, text)
    balancer.close()
    for options, words in ((['--pool', 'http://x'], 'tcp://'), (['--pool', ','], 'names no balancer'), (['--labels', 'a=b'], 'belong to --pool'),
                           (['--pool', 'tcp://127.0.0.1:1', '--pool-token-file', '/nonexistent'], 'pool-token-file')):
        wrong = Server(SERVER, '--driver', 'null', *options, must_start=False)
        if wrong.url:
            check(f'{options} is reported', wrong.line(words), wrong.lines)
            wrong.stop()
        else:
            check(f'{options} is reported', wrong.said(words), wrong.lines)
    elsewhere = ['--pool', f'{balancer.url},tcp://balancer.example:1', '--pool-name', NAME]
    for more in [], ['--listen', 'unix:' + tempfile.gettempdir() + '/pooled_orders.sock']:
        wrong = Server(SERVER, '--driver', 'soft', *elsewhere, *more, must_start=False)
        check('a loopback address is not given to a balancer of another machine', wrong.url is None and
              wrong.said('only this machine reaches, and --pool names a balancer by an address that is not a loopback one; give an address that others reach with --listen or --advertise'), wrong.lines)
    reach = address_of_host()
    if reach:
        balancer = Balancer()
        with Server(SERVER, '--driver', 'null', '--insecure', '--pool', balancer.url, '--pool-name', NAME, '--listen', f'tcp://{reach}:0') as both:
            check('a loopback address is not given if there is another one', waiting.until(lambda: NAME in balancer.members) and re.fullmatch(rf'tcp://{re.escape(reach)}:\d+', balancer.members[NAME]['urls']) and both.url,
                  balancer.members)
        balancer.close()
    balancer = Balancer()
    with Server(SERVER, '--driver', 'soft', '--pool', f'{balancer.url},tcp://balancer.example:1', '--pool-name', NAME, '--advertise', 'tcp://gpu-7:14800'):
        check('unless it is another one that is advertised', balancer.beat(NAME) and balancer.members[NAME]['urls'] == 'tcp://gpu-7:14800')
    balancer.close()


def over_tls():
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ('cert.pem', 'key.pem')]
        done = subprocess.run([OUTBOARD, 'cert', '--cert', files[0], '--key', files[1], '--names', '127.0.0.1'], capture_output=True, text=True, timeout=waiting.LONG)
        pin = re.search(r'\b[0-9a-f]{64}\b', done.stdout + done.stderr)
        check('a certificate is made', done.returncode == 0 and pin, done.stdout + done.stderr)
        balancer = Balancer(certificate=files)
        with serve(balancer.url, env={'OUTBOARD_TLS_PIN': pin.group()}) as server:
            with program(server, balancer.ticket(NAME, balancer.devices(NAME))) as p:
                check('a balancer is spoken to over TLS', p.do('kernel 0') == 'ok')
            check('orders come too', balancer.order(NAME, CORDON, number=1) == 1)
        trust = {'OUTBOARD_TLS_PIN': pin.group()}
        with serve(balancer.url, '--tls-cert', files[0], '--tls-key', files[1], '--advertise', 'tls://gpu-7:14800', listen='tls://0.0.0.0:0', env=trust) as server:
            check('the pin of the certificate is registered', balancer.beat(NAME) and waiting.until(lambda: balancer.members[NAME]['pin'] == pin.group()))
            with program(server, balancer.ticket(NAME, balancer.devices(NAME)), env=trust) as p:
                check('over TLS a ticket is enough, without tokens', p.do('kernel 0') == 'ok')
            check('no ticket is refused there', refused(server, None, 'certificate') is True)
            with program(server, env=trust) as p:
                check('also from a client that trusts the server', p.do('kernel 0') != 'ok' and 'belongs to a pool' in p.end())
        del balancer.beats[NAME]
        # Its processes give up root, if the test has it, and the file is root's alone.
        os.chmod(files[0], 0o600)
        os.chmod(folder, 0o700)
        with serve(balancer.url, env={'OUTBOARD_TLS_CA': files[0]}) as server:
            check('the authorities are read before root is given up', balancer.beat(NAME), server.lines)
        with serve(balancer.url, env={'OUTBOARD_TLS_CA': '/nonexistent'}) as server:
            check('a file that cannot be read is named', server.line('pool: OUTBOARD_TLS_CA: /nonexistent: No such file'), server.lines)
        with serve(balancer.url, env={'OUTBOARD_TLS_PIN': '0' * 64}) as server:
            check('another balancer is not trusted', server.line('not registered at balancer tls://.*certificate'), server.lines)
        balancer.close()


def hardware():
    if not SENSORS:
        return
    balancer = Balancer()
    with serve(balancer.url, '--nvml', SENSORS, env={'OUTBOARD_TEST_XID': '79'}) as server:
        check('an error of the hardware makes the server unhealthy', balancer.beat(NAME, lambda beat: beat['healthy'] == 0 and 'Xid 79' in beat['health']))
        sensors = next(pid for pid in children(server.process.pid) if b'--sensors' in arguments(pid))
        os.kill(sensors, signal.SIGKILL)
        known = balancer.last(NAME)['number']
        check('also when the process that saw it is gone', balancer.beat(NAME, lambda beat: beat['number'] > known + 1)['healthy'] == 0)
        with program(server, balancer.ticket(NAME, balancer.devices(NAME))) as p:
            check('tickets that were given are taken', p.do('kernel 0') == 'ok')
    del balancer.beats[NAME]
    with serve(balancer.url, '--nvml', SENSORS, env={'OUTBOARD_TEST_XID': '43'}) as server:
        read = balancer.beat(NAME, lambda beat: any('power' in device.get('facts', {}) for device in beat['load']['devices']))
        check('a fault of a program does not', read['healthy'] == 1 and server.process.poll() is None, read)
    balancer.close()


FIRST, SECOND = Balancer('b'), Balancer('c')
with serve(f'{FIRST.url},{SECOND.url}') as SERVED:
    kill(FIRST, SERVED)
    keep(FIRST, SERVED)
    over(FIRST, SERVED)
    cordon(FIRST, SERVED)
    check('credited by one is credited', waiting.until(lambda: credited(FIRST) and SECOND.last(NAME)['held'] == []))
    deaths(FIRST, SECOND, SERVED)
LAST = Balancer()
restart(LAST)
LAST.close()
registration()
over_tls()
hardware()
finish()
