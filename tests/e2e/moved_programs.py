# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""`outboard run --restartable` with a real balancer and played servers: what happens to a program, to
its signals and to other processes when it is moved, and when it cannot be.

    moved_programs.py OUTBOARD BALANCER
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + '/../lib')
import waiting
from frames import CONTROL, Frame, pack
from listening import Listener, Nobody
from moving import programs_of
from outboard_test import ENV, check, finish
from pool_peers import ASK, CANCEL, DENIED, DONE, END, FOLLOW, GRANT, INVALID, KEEP, KILL, LATER, MOVED, REFUSED, VOID, Balancer, Client, Member, looked, ordered, ticket_of

OUTBOARD, BALANCER = sys.argv[1:3]
NOBODY = Nobody()
# each start adds a line to $LOG; the loops end with the file $LOG.stop, and their sleeps with them
BEGIN = 'echo begin >> "$LOG"; '
LOOP = 'while [ ! -e "$LOG.stop" ]; do sleep 0.05; done'
PLAIN = BEGIN + LOOP
# told to end, it ends with the file $LOG.go
SLOW = 'trap "while [ ! -e \\"$LOG.go\\" ]; do sleep 0.05; done; exit 3" TERM; ' + PLAIN


class Pool:
    """A balancer and two servers without anything on them."""

    def __init__(self, folder, url=None):
        self.folder, self.programs, self.at = folder, 0, url or NOBODY.url
        self.balancer = Balancer(BALANCER, 'one')
        self.servers = {name: self.member(name) for name in ('gpu1', 'gpu2')}

    def member(self, name):
        member = Member(name, self.balancer.url, address=self.at)
        check(f'{name} is ready', member.ready(self.balancer.url), name)
        return member

    def restart(self, name):
        """The server comes back as another incarnation."""
        self.servers[name].close()
        before, self.servers[name] = self.servers[name].incarnation, Member(name, self.balancer.url, address=self.at)
        waiting.until(lambda: self.balancer.url in self.servers[name].registered)
        self.servers[name].ready(self.balancer.url)
        assert before != self.servers[name].incarnation

    def reservations(self, program=None):
        return [r for r in looked(self.balancer.url, 'sessions')['reservations'] if program is None or r['pid'] == program.pid]

    def claim(self, program):
        """Plays the session of a program that was started. Returns its reservation's id and server."""
        def found():
            return [r for r in self.reservations(program) if r['parts'][0]['state'] == 'granted']
        r = waiting.until(found)[-1]
        name = r['parts'][0]['server']
        self.servers[name].claim(bytes.fromhex(r['id']))
        waiting.until(lambda: any(o['id'] == r['id'] and o['parts'][0]['state'] == 'running' for o in self.reservations()))
        return r['id'], name

    def move(self, reservation):
        return ordered(self.balancer.url, 'move', reservation)

    def close(self):
        for member in self.servers.values():
            member.close()
        self.balancer.process.kill()
        self.balancer.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Program:
    """`outboard run --restartable` of a shell's script. before: what the shell does that becomes it."""

    def __init__(self, pool, script, *options, before='', echo='', **more):
        pool.programs += 1
        self.log, self.err = pool.folder / f'log{pool.programs}', pool.folder / f'err{pool.programs}'
        command = [OUTBOARD, 'run', '--pool', pool.balancer.url, '--vram', '64MiB', '--restartable', *options, '--', 'sh', '-c', script]
        if before:
            command = ['sh', '-c', before + '; exec "$@"', 'sh', *command]
        with open(self.err, 'w') as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=err, stderr=err, env={**ENV, 'LOG': str(self.log), 'ECHO': echo, 'OUTBOARD_LOG': 'info'}, **more)
        self.pid = self.process.pid

    def begins(self, n):
        """Waits until it was started n times."""
        return waiting.until(lambda: self.log.exists() and self.log.read_text().count('begin\n') == n)

    def count(self):
        return self.log.read_text().count('begin\n') if self.log.exists() else 0

    def said(self, words):
        return waiting.until(lambda: words in self.err.read_text())

    def signal(self, number):
        self.process.send_signal(number)

    def goes(self):
        """Lets one that was told to end do so."""
        pathlib.Path(f'{self.log}.go').touch()

    def end(self):
        """Lets it end by itself. Returns the exit code."""
        pathlib.Path(f'{self.log}.stop').touch()
        return self.process.wait(waiting.LONG)


