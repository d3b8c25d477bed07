#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Runs the CUDA test programs and compares exit code and output with expected/.

direct: the program loads the software device as its libcuda.so.1. same: the programs of which
programs.list says so run direct, over tcp, and over tcp with optimisations off by which errors
could come later; each call must return the same code each time. tcp, unix, tls, shm: one server
is started, and each program runs under `outboard run`; striped and striped-tls: likewise, with
every copy of 1 KiB or more over three stripes. two: two servers are used together, by a Unix socket
and over tcp; two-second: likewise, and the program sees the device of the second one alone. With --server URL no server is started: the
programs run on the one that is named. With --mode native the programs run on whatever
libcuda.so.1 the machine has. --driver: another one for native, or the server's.
"""

import argparse
import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
READY = re.compile(r"listening on (\S+)")
SKIPPED = 77


class Program:
    """A binary: a program in one of its variants."""

    def __init__(self, name, variant, binary, checks):
        self.name, self.variant, self.binary = name, variant, binary
        self.sorted = "sorted" in checks.split()
        self.alone = "alone" in checks.split()
        self.same = "same" in checks.split()
        self.soft = "soft" in checks.split()
        self.differs = "differs" in checks.split()
        self.unstriped = "unstriped" in checks.split()
        self.one = "one" in checks.split()
        self.maps = "maps" in checks.split()
        self.exit = int((re.search(r"exit=(\d+)", checks) or [0, 0])[1])
        self.stderr = (re.search(r"stderr=(.*)", checks) or [None, None])[1]

    def expected_path(self):
        return os.path.join(HERE, "expected", self.name + ".txt")


def read_list():
    """Returns all binaries of programs.list, in its order."""
    programs = []
    with open(os.path.join(HERE, "programs.list"), encoding="utf-8") as table:
        for line in table:
            if not line.strip() or line.startswith("#"):
                continue
            field = [part.strip() for part in line.split("|")]
            for number, variant in enumerate(field[2].split()):
                binary = field[0] + (f"-{variant}" if number else "")
                programs.append(Program(field[0], variant, binary, field[5]))
    return programs


def stop(process):
    """Ends a process and its children, and waits for it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # uninterruptible in the kernel
        process.wait(10)


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def end_with_us():
    """Called in a child: the kernel sends it SIGTERM when the thread that started it ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Server:
    """An outboard-server on a free port, or on a socket in a temporary directory. `driver` is the
    value of its option."""

    def __init__(self, build, transport, wait=20.0, options=(), driver="soft"):
        self.directory = tempfile.TemporaryDirectory(prefix="outboard-programs-")
        stripes = transport.startswith("striped")
        transport = {"striped": "tcp", "striped-tls": "tls"}.get(transport, transport)
        url = {"tcp": "tcp://127.0.0.1:0", "tls": "tls://127.0.0.1:0"}.get(transport)
        url = url or f"{transport}:{self.directory.name}/socket"
        self.environment = {}
        if transport == "tls":
            options = (*options, *self.secure(build))
        if stripes:
            self.environment.update(OUTBOARD_STRIPES="3", OUTBOARD_STRIPE_MIN="1K")
        self.log_path = os.path.join(self.directory.name, "log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [os.path.join(build, "server", "outboard-server"), "--listen", url, "--driver", driver, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=end_with_us)
        end = time.monotonic() + wait
        while not (found := READY.search(self.log())):
            if self.process.poll() is not None or time.monotonic() > end:
                text = self.log()
                self.stop()
                raise RuntimeError(f"the server did not say that it is ready within {wait} s:\n{text}")
            time.sleep(0.02)  # poll
        self.url = found[1]

    def secure(self, build):
        """Makes a certificate and a token. Sets self.environment for clients and returns the
        server's options."""
        outboard = os.path.join(build, "tools", "outboard")
        cert, key, tokens = (os.path.join(self.directory.name, name) for name in ("cert.pem", "key.pem", "tokens"))
        subprocess.run([outboard, "cert", "--cert", cert, "--key", key], check=True, stdout=subprocess.DEVNULL)
        made = subprocess.run([outboard, "token", "create", "--file", tokens, "--name", "tests"], check=True, stdout=subprocess.PIPE, text=True)
        self.environment = {"OUTBOARD_TLS_CA": cert, "OUTBOARD_TOKEN": made.stdout.strip()}
        return ["--tls-cert", cert, "--tls-key", key, "--tokens", tokens]

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def stop(self):
        """Stops the server and its child processes: by SIGTERM, and then by force."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(3)
        stop(self.process)
        self.directory.cleanup()


class Place:
    """Where programs run: how to start one, and with what environment."""

    def __init__(self, build, mode, url=None, driver=None):
        self.build, self.mode = build, mode
        self.servers, self.server, self.directory = [], None, None
        self.environment = dict(os.environ, LC_ALL="C")
        self.environment.setdefault("OUTBOARD_TIMEOUT", "60")  # seconds; long enough for a loaded machine
        self.search(os.path.join(build, "lib"))  # exists in a bundle only: its libraries
        if preload := self.environment.get("OUTBOARD_TEST_PRELOAD"):
            self.environment["LD_PRELOAD"] = preload  # a program without the sanitizer must load its runtime first
        self.prefix = []
        if mode == "native" and not driver:
            return
        if mode in ("direct", "native"):
            device = os.path.abspath(driver) if mode == "native" else os.path.join(build, "softdevice", "liboutboard-softdevice.so")
            if not os.path.exists(device):
                raise FileNotFoundError(device)
            self.directory = tempfile.TemporaryDirectory(prefix="outboard-direct-")
            os.symlink(device, os.path.join(self.directory.name, "libcuda.so.1"))
            self.search(self.directory.name)
            return
        if not url:
            for transport in ("unix", "tcp") if mode.startswith("two") else (mode,):
                self.servers.append(Server(build, transport, driver=driver or "soft"))
                self.environment.update(self.servers[-1].environment)
            self.server = self.servers[0]
            url = "+".join(server.url for server in self.servers)
        if mode == "two-second":
            self.environment["CUDA_VISIBLE_DEVICES"] = "1"
        self.prefix = [os.path.join(build, "tools", "outboard"), "run", "--server", url, "--"]

    def search(self, folder):
        """Makes the loader search this folder first, if it exists."""
        if os.path.isdir(folder):
            path = self.environment.get("LD_LIBRARY_PATH")
            self.environment["LD_LIBRARY_PATH"] = folder + (":" + path if path else "")

    def binary(self, name):
        """Returns the path of a program. A sanitized build runs the programs of a plain build:
        only the libraries are instrumented, not the output of nvcc."""
        return os.path.join(os.environ.get("OUTBOARD_TEST_PROGRAMS") or os.path.join(self.build, "tests", "programs"), name)

    def command(self, *command):
        return [*self.prefix, *command]

    def start(self, *command, **options):
        return subprocess.Popen(self.command(*command), env=self.environment, start_new_session=True, **options)

    def close(self):
        for server in self.servers:
            server.stop()
        if self.directory:
            self.directory.cleanup()


def run(place, command, timeout):
    """Runs a command. Returns its exit code (None: timed out), stdout and stderr."""
    process = place.start(*command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        stop(process)
        try:
            out, err = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            out, err = b"", b"it did not end when it was killed"
        code = None
    return code, out.decode(errors="replace"), err.decode(errors="replace")


def server_logs(place):
    """The last lines of each server's log."""
    return [f"server {number}: {line}" for number, server in enumerate(place.servers) for line in server.log().splitlines()[-8:]]


