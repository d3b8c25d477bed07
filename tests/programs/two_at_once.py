#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Several programs at the same time on one server: each must give the output it gives alone."""

import argparse
import os
import subprocess
import sys
import time

import run as programs

PAIRS = [
    ("matmul_tiled", "radix_sort"),
    ("threads_one_stream", "threads_many_streams"),
    ("illegal_address", "vector_add"),
    ("reduce", "reduce"),
    ("device_printf", "device_assert"),
    ("out_of_memory", "keep_busy"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--mode", default="tcp")
    parser.add_argument("--server")
    arguments = parser.parse_args()
    table = {p.binary: p for p in programs.read_list()}
    place = programs.Place(os.path.abspath(arguments.build), arguments.mode, arguments.server)
    failed = 0
    try:
        for pair in PAIRS:
            running = [place.start(place.binary(name), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE) for name in pair]
            end = time.monotonic() + 60
            for name, process in zip(pair, running):
                program = table[name]
                try:
                    out, err = process.communicate(timeout=max(1, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    programs.stop(process)
                    out, err = process.communicate()
                    err += b"\nnot finished after 60 s"
                lines = out.decode(errors="replace").splitlines()
                lines = sorted(lines) if program.sorted else lines
                with open(program.expected_path(), encoding="utf-8") as expected:
                    good = process.returncode == program.exit and lines == expected.read().splitlines()
                print(f"{'ok  ' if good else 'FAIL'} {name} beside {pair[1] if name == pair[0] else pair[0]}")
                if not good:
                    failed += 1
                    print(f"     exit code {process.returncode}\n{err.decode(errors='replace')}")
                sys.stdout.flush()
    finally:
        place.close()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