def started(pool, script, *options, **more):
    program = Program(pool, script, *options, **more)
    check('a program is started', program.begins(1), program.err.read_text())
    return program, *pool.claim(program)


def other(name):
    return 'gpu2' if name == 'gpu1' else 'gpu1'


def unread(pid):
    """Whether a TCP connection of the process has bytes that it has not read."""
    own = {os.readlink(f) for f in pathlib.Path(f'/proc/{pid}/fd').iterdir()}
    rows = [row.split() for row in pathlib.Path('/proc/net/tcp').read_text().splitlines()[1:]]
    return any(f'socket:[{row[9]}]' in own and int(row[4].split(':')[1], 16) for row in rows)


def refused_offer(pool):
    """The place is lost before the client has asked for it: the program stays as it is."""
    p, reservation, name = started(pool, PLAIN)
    program, = programs_of(p.pid)
    p.signal(signal.SIGSTOP)
    check('a place is offered', pool.move(reservation)['code'] == 0)
    check('its follower is told', waiting.until(lambda: unread(p.pid)))
    pool.restart(other(name))
    p.signal(signal.SIGCONT)
    check('it cannot be had', p.said('the program stays'), p.err.read_text())
    check('the program works on', p.count() == 1 and programs_of(p.pid) == [program] and 'is ended' not in p.err.read_text(), p.err.read_text())
    check('what was offered is gone', waiting.until(lambda: len(pool.reservations(p)) == 1), pool.reservations(p))
    check('another offer', waiting.until(lambda: pool.move(reservation)['code'] == 0))
    check('is taken', p.begins(2) and not os.path.exists(f'/proc/{program}'), p.err.read_text())
    check('it ends well', p.end() == 0)


def closed_offers(pool):
    """The server of the place goes or is closed before the client has asked for it: the program stays."""
    def cordon(server):
        return ordered(pool.balancer.url, 'cordon', server.name)['code'] == 0

    def fall_silent(server):
        server.beating = False
        return server.ready(pool.balancer.url, state='silent')

    def fall_ill(server):
        server.healthy = 0
        return server.ready(pool.balancer.url, state='unwell')

    for harm, words in (cordon, 'is cordoned or drained'), (fall_silent, 'is not connected'), (fall_ill, 'is not well'):
        p, reservation, name = started(pool, PLAIN)
        program, = programs_of(p.pid)
        server = pool.servers[other(name)]
        p.signal(signal.SIGSTOP)
        check('a place is offered', pool.move(reservation)['code'] == 0)
        check('its follower is told', waiting.until(lambda: unread(p.pid)))
        check('its server has trouble', harm(server))
        p.signal(signal.SIGCONT)
        check('it cannot be had', p.said('the program stays') and words in p.err.read_text(), p.err.read_text())
        check('the program works on', p.count() == 1 and programs_of(p.pid) == [program] and 'is ended' not in p.err.read_text(), p.err.read_text())
        server.beating, server.healthy = True, 1
        ordered(pool.balancer.url, 'uncordon', server.name)
        check('it ends well', p.end() == 0 and server.ready(pool.balancer.url))


def lost_place(pool):
    """The place is lost after the program was told to end, and the old one too: it is started at
    another one."""
    p, reservation, name = started(pool, SLOW, '--grace', '40')
    check('a place is offered', pool.move(reservation)['code'] == 0)
    check('the program is being ended', p.said('is ended (SIGTERM'))
    pool.servers[name].end(bytes.fromhex(reservation))
    check('the old one is credited', waiting.until(lambda: all(r['id'] != reservation for r in pool.reservations(p))))
    pool.restart(other(name))
    p.goes()
    check('it is started all the same', p.begins(2), p.err.read_text())
    check('its user is told why', 'cannot be had; asking for another one' in p.err.read_text(), p.err.read_text())
    pool.claim(p)
    check('it ends well', p.end() == 0)


