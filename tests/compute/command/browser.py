# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Controls a headless Chromium over its debugging pipe: JSON messages, each terminated by a zero
byte, on descriptors 3 and 4. Uses only the standard library."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome')


def find():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    def __init__(self, program, width=1280, height=900, dark=False):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_child, self.out = os.pipe()
        self.inp, from_child = os.pipe()

        def wire():  # in the child: the pipe's ends become descriptors 3 and 4
            a, b = os.dup(to_child), os.dup(from_child)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, '--headless=new', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe', f'--user-data-dir={self.profile.name}', '--no-first-run',
             '--disable-extensions', '--disable-background-networking', '--disable-component-update', '--disable-dev-shm-usage',
             f'--window-size={width},{height}', 'about:blank'],
            preexec_fn=wire, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_child)
        os.close(from_child)
        self.buffer, self.next, self.errors, self.session = b'', 1, [], None
        target = next(t for t in self.call('Target.getTargets')['targetInfos'] if t['type'] == 'page')
        self.session = self.call('Target.attachToTarget', targetId=target['targetId'], flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(domain + '.enable')
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
        if dark:
            self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark'}])

    def read(self, until):
        while b'\0' not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                raise TimeoutError('the browser did not answer')
            data = os.read(self.inp, 1 << 16)
            if not data:
                raise EOFError('the browser ended')
            self.buffer += data
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def note(self, message):
        """Records uncaught exceptions and logged errors. A request to another machine is among
        them: the page's Content-Security-Policy forbids it."""
        what, params = message.get('method'), message.get('params', {})
        if what == 'Runtime.exceptionThrown':
            self.errors.append(json.dumps(params['exceptionDetails'])[:400])
        elif what == 'Log.entryAdded' and params['entry']['level'] == 'error':
            self.errors.append(params['entry']['text'] + ' ' + params['entry'].get('url', ''))

    def call(self, method, timeout=30, **params):
        number, self.next = self.next, self.next + 1
        message = {'id': number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.out, json.dumps(message).encode() + b'\0')
        until = time.monotonic() + timeout
        while True:
            answer = self.read(until)
            if answer.get('id') == number:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]}')
                return answer['result']
            self.note(answer)

    def run(self, script):
        result = self.call('Runtime.evaluate', expression=script, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(f'{script[:80]}: {json.dumps(result["exceptionDetails"])[:300]}')
        return result['result'].get('value')

    def wait(self, script, timeout=30):
        """Waits until the expression is true; returns its value."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.1)  # poll
        raise TimeoutError(f'never true: {script}')

    def open(self, url):
        self.call('Page.navigate', url=url)
        self.wait('document.readyState === "complete" && location.href !== "about:blank"')

    def type_into(self, name, text):
        self.run(f'(() => {{ const e = document.forms[0].elements["{name}"]; e.value = {json.dumps(text)}; '
                 'e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})); })()')

    def shot(self, path):
        size = self.run('[document.documentElement.scrollWidth, document.documentElement.scrollHeight]')
        data = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=True,
                         clip={'x': 0, 'y': 0, 'width': size[0], 'height': min(size[1], 4000), 'scale': 1})['data']
        with open(path, 'wb') as file:
            file.write(base64.b64decode(data))

    def close(self):
        try:
            self.session = None
            self.call('Browser.close', timeout=5)
        except (OSError, EOFError, TimeoutError, RuntimeError):
            pass
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.inp)
        os.close(self.out)
        self.profile.cleanup()
