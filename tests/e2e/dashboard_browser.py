# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The dashboard in a headless Chromium: signing in, each section, commands with their confirmation,
live changes, a lost connection, an empty pool, a phone, light and dark, keyboard, contrast, a pool
of 1,000 servers with 8 GPUs. An invented pool is behind it.

    dashboard_browser.py DASHBOARD_POOL                  the test; 77 without Chromium
    dashboard_browser.py DASHBOARD_POOL --image FILE     makes the picture in docs/DASHBOARD.md

OUTBOARD_TEST_SHOTS=FOLDER stores screenshots in FOLDER.
"""
import os
import pathlib
import sys

sys.path += [sys.path[0] + '/../lib', sys.path[0] + '/../compute/command']
import browser
import waiting
from dashboard_pool import Pool
from outboard_test import check, finish, skip  # noqa: E402

PROGRAM = sys.argv[1]
SHOTS = os.environ.get('OUTBOARD_TEST_SHOTS')
SECTIONS = ('overview', 'servers', 'gpus', 'sessions', 'queue', 'tenants', 'events')
# The ratio of the luminance of two colours (WCAG 2.1), of texts on what is behind them.
CONTRAST = '''(() => {
    const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const parse = (c) => c.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const back = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c; } return [255, 255, 255]; };
    const poor = new Set();
    for (const e of document.querySelectorAll('body *')) {
        if (!e.offsetHeight || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
        const [a, b] = [light(parse(getComputedStyle(e).color)), light(back(e))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) poor.add(`${e.tagName}.${e.className}: ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
    }
    return [...poor];
})()'''


class Page(browser.Browser):
    def text(self, selector):
        return self.run(f'document.querySelector({selector!r})?.textContent ?? ""')

    def click(self, selector):
        self.run(f'document.querySelector({selector!r}).click()')

    def press(self, key, code):
        for kind in 'keyDown', 'keyUp':
            self.call('Input.dispatchKeyEvent', type=kind, key=key, code=key, windowsVirtualKeyCode=code, **({'text': '\r'} if key == 'Enter' and kind == 'keyDown' else {}))

    def sign_in(self, token):
        self.wait('!document.getElementById("login").hidden')
        self.run(f'document.getElementById("token").value = {token!r}; document.getElementById("login").requestSubmit()')

    def live(self):
        self.wait('document.getElementById("link")?.textContent === "live"')

    def section(self, name):
        self.run(f'location.hash = {name!r}')
        self.wait(f'!document.getElementById({name!r}).hidden')
        self.run('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')

    def size(self, width, height=800):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, dark):
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def picture(self, name):
        if SHOTS:
            self.shot(pathlib.Path(SHOTS) / (name + '.png'))


def signing_in(page, pool):
    page.open(pool.url)
    page.sign_in('wrong-token')
    page.wait('document.getElementById("login-error").textContent.includes("unknown or was revoked")')
    check('a wrong token: the reason is shown, nothing else', page.run('[...document.querySelectorAll("section")].every((s) => s.hidden) && document.activeElement.id === "token"'))
    page.picture('login')
    page.sign_in('admin-token')
    page.live()
    check('the token is in no address and no cookie', page.run('!location.href.includes("token") && document.cookie === "" && sessionStorage.getItem("outboard-token") === "admin-token"'))


def sections(page, pool):
    pool.say('silent node-3')
    pool.say('hot node-1')
    pool.say('faulty node-4')
    page.section('overview')
    page.wait('document.querySelectorAll("#problems li").length === 4')
    problems = page.text('#problems')
    check('what needs attention', all(words in problems for words in ('node-3', 'fault, it gets no new sessions: node-4 · 0', 'node-1 · 0 (91 °C)', 'node-1 · 1 (97 %)')), problems)
    check('totals', all(words in page.text('#tiles') for words in ('Servers ready11 of 12', 'Sessions5 4 running', 'Waiting2 oldest')), page.text('#tiles'))
    check('a chart says its figures in words', page.run('document.querySelector("#pool-charts svg").getAttribute("aria-label").startsWith("Utilisation, last hour: now ")'))
    page.section('servers')
    check('all servers', page.run('document.querySelectorAll("#servers tbody button.name").length') == 12)
    check('the silent one is marked', page.run('[...document.querySelectorAll("#servers tbody tr")].find((r) => r.textContent.startsWith("node-3")).querySelector(".pill").textContent') == 'silent')
    page.section('gpus')
    page.run('(() => { const f = document.getElementById("gpu-filter"); f.value = "hot"; f.dispatchEvent(new Event("change")); })()')
    page.wait('document.querySelectorAll("#gpus tbody button.name").length === 1')
    check('only the hot one', page.text('#gpus tbody').startswith('node-1 · 0'), page.text('#gpus tbody'))
    page.run('(() => { const f = document.getElementById("gpu-filter"); f.value = "faulty"; f.dispatchEvent(new Event("change")); })()')
    page.wait('document.querySelectorAll("#gpus tbody button.name").length === 1 && document.querySelector("#gpus tbody button.name").textContent === "node-4 · 0 · faulty"')
    page.click('#gpus tbody button.name')
    check('a faulty GPU says what that means', 'faulty: it gets no new sessions' in page.text('#detail-facts'), page.text('#detail-facts'))
    page.click('#detail-close')
    page.run('(() => { const f = document.getElementById("gpu-filter"); f.value = ""; f.dispatchEvent(new Event("change")); })()')
    page.wait('document.querySelectorAll("#gpus tbody button.name").length > 20')
    pool.say('mute node-0')
    page.wait('document.querySelector("#gpus tbody tr:nth-child(2)").textContent.startsWith("node-0 · 0") && !document.querySelector("#gpus tbody tr:nth-child(2)").textContent.includes("°C")')
    mute = page.run('[...document.querySelectorAll("#gpus tbody tr:nth-child(2) td")].map((c) => c.textContent)')
    check('what is not known is a dash', [mute[i] for i in (2, 4, 6, 7)] == ['–'] * 4, mute)
    page.click('#gpus tbody button.name')
    page.wait('document.getElementById("detail").open && document.querySelectorAll("#detail-charts .curve").length === 4')
    check('a GPU: its last hour', 'GPU-a0' in page.text('#detail-facts'), page.text('#detail-facts'))
    page.picture('gpu')
    page.click('#detail-close')
    for name, words in (('sessions', 'python train.py'), ('queue', 'python pretrain.py'), ('tenants', '9 of 16'), ('events', 'node-3')):
        page.section(name)
        page.wait(f'document.getElementById({name!r}).textContent.includes({words!r})')
    check('sections show their rows', True)
    page.section('sessions')
    page.run('(() => { const f = document.querySelector("[data-find=sessions]"); f.value = "physics"; f.dispatchEvent(new Event("input")); })()')
    page.wait('document.querySelectorAll("#sessions tbody button.name").length === 1')
    page.run('(() => { const f = document.querySelector("[data-find=sessions]"); f.value = "nothing like it"; f.dispatchEvent(new Event("input")); })()')
    page.wait('document.querySelector("#sessions .none").textContent === "Nothing matches."')
    page.run('(() => { const f = document.querySelector("[data-find=sessions]"); f.value = ""; f.dispatchEvent(new Event("input")); })()')
    check('rows can be searched', True)


def state_pill(name):
    return f'[...document.querySelectorAll("#servers tbody tr")].find((r) => r.textContent.startsWith("{name}"))?.querySelector(".pill").textContent'


def open_server(page, name):
    page.run(f'[...document.querySelectorAll("#servers button.name")].find((b) => b.textContent === "{name}").click()')
    page.wait('document.getElementById("detail").open')


def open_session(page, program):
    page.run(f'[...document.querySelectorAll("#sessions button.name")].find((b) => b.textContent === {program!r}).click()')
    page.wait('document.getElementById("detail").open')


def commands(page, pool):
    page.section('servers')
    open_server(page, 'node-2')
    page.click('#do-cordon')
    page.wait('document.getElementById("confirm").open')
    check('the confirmation names what happens', page.text('#confirm-title') == 'Cordon node-2?' and '2 running sessions go on' in page.text('#confirm-text'), page.text('#confirm-text'))
    check('Cancel has the focus', page.run('document.activeElement.id') == 'confirm-no')
    page.click('#confirm-no')
    check('nothing has happened', page.run(state_pill('node-2')) == 'ready')
    page.click('#do-cordon')
    page.picture('confirm')
    page.click('#confirm-yes')
    page.wait(f'!document.getElementById("confirm").open && {state_pill("node-2")} === "cordoned"')
    check('it is cordoned, live', page.text('#said') == 'Cordon node-2: done', page.text('#said'))
    page.wait('!document.getElementById("do-uncordon").hidden')
    page.click('#do-drain')
    page.run('document.getElementById("grace").value = 77')
    page.click('#confirm-yes')
    page.wait(f'{state_pill("node-2")} === "draining"')
    page.click('#detail-close')
    page.section('events')
    page.wait('document.getElementById("events").textContent.includes("grace in seconds: 77")')
    check('drained with its time', True)
    page.section('sessions')
    page.run('[...document.querySelectorAll("#sessions button.name")].find((b) => b.textContent === "lbm3d").click()')
    page.click('#do-kill')
    check('killing says what is lost', 'tenant physics' in page.text('#confirm-text') and '4 GPUs are free' in page.text('#confirm-text'), page.text('#confirm-text'))
    page.click('#confirm-yes')
    page.wait('!document.querySelector("#sessions tbody").textContent.includes("lbm3d")')
    page.click('#detail-close')
    pool.say('hold 1')
    page.section('servers')
    open_server(page, 'node-5')
    page.click('#do-cordon')
    page.click('#confirm-yes')
    page.wait('document.getElementById("confirm-error").textContent.includes("has not ended in time")')
    check('a command that fails says so, and can be tried again', page.run('!document.getElementById("confirm-yes").disabled'))
    pool.say('hold 0')
    page.click('#confirm-no')
    page.click('#detail-close')


def moving(page, pool):
    """A session that is restartable is moved, anywhere or to a server; another one cannot be."""
    page.section('sessions')
    open_session(page, 'python eval.py')
    check('what was started without --restartable has no button to move', page.run('document.getElementById("do-move").hidden') and 'without --restartable' in page.text('#detail-facts'), page.text('#detail-facts'))
    page.click('#detail-close')
    open_session(page, 'python train.py --model resnet50')
    check('a restartable one has, and tells its moves', not page.run('document.getElementById("do-move").hidden') and 'moved 2 times' in page.text('#detail-facts') and page.text('#detail-title').endswith('train.py --model resnet50'), page.text('#detail-facts'))
    page.picture('session')
    page.click('#do-move')
    page.wait('document.getElementById("confirm").open')
    places = page.run('[...document.getElementById("target").options].map((o) => o.value)')
    check('where to: anywhere, or a server that is ready, but not where it is', places[0] == '' and 'node-1' in places and not {'node-0', 'node-3'} & set(places), places)
    check('the confirmation says what is lost, and Cancel has the focus', 'not saved is lost' in page.text('#confirm-text') and 'on node-0' in page.text('#confirm-text') and page.run('document.activeElement.id') == 'confirm-no', page.text('#confirm-text'))
    check('the list has a label', page.run('document.getElementById("target").labels[0].textContent').startswith('To'))
    page.picture('move')
    page.run('document.getElementById("target").value = "node-5"')
    page.click('#confirm-yes')
    page.wait('!document.getElementById("confirm").open && document.getElementById("detail-facts").textContent.includes("moving to node-5")')
    check('the answer is told', page.text('#said').endswith('it is offered a place on node-5'), page.text('#said'))
    check('while it is moved there is no other move', page.run('document.getElementById("do-move").hidden'))
    page.click('#detail-close')
    row = '[...document.querySelectorAll("#sessions tbody tr")].find((r) => r.textContent.startsWith("python train.py"))'
    check('the row says it too', page.run(f'{row}.querySelector(".pill").textContent') == 'moving to node-5')
    page.picture('moving')
    pool.say('arrive')
    page.wait(f'{row}.querySelector(".pill").textContent === "running" && [...{row}.children].some((c) => c.textContent === "3")')
    check('it has arrived, by its third move', 'node-5' in page.run(f'{row}.textContent'), page.run(f'{row}.textContent'))
    open_session(page, 'python train.py --model resnet50')
    page.click('#do-move')
    page.wait('document.getElementById("confirm").open')
    check('anywhere is the first choice', page.run('document.getElementById("target").value') == '')
    page.click('#confirm-yes')
    page.wait('!document.getElementById("confirm").open && document.getElementById("detail-facts").textContent.includes("moving to node-6")')
    pool.say('arrive')
    page.click('#detail-close')


def late(page, pool):
    """A command that ends after its dialog was closed changes no other dialog."""
    page.section('servers')
    pool.say('hold 1')
    open_server(page, 'node-8')
    page.click('#do-cordon')
    page.click('#confirm-yes')
    page.wait('document.getElementById("confirm-yes").disabled')
    page.click('#confirm-no')
    page.click('#do-drain')
    page.wait('document.getElementById("confirm").open')
    page.wait('document.getElementById("said").textContent.includes("has not ended in time")')
    check('the next confirmation stays', page.run('document.getElementById("confirm").open') and page.text('#confirm-title') == 'Drain node-8?' and page.text('#confirm-error') == '', page.text('#confirm-error'))
    check('and can be used', not page.run('document.getElementById("confirm-yes").disabled'))
    page.click('#confirm-no')
    page.click('#detail-close')
    pool.say('hold 0')


def names(page, pool):
    """Names that programs choose are text, and turn no other text round."""
    page.section('sessions')
    pool.say('program <img src=x onerror=alert(1)>\u202egpj.exe')
    shown = '<img src=x onerror=alert(1)>\ufffdgpj.exe'
    page.wait(f'[...document.querySelectorAll("#sessions button.name")].some((b) => b.textContent === {shown!r})')
    open_session(page, shown)
    page.click('#do-kill')
    check('a hostile name is text', page.text('#confirm-title') == f'Kill {shown}?' and page.run('document.querySelectorAll("main img, dialog img").length') == 0, page.text('#confirm-title'))
    page.click('#confirm-no')
    page.click('#detail-close')
    pool.say('program python eval.py')


def keyboard(page):
    page.section('servers')
    page.run('document.querySelector(".skip").focus()')
    check('a link skips to the content', page.run('document.activeElement.className === "skip" && document.activeElement.getBoundingClientRect().left >= 0'),
          page.run('[document.activeElement.outerHTML.slice(0, 99), document.activeElement.getBoundingClientRect().left]'))
    page.run('document.querySelector("#servers tbody button.name").focus()')
    page.press('Enter', 13)
    page.wait('document.getElementById("detail").open')
    page.press('Escape', 27)
    page.wait('!document.getElementById("detail").open')
    check('after Escape the focus is where it was', page.run('document.activeElement.className === "name"'))
    page.run('document.querySelector("#servers th button").focus()')
    page.press('Enter', 13)
    page.wait('document.querySelector("#servers th").ariaSort === "descending"')
    check('sorted by the keyboard', page.text('#servers tbody tr:nth-child(2)').startswith('node-11'), page.text('#servers tbody tr:nth-child(2)'))
    page.click('#servers th button')


def looks(page):
    """Phone and desktop, light and dark: no horizontal scrolling, and enough contrast."""
    for dark in False, True:
        page.dark(dark)
        for width in 1280, 390, 360:
            page.size(width)
            for name in SECTIONS:
                page.section(name)
                where = f'{name}, {width} px, {"dark" if dark else "light"}'
                check(f'no horizontal scrolling: {where}', page.run('document.documentElement.scrollWidth <= innerWidth'))
                poor = page.run(CONTRAST)
                check(f'contrast: {where}', poor == [], poor)
                page.picture(f'{name}-{width}-{"dark" if dark else "light"}')
        check(f'{"dark" if dark else "light"}', page.run('getComputedStyle(document.body).backgroundColor') == ('rgb(20, 24, 29)' if dark else 'rgb(246, 247, 248)'))
    for width in 390, 360:
        page.size(width)
        page.section('sessions')
        check(f'the state of a session is shown at {width} px', page.run('document.querySelector("#sessions tbody .pill").getBoundingClientRect().right') <= width)
        open_session(page, 'python train.py --model resnet50')
        page.click('#do-move')
        page.wait('document.getElementById("confirm").open')
        check(f'dialogs fit {width} px', page.run('["detail", "confirm"].every((id) => document.getElementById(id).getBoundingClientRect().right <= innerWidth && document.getElementById(id).scrollWidth <= document.getElementById(id).clientWidth)'))
        page.picture(f'move-{width}')
        page.click('#confirm-no')
        page.picture(f'session-{width}')
        page.click('#detail-close')
    page.size(1280)
    page.dark(False)


def accessible(page):
    check('fields have labels', page.run('[...document.querySelectorAll("input, select")].filter((e) => !e.labels.length).map((e) => e.id)') == [])
    check('tables have captions and headers', page.run('[...document.querySelectorAll("table")].every((t) => t.caption.textContent && [...t.querySelectorAll("th")].every((h) => h.scope === "col"))'))
    outside = page.run('performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin) && !n.startsWith("data:"))')
    check('nothing is loaded from elsewhere', outside == [], outside)


def scopes(page, pool):
    page.run('sessionStorage.setItem("outboard-token", "use-token")')
    page.open(pool.url + '#sessions')
    page.call('Page.reload')
    page.wait('document.querySelectorAll("#sessions tbody button.name").length === 2')
    check('scope use: own sessions, and a note', page.run('!document.getElementById("own").hidden'))
    page.click('#sessions tbody button.name')
    check('and no commands', page.run('document.querySelectorAll("#detail-actions button").length') == 0)
    page.click('#detail-close')
    page.click('#leave')
    page.wait('!document.getElementById("login").hidden')
    page.run('new Promise((done) => setTimeout(done, 300))')  # the stream has ended by then
    left = page.run('document.body.textContent')
    check('signed out: nothing of the pool is left in the page', not any(words in left for words in ('node-', 'maria', 'train.py', 'invented')), left)
    check('signed out: the token is forgotten', page.run('sessionStorage.getItem("outboard-token")') is None and page.text('#link') == 'signed out' and page.run('document.getElementById("stale").hidden'),
          page.text('#link'))


def next_caller(page, pool):
    """Who signs in after an admin sees nothing of the admin's, also while there is no stream; and there is one stream."""
    page.open(pool.url + '#sessions')
    page.sign_in('a\u2026b')
    page.wait('document.getElementById("login-error").textContent.startsWith("That is no token")')
    page.sign_in('admin-token')
    page.live()
    page.wait('document.querySelector("#sessions tbody").textContent.includes("finetune.py")')
    page.run('globalThis.askedFetch = fetch; globalThis.answers = []; globalThis.fetch = (path, ...more) => (path.endsWith("/cordon") ? new Promise((...ends) => answers.push(ends)) : askedFetch(path, ...more))')
    page.section('servers')
    page.run('document.querySelector("[data-find=servers]").value = "node"; document.querySelector("[data-find=servers]").dispatchEvent(new Event("input"))')
    for count in 1, 2:  # one is to be done, the other one to fail
        open_server(page, 'node-1')
        page.click('#do-cordon')
        page.click('#confirm-yes')
        page.wait(f'answers.length === {count}')
        page.click('#confirm-no')
        page.click('#detail-close')
    page.section('sessions')
    page.run('globalThis.fetch = askedFetch')
    page.run('globalThis.realFetch = fetch; globalThis.streams = 0; globalThis.fetch = (path, ...more) => { if (path.endsWith("/stream")) { streams++; return Promise.reject(new TypeError("no")); } return realFetch(path, ...more); }')
    page.click('#leave')
    page.sign_in('use-token')
    page.wait('streams > 0 && !document.getElementById("own").hidden')
    page.run('dispatchEvent(new Event("resize")); new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    check("the next caller sees nothing of the admin's", 'finetune.py' not in page.text('#sessions') and page.text('[data-count=sessions]') == '', page.text('#sessions'))
    said = 'new Promise((done) => setTimeout(() => done(document.getElementById("said").textContent + document.getElementById("confirm-error").textContent), 0))'
    check('nothing of what a command of the admin did', page.run(f'answers[0][0]({{ ok: true, status: 200, json: async () => ({{}}) }}); {said}') == '' and page.run(f'answers[1][1](new Error("no")); {said}') == '', page.text('#said'))
    check('and nothing that was typed', page.run('document.querySelector("[data-find=servers]").value') == '')
    for _ in range(3):  # each while the loop before waits to connect again
        page.click('#leave')
        page.sign_in('use-token')
        page.wait('document.getElementById("login").hidden')
    page.run('globalThis.open = 0; globalThis.fetch = async (path, options) => { const answer = await realFetch(path, options); if (path.endsWith("/stream")) { open++; options.signal.addEventListener("abort", () => open--); } return answer; }')
    page.wait('open > 0 && document.getElementById("link").textContent === "live"')
    waiting.let_pass(5, 'loops of earlier sign-ins would connect now')
    check('one stream for one caller', page.run('open') == 1, page.run('open'))
    page.click('#leave')


def lost(page):
    """The balancer ends and another one begins at the same address."""
    pool = Pool(PROGRAM, 2, 2)
    page.open(pool.url)
    page.sign_in('look-token')
    page.live()
    page.wait('document.getElementById("tiles").textContent.includes("2 of 2")')
    pool.say('silent node-1')
    page.section('events')
    page.wait('document.querySelectorAll("#events tbody button.name").length === 3')
    pool.say('beats node-1')
    page.section('overview')
    page.wait('document.getElementById("tiles").textContent.includes("2 of 2")')
    port = pool.port
    pool.process.kill()
    pool.process.wait()
    page.wait('document.getElementById("link").textContent === "connection lost" && !document.getElementById("stale").hidden')
    check('a lost connection: how old the figures are', 'What is shown is of ' in page.text('#stale') and '2 of 2' in page.text('#tiles'), page.text('#stale'))
    page.picture('lost')
    with Pool(PROGRAM, 3, 2, url=f'tcp://127.0.0.1:{port}'):
        page.live()
        page.wait('document.getElementById("tiles").textContent.includes("3 of 3") && document.getElementById("stale").hidden')
        check('connected again', True)
        page.section('events')
        page.wait('document.querySelector("#events tbody").textContent.includes("node-2")')
        check('the events of another registry replace the old ones', 'silent' not in page.text('#events tbody'), page.text('#events tbody'))


def empty(page):
    with Pool(PROGRAM, 0, 0, env={'OPEN': '1'}) as pool:
        page.open(pool.url)
        page.live()
        page.wait('!document.getElementById("empty").hidden')
        check('no tokens, no sign-in; an empty pool says what to do', 'outboard-server --pool' in page.text('#empty') and page.run('document.getElementById("leave").hidden'))
        pool.say('registry 0')
        page.wait('document.getElementById("link").textContent === "registry lost" && document.getElementById("problems").textContent.includes("registry does not answer")')
        check('an unusable registry', True)
        page.picture('empty')


def large(page):
    with Pool(PROGRAM, 1000, 8) as pool:
        page.open(pool.url)
        page.sign_in('look-token')
        page.live()
        for name in SECTIONS[:3]:
            page.section(name)
            page.wait('document.querySelector("[data-count=gpus]").textContent === "8000"')
            page.run('dispatchEvent(new Event("resize")); new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
            print(f'1,000 servers with 8 GPUs: {name} drawn in {page.run("document.documentElement.dataset.drawMs")} ms')
        check('8,000 GPUs: only rows in sight exist', 20 < page.run('document.querySelectorAll("#gpus tbody tr").length') < 100)
        page.run('document.querySelector("#gpus .scroll").scrollTop = 1e9')
        page.wait('[...document.querySelectorAll("#gpus tbody button.name")].at(-1).textContent === "node-999 · 7"')
        check('the last row is at the end', page.run('(() => { const s = document.querySelector("#gpus .scroll"), r = [...document.querySelectorAll("#gpus tbody button.name")].at(-1).getBoundingClientRect(), b = s.getBoundingClientRect(); return r.bottom <= b.bottom && r.top >= b.top; })()'))
        page.picture('large')


def image(page, path):
    with Pool(PROGRAM, 24, 8, 60) as pool:
        page.size(1280, 840)
        page.open(pool.url)
        page.sign_in('look-token')
        page.live()
        waiting.let_pass(40, 'the history fills')
        pool.say('silent node-7')
        pool.say('hot node-4')
        waiting.let_pass(5, 'the temperature becomes history')
        page.call('Page.reload')
        page.live()
        page.wait('document.readyState === "complete" && document.querySelectorAll("#problems li").length === 3 && document.querySelectorAll("#pool-charts .curve").length === 4')
        page.shot(path)


def main():
    program = browser.find()
    if not program:
        skip('there is no Chromium (tools/dev/install-packages browser)')
    page = Page(program)
    page.call('Emulation.setFocusEmulationEnabled', enabled=True)
    try:
        if '--image' in sys.argv:
            image(page, sys.argv[-1])
            return
        with Pool(PROGRAM, 12, 8) as pool:
            signing_in(page, pool)
            for test in sections, commands, moving, late, names:
                test(page, pool)
            for test in keyboard, looks, accessible:
                test(page)
            scopes(page, pool)
            next_caller(page, pool)
        lost(page)
        page.run('sessionStorage.clear()')
        empty(page)
        large(page)
        # what the browser itself logs about refused and lost connections is expected
        errors = [e for e in page.errors if 'Failed to load resource' not in e]
        check('no script has failed', errors == [], errors)
    finally:
        page.close()
    finish()


main()