def observe(place, program, timeout):
    """Runs a program. Returns its exit code (None: timed out), the lines of stdout, and stderr."""
    code, out, err = run(place, [place.binary(program.binary)], timeout)
    return code, sorted(out.splitlines()) if program.sorted else out.splitlines(), err


def complaints_of(program, code, lines, err, timeout, record=False):
    """Returns a list of complaints, empty if exit code and output are as expected."""
    complaints = []
    if code is None:
        complaints.append(f"not finished after {timeout:g} s")
    elif code != program.exit:
        complaints.append(f"exit code {code}, not {program.exit}")
    if program.stderr and program.stderr not in err:
        complaints.append(f"stderr lacks: {program.stderr}")
    if record and not complaints:
        with open(program.expected_path(), "w", encoding="utf-8") as expected:
            expected.write("".join(line + "\n" for line in lines))
    elif not os.path.exists(program.expected_path()):
        complaints.append(f"no {program.expected_path()}")
    else:
        with open(program.expected_path(), encoding="utf-8") as expected:
            want = expected.read().splitlines()
        if lines != want:
            at = next((i for i, pair in enumerate(zip(lines, want)) if pair[0] != pair[1]), min(len(lines), len(want)))
            complaints.append(f"output line {at + 1}: {lines[at:at + 1]}, not {want[at:at + 1]}")
    if complaints:
        complaints += ["stderr: " + line for line in err.splitlines()[-12:]]
    return complaints


# OUTBOARD_OPT values that could change which call returns an error: every call waits for its
# result; no code is trusted; the client answers no call itself.
SAME_WAYS = ("", "-async", "-trust", "-local")


def codes_of(place, program, timeout):
    """Runs a program. Returns (exit code, output, code of each call that it reports), and the other
    lines of stderr."""
    code, lines, err = observe(place, program, timeout)
    notes = [line for line in err.splitlines() if line.startswith("code: ")]
    return (code, lines, notes), [line for line in err.splitlines() if not line.startswith("code: ")]


def difference(here, there):
    """Returns one line about the first difference."""
    for what, a, b in (("output", here[1], there[1]), ("codes", here[2], there[2])):
        if a != b:
            at = next((i for i, pair in enumerate(zip(a, b)) if pair[0] != pair[1]), min(len(a), len(b)))
            return f"{what}, line {at + 1}: {b[at:at + 1]}, direct {a[at:at + 1]}"
    return f"exit code {there[0]}, direct {here[0]}" if here[0] != there[0] else None


