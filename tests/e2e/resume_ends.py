# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A connection breaks, and what is needed to resume may be missing. Each case has one defined
result within its time.

    resume_ends.py OUTBOARD SERVER INIT_PROGRAM
"""
import os
import signal
import sys
import tempfile
import threading

sys.path.append(sys.path[0] + '/../lib')
import cutter
import waiting
from outboard_test import Server, Session, alive, bad, check, gone_within, needs

OUTBOARD, SERVER, PROGRAM = sys.argv[1:4]
UNAVAILABLE = '46'
needs('resume')


def pauses(server, proxy):
    session = Session(OUTBOARD, PROGRAM, proxy.url)
    proxy.refusing = True
    proxy.cut_all('rst')
    threading.Timer(1.5, setattr, (proxy, 'refusing', False)).start()
    results, err, took = session.go_on()
    check('a break of 1.5 s: the program notices a pause and nothing else', results == ['0', '0'] and took < waiting.AT_ONCE and err == '', (results, took, err))

    session = Session(OUTBOARD, PROGRAM, proxy.url)
    proxy.cut_all('fin', ('control',))
    results, err, took = session.go_on()
    check('only the control connection breaks: nothing is noticed', results == ['0', '0'] and took < waiting.AT_ONCE, (results, took, err))

    session = Session(OUTBOARD, PROGRAM, proxy.url, OUTBOARD_DEAD='3')
    proxy.cut_all('half')
    results, err, took = session.go_on()
    check('both connections open but dead: found out and made again', results == ['0', '0'] and took < waiting.AT_ONCE, (results, took, err))

    session = Session(OUTBOARD, PROGRAM, proxy.url, OUTBOARD_DEAD='3')
    proxy.cut_all('half', ('new', 'data'))
    results, err, took = session.go_on()
    check('the data connection alone open but dead: the same', results == ['0', '0'] and took < 2 * waiting.AT_ONCE, (results, took, err))

    session = Session(OUTBOARD, PROGRAM, proxy.url, OUTBOARD_GRACE='12')
    proxy.cut_all('split', ('new', 'data'))
    waiting.let_pass(14, 'longer than the grace period: that is what is tested')
    results, err, took = session.go_on()
    check('the data connection ends on the server\'s side alone, and no call is made for longer than the grace period: made again', results == ['0', '0'], (results, took, err))

    for name, options in {'the client': {'OUTBOARD_OPT': os.environ.get('OUTBOARD_OPT', '') + ',-resume'}, 'OUTBOARD_GRACE=0': {'OUTBOARD_GRACE': '0'}}.items():
        session = Session(OUTBOARD, PROGRAM, proxy.url, **options)
        worker = server.worker(session)
        proxy.cut_all('fin')
        results, err, took = session.go_on()
        check(f'resuming is off ({name}): the session is lost at once', results == [UNAVAILABLE] * 2 and took < waiting.AT_ONCE, (results, took, err))
        check(f'resuming is off ({name}): the worker ends at once', gone_within([worker], waiting.AT_ONCE))


def ends(server, proxy):
    session = Session(OUTBOARD, PROGRAM, proxy.url, OUTBOARD_GRACE='2')
    worker = server.worker(session)
    proxy.refusing = True
    proxy.cut_all('fin')
    results, err, took = session.go_on()
    check('grace over: both calls fail, the first after the grace period, the second at once', results == [UNAVAILABLE] * 2 and 1 < took < waiting.AT_ONCE, (results, took, err))
    check('grace over: the message says so', 'OUTBOARD_GRACE' in err, err)
    check('grace over: the worker ends too', gone_within([worker], waiting.AT_ONCE))
    proxy.refusing = False

    session = Session(OUTBOARD, PROGRAM, proxy.url)
    worker = server.worker(session)
    proxy.refusing = True
    proxy.cut_all('fin')
    waiting.let_pass(0.3, 'a worker that did end would; on a slow machine it is found alive all the more')
    check('a break: the worker lives on', alive(worker))
    os.kill(worker, signal.SIGKILL)
    proxy.refusing = False
    results, err, took = session.go_on()
    check('worker killed during the break: both calls fail at once', results == [UNAVAILABLE] * 2 and took < waiting.AT_ONCE, (results, took, err))

    session = Session(OUTBOARD, PROGRAM, proxy.url)
    worker = server.worker(session)
    proxy.refusing = True
    proxy.cut_all('fin')
    session.program.kill()
    session.program.communicate()
    check('program killed during the break: its worker does not wait for it', gone_within([worker], waiting.AT_ONCE))
    proxy.refusing = False


def in_vain(proxy):
    session = Session(OUTBOARD, PROGRAM, proxy.url, OUTBOARD_GRACE='4')
    proxy.fragile = True
    proxy.cut_all('rst', ('new', 'data'))
    results, err, took = session.go_on()
    proxy.fragile = False
    check('each new connection breaks at once: the session is given up in time', results == [UNAVAILABLE] * 2 and took < waiting.AT_ONCE, (results, took, err))
    check('each new connection breaks at once: one line says why', err.count('\n') == 1 and 'times in a row' in err, err)


def restarted(folder):
    server = Server(SERVER, '--driver', 'null', listen=f'unix:{folder}/r')
    proxy = cutter.Proxy('tcp:', server.url)
    session = Session(OUTBOARD, PROGRAM, proxy.url)
    worker = server.worker(session)
    proxy.refusing = True
    server.process.kill()
    server.process.wait()
    check('server killed: the worker goes with it', gone_within([worker], waiting.AT_ONCE))
    server = Server(SERVER, '--driver', 'null', listen=f'unix:{folder}/r')
    proxy.refusing = False
    results, err, took = session.go_on()
    check('server restarted during the break: both calls fail at once', results == [UNAVAILABLE] * 2 and took < waiting.AT_ONCE, (results, took, err))
    proxy.close()

    session = Session(OUTBOARD, PROGRAM, server.url)
    server.process.kill()
    server.process.wait()
    results, err, took = session.go_on()
    check('server gone: both calls fail at once', results == [UNAVAILABLE] * 2 and took < waiting.AT_ONCE, (results, took, err))

    server = Server(SERVER, '--driver', 'null', listen='tcp://127.0.0.1:0')
    session = Session(OUTBOARD, PROGRAM, server.url)
    server.process.kill()
    server.process.wait()
    results, err, took = session.go_on()
    check('server gone, tcp: both calls fail within a few seconds', results == [UNAVAILABLE] * 2 and took < waiting.AT_ONCE, (results, took, err))


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(SERVER, '--driver', 'null', listen=f'unix:{folder}/s')
        proxy = cutter.Proxy('tcp:', server.url)
        pauses(server, proxy)
        ends(server, proxy)
        in_vain(proxy)
        proxy.close()
        server.stop()
        restarted(folder)
    print(f'{len(bad)} wrong')
    return 1 if bad else 0


sys.exit(main())
