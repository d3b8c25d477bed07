# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""How tests wait. No result may depend on the machine's speed: a test waits for a condition, and
the time-out only ends a test that hangs.

tools/dev/check-style rejects time.sleep in tests outside this file.
"""
import time

LONG = 120  # seconds: a longer wait counts as a hang
# Seconds: the limit for "at once". It only has to be distinguishable from a time-out, which tests
# set to a minute or more.
AT_ONCE = 30


def until(condition, seconds=LONG, every=0.02):
    """Returns the result of condition() as soon as it is true; at the time-out its last, false
    result."""
    end = time.monotonic() + seconds
    while not (so := condition()) and time.monotonic() < end:
        time.sleep(every)
    return so


def let_pass(seconds, reason):
    """Sleeps. Only for a test of time itself, or where the time changes the amount of work but not
    the result. The reason says which."""
    assert reason
    time.sleep(seconds)