def back(pool):
    """The place is lost after the program was told to end: it goes back to the one that it had."""
    def cordon(server):
        return ordered(pool.balancer.url, 'cordon', server)['code'] == 0

    for harm in pool.restart, cordon:
        p, reservation, name = started(pool, SLOW, '--grace', '40', '--hold', '1')
        old, server = bytes.fromhex(reservation), pool.servers[name]
        check('a place is offered', pool.move(reservation)['code'] == 0)
        check('the program is being ended', p.said('is ended (SIGTERM'))
        offered, = (bytes.fromhex(r['id']) for r in pool.reservations(p) if r['id'] != reservation)
        server.linger(old)
        harm(other(name))
        check('its old server reports that nobody uses the place', waiting.until(lambda: all(part['sessions'] == 0 for r in pool.reservations(p) for part in r['parts'])))
        p.goes()
        check('it is started again', p.begins(2), p.err.read_text())
        check('its user is told where', 'is started again where it was' in p.err.read_text(), p.err.read_text())
        check('that place is kept until it is there', waiting.until(lambda: [o['number'] for o in server.orders if o['kind'] == KEEP and o['id'] == old] == [60]), server.orders)
        check('the offered one is given back', waiting.until(lambda: [r['id'] for r in pool.reservations(p)] == [reservation]), pool.reservations(p))
        check('by order, where the server knows it', harm != cordon or pool.servers[other(name)].got(VOID, offered))
        server.claim(old)
        ordered(pool.balancer.url, 'uncordon', other(name))
        check('it may be moved again', waiting.until(lambda: pool.move(reservation)['code'] == 0) and p.begins(3), p.err.read_text())
        check('it ends well', p.end() == 0)


def over(pool):
    """The reservation ends with its program, unless somebody may use it again."""
    def ended(script, *options):
        """The program, its reservation, and the server that reports it as not used."""
        p, reservation, name = started(pool, script, *options)
        pool.servers[name].linger(bytes.fromhex(reservation))
        check('it ends well', p.end() == 0, p.err.read_text())
        return p, bytes.fromhex(reservation), pool.servers[name]

    def stays(reservation, server):
        """A later order has come, and none to end it before."""
        done = ordered(pool.balancer.url, 'kill', reservation.hex())
        return done['code'] == 0 and waiting.until(lambda: server.got(KILL, reservation)) and not server.got(END, reservation)

    p, reservation, server = ended(PLAIN)
    check('it ends at once', waiting.until(lambda: server.got(END, reservation), waiting.AT_ONCE))
    check('and is credited', waiting.until(lambda: not pool.reservations()), pool.reservations())
    p, *rest = ended(PLAIN, '--hold', '600')
    check('not with --hold', stays(*rest))
    p, *rest = ended('setsid sleep 600 & echo $! > "$LOG.left"; ' + PLAIN)
    os.kill(int(pathlib.Path(f'{p.log}.left').read_text()), signal.SIGKILL)
    check('nor while something lives that the program has started', stays(*rest))


