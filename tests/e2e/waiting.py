# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""How tests wait. No outcome may depend on how fast the machine is: a test waits until something is so, and the time-out only ends a test that hangs.

tools/dev/check-style refuses time.sleep in tests outside this file.
"""
import time

LONG = 120  # seconds: a machine that needs more is taken to hang
# Seconds: what is said to happen "at once". It only has to be told from what waits for a time-out, which tests set to a minute or more.
AT_ONCE = 30


def until(condition, seconds=LONG, every=0.02):
    """What condition() gives as soon as it is true; its last answer, which is false, when the time is over."""
    end = time.monotonic() + seconds
    while not (so := condition()) and time.monotonic() < end:
        time.sleep(every)
    return so


def let_pass(seconds, reason):
    """Lets time pass where time itself is what the test is about, or where more or less of it changes the work and not the outcome. The reason says which."""
    assert reason
    time.sleep(seconds)