class SamePlaces:
    """Runs programs on a device in their own process, and in several ways through one server."""

    def __init__(self, build):
        self.direct = Place(build, "direct")
        server = Place(build, "tcp")
        self.places = {"tcp": server}
        for way in SAME_WAYS[1:]:
            place = self.places["tcp " + way] = Place(build, "tcp", server.server.url)
            place.environment["OUTBOARD_OPT"] = ",".join(part for part in (os.environ.get("OUTBOARD_OPT"), way) if part)
        for place in (self.direct, *self.places.values()):
            place.environment["OUTBOARD_TEST_CODES"] = "1"

    def check(self, program, timeout):
        """Runs a program in all places. Returns a list of complaints."""
        here, err = codes_of(self.direct, program, timeout)
        complaints = complaints_of(program, here[0], here[1], "\n".join(err), timeout)
        if not here[2] and not here[1]:
            complaints.append("it notes no code of any call")
        for name, place in self.places.items():
            there, err = codes_of(place, program, timeout)
            if different := difference(here, there):
                complaints += [f"{name}: {different}", *(f"{name}: stderr: {line}" for line in err[-6:])]
        return complaints

    def close(self):
        for place in (self.direct, *self.places.values()):
            place.close()


def check(place, program, timeout, record):
    """Runs a program. Returns a list of complaints."""
    binary = place.binary(program.binary)
    if not os.path.exists(binary):
        return [f"{binary} is not built"]
    complaints = complaints_of(program, *observe(place, program, timeout), timeout, record)
    return complaints and complaints + server_logs(place)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="the meson build directory")
    parser.add_argument("--mode", default="direct", choices=["direct", "same", "tcp", "unix", "tls", "shm", "striped", "striped-tls", "two", "two-second", "native"])
    parser.add_argument("--driver", help="native: this libcuda.so.1; else what the server stands on: soft (default), auto or a path")
    parser.add_argument("--codec", help="pack every copy with this codec (OUTBOARD_CODEC)")
    parser.add_argument("--no-vmm", action="store_true", help="the server's driver refuses virtual memory management")
    parser.add_argument("--server", help="run on this server instead of starting one")
    parser.add_argument("--all", action="store_true", help="all programs in all variants")
    parser.add_argument("--tap", action="store_true", help="print the Test Anything Protocol")
    parser.add_argument("--record", action="store_true", help="write expected/ from programs that found themselves right")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for each program (default 60)")
    parser.add_argument("names", nargs="*", help="programs or binaries (reduce, reduce-debug)")
    arguments = parser.parse_args()

    programs = read_list()
    known = {p.binary for p in programs} | {p.name for p in programs}
    if unknown := [n for n in arguments.names if n not in known]:
        parser.error(f"not in programs.list: {' '.join(unknown)}")
    if not arguments.all:
        exact = {p.binary for p in programs if p.binary in arguments.names}
        programs = [p for p in programs if p.binary in exact or p.name in set(arguments.names) - exact]
    programs = [p for p in programs if not (p.soft and arguments.mode == "native") and (p.same or arguments.mode != "same")
                and not (p.unstriped and arguments.mode.startswith("striped"))
                and not (p.one and arguments.mode == "two")
                and not (p.maps and (arguments.no_vmm or os.environ.get("OUTBOARD_SOFT_MEMCHECK") == "1"))]
    if not programs:
        parser.error("name a program, or give --all")

    if arguments.codec:
        os.environ["OUTBOARD_CODEC"] = arguments.codec
    if arguments.no_vmm:
        os.environ["OUTBOARD_FAULT"] = "cuMemAddressReserve:*=801"
    try:
        build = os.path.abspath(arguments.build)
        place = SamePlaces(build) if arguments.mode == "same" else Place(build, arguments.mode, arguments.server, arguments.driver)
    except FileNotFoundError as missing:
        print(f"1..0 # SKIP {missing} is not built" if arguments.tap else f"skipped: {missing} is not built")
        return 0 if arguments.tap else SKIPPED
    except RuntimeError as problem:
        print("Bail out! " * arguments.tap + str(problem))
        return 1
    failed = 0
    try:
        if arguments.tap:
            print(f"1..{len(programs)}")
        for number, program in enumerate(programs, 1):
            begin = time.monotonic()
            same = arguments.mode == "same"
            complaints = place.check(program, arguments.timeout) if same else check(place, program, arguments.timeout, arguments.record)
            failed += bool(complaints)
            if arguments.tap:
                print(f"{'not ' * bool(complaints)}ok {number} {program.binary}")
            else:
                print(f"{'FAIL' if complaints else 'ok  '} {program.binary} ({time.monotonic() - begin:.2f} s)")
            for line in complaints:
                print(f"# {line}" if arguments.tap else f"     {line}")
            sys.stdout.flush()
        if not arguments.tap:
            print(f"{len(programs) - failed} of {len(programs)} {arguments.mode}")
    finally:
        place.close()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