def ignored_signals(pool):
    """A signal that is ignored, or that the program survives, does not mean that it is to end."""
    p, reservation, _ = started(pool, PLAIN, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    p.signal(signal.SIGHUP)
    check('after an ignored SIGHUP it is moved', pool.move(reservation)['code'] == 0 and p.begins(2), p.err.read_text())
    check('and ends well', p.end() == 0)
    p, reservation, _ = started(pool, 'trap "echo told >> $LOG.told" INT; ' + PLAIN, '--grace', '1')
    p.signal(signal.SIGINT)
    check('an interrupt is passed on', waiting.until(pathlib.Path(f'{p.log}.told').exists))
    check('a program that goes on is moved', pool.move(reservation)['code'] == 0 and p.begins(2), p.err.read_text())
    check('and ends well', p.end() == 0)


def quits(pool):
    """Who tells a program to end while it is being moved is obeyed."""
    p, reservation, _ = started(pool, 'trap "echo told >> $LOG.told; ' + LOOP + '; exit 5" TERM; ' + PLAIN, '--grace', '30')
    check('a place is offered', pool.move(reservation)['code'] == 0)
    check('the program is being ended', waiting.until(pathlib.Path(f'{p.log}.told').exists))
    p.signal(signal.SIGTERM)
    waiting.until(lambda: p.process.poll() is not None or b'\0' in pathlib.Path(f'/proc/{p.pid}/cmdline').read_bytes())
    check('it is not started again', p.end() == 5 and p.count() == 1, (p.process.returncode, p.err.read_text()))


def groups(pool):
    """A signal to the whole process group reaches the program once, one to `outboard run` too."""
    p, _, _ = started(pool, BEGIN + f'exec {sys.executable} -c "$ECHO"', start_new_session=True, echo='''
import os, signal
numbers = signal.SIGUSR1, signal.SIGUSR2
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
with open(os.environ['LOG'] + '.told', 'w') as file:
    while True:
        print('ready', file=file, flush=True) if not file.tell() else print(signal.sigwait(numbers).name, file=file, flush=True)
''')
    told = lambda: pathlib.Path(f'{p.log}.told').read_text().split()
    check('it waits for signals', waiting.until(lambda: pathlib.Path(f'{p.log}.told').exists() and told() == ['ready']))
    for n in range(1, 11):
        os.killpg(p.pid, signal.SIGUSR1)
        p.signal(signal.SIGUSR2)
        waiting.until(lambda: told().count('SIGUSR2') == n)
    check('each signal came once', sorted(told()) == ['SIGUSR1'] * 10 + ['SIGUSR2'] * 10 + ['ready'], told())
    os.killpg(p.pid, signal.SIGTERM)
    check('it ends with its group', p.process.wait(waiting.LONG) == -signal.SIGTERM, p.process.returncode)


def neighbours(pool):
    """Children that are not the program's stay; those that it has left behind do not."""
    p, reservation, _ = started(pool, 'setsid sleep 600 & echo $! > "$LOG.left"; ' + PLAIN, before=f'sleep 600 & echo $! > "{pool.folder}/beside"')
    beside, left = (int(pathlib.Path(f).read_text()) for f in (f'{pool.folder}/beside', f'{p.log}.left'))
    check('both are children', beside in programs_of(p.pid) and os.path.exists(f'/proc/{left}'))
    check('it is moved', pool.move(reservation)['code'] == 0 and p.begins(2), p.err.read_text())
    check('what was there before lives', beside in programs_of(p.pid), programs_of(p.pid))
    check('what it has left behind does not', not os.path.exists(f'/proc/{left}'))
    check('it ends well', p.end() == 0)
    os.kill(beside, signal.SIGKILL)


def early_signal(folder):
    """A signal before the program is there: while its start waits for the server's answer."""
    asked = []
    silent = Listener(asked.append)
    with Pool(folder, f'tcp:{silent.address}') as pool:
        p = Program(pool, PLAIN)
        check('its start asks the server', waiting.until(lambda: asked))
        p.signal(signal.SIGTERM)
        check('the signal is obeyed', p.process.wait(waiting.AT_ONCE) == -signal.SIGTERM, p.process.returncode)
        check('by the program too', waiting.until(lambda: not programs_of(p.pid)))
    silent.close()


def cancelled(pool):
    """Who asks for an offered place and does not want it any more gives it back at once."""
    def offer():
        """A reservation in use, what is offered for it, and the server of that."""
        old = waiting.until(lambda: pool.reservations()[0]['id'])
        check('a place is offered', waiting.until(lambda: pool.move(old)['code'] == 0))
        new = next(r for r in pool.reservations() if r['id'] != old)
        return bytes.fromhex(new['id']), pool.servers[new['parts'][0]['server']]

    with Client(pool.balancer.url) as c:
        grant = c.grant(restartable=1)
        pool.servers[grant['parts'][0]['server']].claim(grant['id'])
        answer = None
        while not answer or answer['type'] == GRANT:  # the balancer was faster than the second message
            new, server = offer()
            c.sock.sendall(b''.join(Frame(type=CONTROL, payload=pack(message)).bytes() for message in (
                {'type': ASK, 'id': new, 'gpus': 1, 'offered': 1, 'token': ''}, {'type': CANCEL, 'id': new, 'token': ''})))
            answer = c.receive()
            if answer['type'] == GRANT:
                c.receive()
            check('its server is told', waiting.until(lambda server=server, new=new: server.got(VOID, new), waiting.AT_ONCE))
            check('it is credited', waiting.until(lambda: len(pool.reservations()) == 1))
        check('the cancel is confirmed', answer['type'] == DONE and answer['code'] == 0, answer)
        check('what is in use stays', [r['id'] for r in pool.reservations()] == [grant['id'].hex()] and not pool.servers[grant['parts'][0]['server']].got(VOID, grant['id']))


def killed(pool):
    """To end a program in the middle of a move is final."""
    p, reservation, name = started(pool, PLAIN)
    p.signal(signal.SIGSTOP)
    check('a place is offered', pool.move(reservation)['code'] == 0)
    both = {r['id'] for r in pool.reservations(p)}
    successor = bytes.fromhex(*(both - {reservation}))
    done = ordered(pool.balancer.url, 'kill', reservation)
    check('the reservation is ended', done['code'] == 0, done)
    check('at both places', waiting.until(lambda: pool.servers[name].got(KILL, bytes.fromhex(reservation)) and pool.servers[other(name)].got(KILL, successor)), pool.servers[other(name)].orders)
    with Client(pool.balancer.url) as c:
        answer = c.grant(successor, offered=1)
        check('the offer is over', answer['type'] == REFUSED and answer['code'] == DENIED and 'was ended by' in answer['text'], answer)
    pool.restart(other(name))
    with Client(pool.balancer.url) as c:
        answer = c.grant(successor, offered=1)
        check('also when its server was restarted', answer['type'] == REFUSED and answer['code'] == DENIED, answer)
    p.signal(signal.SIGCONT)
    check('the program is left to the end of its session', p.said('is not moved any more') and p.count() == 1, p.err.read_text())
    check('it ends with its own exit code', p.end() == 0)


def killed_late(pool):
    """The same after the program was told to end."""
    p, reservation, _ = started(pool, SLOW, '--grace', '40')
    check('a place is offered', pool.move(reservation)['code'] == 0)
    check('the program is being ended', p.said('is ended (SIGTERM'))
    new = next(r['id'] for r in pool.reservations(p) if r['id'] != reservation)
    check('its user ends the new one', ordered(pool.balancer.url, 'kill', new)['code'] == 0)
    p.goes()
    check('it is not started again', p.process.wait(waiting.LONG) == 77 and p.count() == 1, (p.process.returncode, p.err.read_text()))
    check('and its user is told', 'was ended by' in p.err.read_text(), p.err.read_text())


def killed_credited(pool):
    """The same when the old reservation has ended, and its program goes on for a while."""
    p, reservation, name = started(pool, 'trap "echo told >> $LOG.told; ' + LOOP + '; exit 5" TERM; ' + PLAIN, '--grace', '40')
    check('a place is offered', pool.move(reservation)['code'] == 0)
    check('the program is being ended', waiting.until(pathlib.Path(f'{p.log}.told').exists))
    pool.servers[name].end(bytes.fromhex(reservation))
    check('the old one is credited', waiting.until(lambda: all(r['id'] != reservation for r in pool.reservations(p))))
    new, = pool.reservations(p)
    check('its user ends the new one', ordered(pool.balancer.url, 'kill', new['id'])['code'] == 0)
    check('it is not started again', p.end() == 77 and p.count() == 1, (p.process.returncode, p.err.read_text()))
    check('and its user is told', 'was ended by' in p.err.read_text(), p.err.read_text())


def killed_moving_on(pool):
    """A program is moved again before its first reservation could be ended, whose server is away."""
    with pool.member('gpu3') as third, Client(pool.balancer.url) as c:
        servers = {**pool.servers, 'gpu3': third}

        def place():
            return {r['id']: r['parts'][0]['server'] for r in pool.reservations()}
        first = c.grant(restartable=1)['id'].hex()
        gone = servers[place()[first]]
        gone.claim(bytes.fromhex(first))
        check('a move', waiting.until(lambda: pool.move(first)['code'] == 0))
        second, = set(place()) - {first}
        gone.close()
        check('its first server goes', gone.ready(pool.balancer.url, state='lost'))
        servers[place()[second]].claim(bytes.fromhex(second))
        check('another move', waiting.until(lambda: pool.move(second)['code'] == 0))
        last, = set(place()) - {first, second}
        at = place()
        done = ordered(pool.balancer.url, 'kill', second)
        check('who ends it is told who was not told', done['code'] == LATER and f'server {gone.name} is not connected' in done['text'], done)
        check('the others were', waiting.until(lambda: all(servers[at[i]].got(KILL, bytes.fromhex(i)) for i in (second, last))), [m.orders for m in servers.values()])
        answer = c.grant(bytes.fromhex(last), offered=1)
        check('the last offer is over', answer['type'] == REFUSED and answer['code'] == DENIED, answer)


def environment(pool):
    """Each start has the environment of the first one, but for the place."""
    p, reservation, _ = started(pool, 'env | sort > "$LOG.env$(wc -l < "$LOG" 2> /dev/null)"; ' + PLAIN)
    check('it is moved', pool.move(reservation)['code'] == 0 and p.begins(2), p.err.read_text())
    first, second = (re.sub(r'(?m)^(OUTBOARD_(SERVER|TICKET|TLS_PIN)|_|PPID)=.*\n', '', pathlib.Path(f'{p.log}.env{n}').read_text()) for n in ('', '1'))
    check('in the same environment', first == second and 'OUTBOARD_POOL=' in first, set(first.split('\n')) ^ set(second.split('\n')))
    check('it ends well', p.end() == 0)


def renewed(pool):
    """A place that is asked for lasts longer than the offer."""
    with Client(pool.balancer.url) as c, Client(pool.balancer.url) as d:
        grant = c.grant(restartable=1)
        old = grant['id']
        name = grant['parts'][0]['server']
        pool.servers[name].claim(old)
        check('a move', waiting.until(lambda: pool.move(old.hex())['code'] == 0))
        d.send(type=FOLLOW, id=old, token='')
        moved = d.receive()
        check('the follower is told how long the offer lasts', moved['type'] == MOVED and 0 < moved['left'] <= 60, moved)
        with Client(pool.balancer.url) as e:
            issued = ticket_of(e.grant(moved['successor'], offered=1)['parts'][0])['issued']
        check('time passes', waiting.until(lambda: time.time() > issued + 12))
        d.send(type=FOLLOW, id=old, token='')
        check('less is left', (late := d.receive())['left'] <= moved['left'] - 10, late)
        ticket = ticket_of(c.grant(moved['successor'], offered=1)['parts'][0])
        check('what is asked for is renewed', issued + 60 < ticket['expires'] <= time.time() + 61, (issued, ticket['expires']))
        d.send(type=FOLLOW, id=old, token='')
        check('for all who ask', (again := d.receive())['left'] > late['left'], (late, again))
        answer = c.grant(os.urandom(16), offered=1)
        check('nothing else is placed for it', answer['type'] == REFUSED and answer['code'] == INVALID and 'not kept any more' in answer['text'], answer)
        answer = c.grant(moved['successor'], offered=1, wait=5)
        check('nor does it wait', answer['type'] == REFUSED and 'needs no waiting' in answer['text'], answer)
        pool.servers[name].end(old)
        check('the place stays when the old one has ended', waiting.until(lambda: len(pool.reservations()) == 1) and c.grant(moved['successor'], offered=1)['type'] == GRANT)


def fixed():
    """A client says that its program cannot be started again any more."""
    with Balancer(BALANCER, 'one') as b, Member('gpu1', b.url) as one, Member('gpu2', b.url) as two, Client(b.url) as c, Client(b.url) as d:
        servers = {'gpu1': one, 'gpu2': two}
        one.ready(b.url), two.ready(b.url)
        grant = c.grant(restartable=1)
        old, name = grant['id'], grant['parts'][0]['server']
        servers[name].claim(old)
        check('a move', ordered(b.url, 'move', old.hex())['code'] == 0)
        d.send(type=FOLLOW, id=old, token='', fixed=1)
        answer = d.receive()
        check('it is noted', answer['type'] == REFUSED and answer['code'] == INVALID and 'cannot be moved' in answer['text'], answer)
        check('what was offered is void', waiting.until(lambda: [r['id'] for r in looked(b.url, 'sessions')['reservations']] == [old.hex()]), looked(b.url, 'sessions'))
        told = ordered(b.url, 'move', old.hex())
        check('no more offers', told['code'] != 0 and 'cannot be started again' in told['text'], told)
        check('it runs on', not servers[name].got(KILL, old) and looked(b.url, 'sessions')['reservations'][0]['parts'][0]['state'] == 'running')
        d.send(type=FOLLOW, id=old, token='', fixed=2)
        check('a value out of range is refused', d.receive()['type'] == REFUSED)


def main():
    fixed()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        early_signal(folder)
        for case in refused_offer, closed_offers, lost_place, back, over, ignored_signals, quits, groups, neighbours, cancelled, killed, killed_late, killed_credited, killed_moving_on, environment, renewed:
            with Pool(folder) as pool:
                pool.programs = 10 * (1 + len(list(folder.glob('log*'))))
                print(f'-- {case.__name__}', flush=True)
                case(pool)


main()
finish()
