# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""What the scripts of this folder share. They run on a device that may compute nothing (a dry run),
so they print shapes and types and no results of kernels."""
import time


def timed(step, wait, n, warm=5):
    """Runs `step` n times and prints the median time of one. `wait` waits for the device; it is a
    part of each step, as reading the loss is in a training loop."""
    for _ in range(warm):
        step()
    wait()
    took = []
    for _ in range(n):
        began = time.perf_counter()
        step()
        wait()
        took.append(time.perf_counter() - began)
    print(f'step_ms {sorted(took)[n // 2] * 1e3:.3f}')
