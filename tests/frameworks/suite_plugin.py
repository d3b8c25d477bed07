# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""A plugin of pytest for tools/dev/suites: takes a sample of the tests and records what each did.

OUTBOARD_SUITE_MOST: at most so many tests of each file, evenly spaced in the order of collection.
OUTBOARD_SUITE_OUT: a file of JSON lines, one when a test begins and one when it ends. Tests that it
names already are not run again: a run that a test has ended goes on with the next one.
OUTBOARD_SUITE_TORCH=cpu: PyTorch's own functions run on the CPU (torch_on_host.py).

After a test that failed, a context that has a sticky error ends the run: all later tests would fail.
"""
import ctypes
import json
import os
import pathlib
import time

import pytest

OUT = pathlib.Path(os.environ['OUTBOARD_SUITE_OUT'])
MOST = int(os.environ.get('OUTBOARD_SUITE_MOST', '0'))
SPOILT = 70
# success, not initialised, no context, and two that say that a stream is being captured
NOT_STICKY = 0, 3, 201, 900, 906
PART = 400  # of a long reason, its beginning and its end


def record(**fields):
    with OUT.open('a', encoding='utf-8') as out:
        out.write(json.dumps(fields) + '\n')


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    files = {}
    for item in items:
        files.setdefault(item.nodeid.partition('::')[0], []).append(item)
    taken = []
    for tests in files.values():
        n = min(MOST or len(tests), len(tests))
        taken += [tests[i * len(tests) // n] for i in range(n)]
    seen = {json.loads(line)['id'] for line in OUT.read_text(encoding='utf-8').splitlines()} if OUT.exists() else set()
    record(id='', collected={name: len(tests) for name, tests in files.items()})
    chosen = {item.nodeid for item in taken} - seen
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
    items[:] = [item for item in taken if item.nodeid in chosen]


def pytest_configure():
    if os.environ.get('OUTBOARD_SUITE_TORCH') == 'cpu':
        import torch_on_host
        torch_on_host.start()


def spoilt():
    """Whether the current context has an error that stays. A program without a context has none."""
    try:
        return ctypes.CDLL('libcuda.so.1').cuCtxSynchronize() not in NOT_STICKY
    except OSError:
        return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    began = time.monotonic()
    item.reports = []
    record(id=item.nodeid, began=True)
    result = yield
    worst = next((r for r in item.reports if r.failed), None) or next((r for r in item.reports if r.skipped), None)
    outcome = 'passed' if not worst else 'failed' if worst.failed else 'xfailed' if hasattr(worst, 'wasxfail') else 'skipped'
    crash = getattr(getattr(worst, 'longrepr', None), 'reprcrash', None)
    reason = crash.message if crash else str(worst.longrepr) if worst else ''
    if len(reason) > 2 * PART:
        reason = f'{reason[:PART]} ... {reason[-PART:]}'
    record(id=item.nodeid, outcome=outcome, seconds=round(time.monotonic() - began, 2), reason=reason)
    if outcome == 'failed' and spoilt():
        os._exit(SPOILT)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    item.reports.append(report)
    return report
