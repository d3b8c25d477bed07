# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Tests the page of `outboard rqa serve` in a headless Chromium: a wrong grid is marked, a sweep
completes, table, heat map and downloads appear, nothing is requested from other hosts, and no
script fails. OUTBOARD_TEST_SHOTS=FOLDER stores screenshots in FOLDER.

    rqa_browser.py OUTBOARD
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + '/../../lib')
import browser
from outboard_test import bad, check  # noqa: E402

OUTBOARD = sys.argv[1]
SHOTS = os.environ.get('OUTBOARD_TEST_SHOTS')


def shot(page, name):
    if SHOTS:
        page.shot(pathlib.Path(SHOTS) / (name + '.png'))


def text(page, name):
    return page.run(f'document.getElementById("{name}").textContent')


def walk(page, url):
    page.open(url)
    page.wait('document.getElementById("plan").textContent.includes("1,200 combinations")')
    page.wait('document.getElementById("link").textContent === "connected"')
    page.wait('document.getElementById("device-name").textContent.startsWith("CPU: ") || document.getElementById("device-name").textContent.startsWith("GPU: ")')
    shot(page, 'start')
    labelled = page.run('[...document.querySelectorAll("input, select")].filter((e) => !e.labels.length).map((e) => e.name || e.id)')
    check(f'fields without a label: {labelled}', labelled == [])
    check('what is hidden is not seen', page.run('[...document.querySelectorAll("[hidden]")].every((e) => e.offsetHeight === 0)'))
    page.type_into('m', '1..a')
    page.wait('document.forms[0].elements.m.getAttribute("aria-invalid") === "true"')
    check('a wrong grid is marked', "'a' is not a number" in text(page, 'plan') and page.run('document.getElementById("start").disabled'))
    shot(page, 'wrong')
    page.type_into('m', '1..4')
    page.type_into('tau', '1..3')
    page.wait('!document.getElementById("start").disabled')
    page.run('document.getElementById("start").click()')
    page.wait('document.getElementById("phase").textContent === "completed"', 120)
    page.wait('!document.getElementById("results").hidden && document.querySelectorAll("#rows tr").length === 50')
    page.wait('!document.getElementById("heat").hidden && document.getElementById("heat").naturalWidth > 300')
    check('the caption names what is averaged', text(page, 'heat-caption').startswith('Each cell is the mean over ') and 'choose one of them above to split it' in text(page, 'heat-caption'))
    shot(page, 'done')
    rows = 4 * 2 * 4 * 3 * 6 * 2
    check('the counts', text(page, 'total') == f'{rows:,}' and text(page, 'failed') == f'{rows // 4:,}' and text(page, 'done') == f'{rows * 3 // 4:,}')
    check('the bar is full', page.run('document.getElementById("bar").getAttribute("aria-valuenow")') == '100')
    check('the log names file and line', 'word.csv, line 3' in text(page, 'log'))
    check('downloads', page.run('document.getElementById("downloads").offsetHeight > 0'))
    size = page.run('fetch(document.querySelector("#downloads a").href).then((a) => a.text()).then((t) => t.split("\\n").length)')
    check(f'the download has {size} lines', size == rows + 2)
    page.run('(() => { const f = document.querySelector("[data-filter=mode]"); f.value = "1"; f.dispatchEvent(new Event("change")); })()')
    page.wait('[...document.querySelectorAll("#rows tr")].every((r) => r.children[1].textContent === "1D-x")')
    page.run('document.getElementById("next").click()')
    page.wait('document.getElementById("page").textContent.startsWith("51 to 100")')
    page.run('(() => { const f = document.querySelector("[data-filter=file]"); f.value = "3"; f.dispatchEvent(new Event("change")); })()')
    page.wait('document.querySelector("#rows td.reason") && document.querySelector("#rows td.reason").textContent.includes("line 3")')
    outside = page.run(f'performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith({url!r}) && !n.startsWith("data:"))')
    check(f'asked from elsewhere: {outside}', outside == [])
    wide = page.run('document.documentElement.scrollWidth <= window.innerWidth')
    check('no scrolling sideways', wide)
    page.call('Emulation.setDeviceMetricsOverride', width=390, height=800, deviceScaleFactor=1, mobile=False)
    narrow(page)
    shot(page, 'narrow')
    page.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark'}])
    page.call('Emulation.setDeviceMetricsOverride', width=1280, height=900, deviceScaleFactor=1, mobile=False)
    shot(page, 'dark')
    check(f'errors of the page: {page.errors}', page.errors == [])


def narrow(page):
    """At a width of 390 pixels nothing is cut off, no number or label wraps, and the picture is not
    scaled down."""
    page.wait('(() => { const h = document.getElementById("heat"); return h.naturalWidth < 390 && h.offsetWidth >= h.naturalWidth; })()')
    page.run('["done", "total", "failed", "skipped"].forEach((id) => { document.getElementById(id).textContent = "1,234,567,890"; })')
    page.run('document.getElementById("memory-text").textContent = "1,023 MiB of 1,023.5 GiB"')
    page.run('document.getElementById("page").textContent = "1,234,567,801 to 1,234,567,850"')
    broken = page.run('[...document.querySelectorAll("dd, .hint code, .meter output, #page, .tiles dt:not(:has(small))")].filter((e) => { const r = document.createRange(); '
                      'r.selectNodeContents(e); return new Set([...r.getClientRects()].map((b) => Math.round(b.bottom / 8))).size > 1; }).map((e) => e.textContent)')
    check(f'broken over lines at 390 dots: {broken}', broken == [])
    check('no scrolling sideways on a narrow screen', page.run('document.documentElement.scrollWidth <= 390'))
    check('numbers fit their tiles', page.run('[...document.querySelectorAll("dd")].every((e) => e.scrollWidth <= e.clientWidth + 1)'))


def main():
    program = browser.find()
    if not program:
        print('SKIP: no Chromium here; tools/dev/install-packages browser installs it')
        return 77
    rng = random.Random(4)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / 'data'
        folder.mkdir()
        for file in ('a', 'b', 'c'):
            (folder / f'{file}.csv').write_text('x,y\n' + ''.join(f'{rng.random():.6f},{rng.random():.6f}\n' for _ in range(200)))
        (folder / 'word.csv').write_text('x,y\n0.1,0.2\n0.1,word\n')
        server = subprocess.Popen([OUTBOARD, 'rqa', 'serve', folder, '--out', pathlib.Path(name) / 'out', '--port', '0'], stdout=subprocess.PIPE, text=True)
        url = re.search(r'http\S+', server.stdout.readline()).group(0)
        page = None
        try:
            page = browser.Browser(program)
            walk(page, url)
        finally:
            if page:
                page.close()
            server.terminate()
            check('a clean stop', server.wait(30) == 0)
    return 1 if bad else 0


sys.exit(main())
