#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Runs the examples in the place that is named (see run.py) and looks for what their README
promises."""

import argparse
import os
import sys

import run as programs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--mode", default="direct")
    parser.add_argument("--server")
    arguments = parser.parse_args()
    try:
        place = programs.Place(os.path.abspath(arguments.build), arguments.mode, arguments.server)
    except FileNotFoundError as missing:
        print(f"skipped: {missing} is not built")
        return programs.SKIPPED
    folder = os.path.join(place.build, "examples")
    picture = os.path.join(folder, "picture.pgm")
    cases = [
        (["devices"], "multiprocessors"),
        (["vector_add"], "1048576 sums, all right: 12345 + 24690 = 37035"),
        (["mandelbrot", picture, "150", "100"], "150 x 100"),
        (["stream_pipeline"], "786432 square roots, all right: sqrt(144) = 12"),
        (["saxpy_driver"], "100000 values, all right: y[100] = 301"),
    ]
    failed = 0
    try:
        for command, promise in cases:
            code, out, err = programs.run(place, [os.path.join(folder, command[0]), *command[1:]], 60)
            good = code == 0 and promise in out
            print(f"{'ok  ' if good else 'FAIL'} {command[0]}")
            if not good:
                failed += 1
                print(f"     exit code {code}, stdout {out!r}, stderr {err!r}")
        with open(picture, "rb") as pgm:
            pixels = pgm.read()
        good = pixels.startswith(b"P5\n150 100\n255\n") and len(pixels) == 15 + 150 * 100 and len(set(pixels)) > 20
        print(f"{'ok  ' if good else 'FAIL'} the picture")
        failed += not good
    finally:
        place.close()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
