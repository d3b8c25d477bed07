# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Reads a container file of two stages, so that tools/dev/fresh can execute its steps in bare roots: a
machine that tests Outboard need not have a container engine. Knows the instructions that
deploy/container uses, and refuses others. The base image is the bare root, whatever FROM names."""
import json
import os
import re
import shlex

WITHOUT_STEP = {'EXPOSE', 'STOPSIGNAL'}


def instructions(text):
    """Yields (instruction, argument); continued lines are joined, and comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith('#')]
    for line in re.sub(r'\\\n\s*', ' ', '\n'.join(lines)).splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(' ')
            yield word, rest


class Steps:
    """.roots: the commands of each stage, for a shell in the folder of the context, as root. .user,
    .entry and .arguments: how a container is started."""

    def __init__(self, text, results):
        """results: the folder that the second root gets from the first."""
        self.results, self.roots = results, []
        self.folder, self.environment, self.user, self.entry, self.arguments = '/', {}, '0:0', [], []
        for word, rest in instructions(text):
            take = getattr(self, f'take_{word.lower()}', None)
            if not take and word not in WITHOUT_STEP:
                raise ValueError(f'{word}: tools/dev/container_file.py does not know this instruction')
            if take:
                take(rest)

    def add(self, command, folder=None):
        exports = ''.join(f'export {name}={shlex.quote(value)}; ' for name, value in self.environment.items())
        begin = f'cd {folder} && ' if folder else ''
        self.roots[-1].append(f'as_root sh -euc {shlex.quote(exports + begin + "{ " + command + "; }")}')

    def take_from(self, _):
        self.roots.append([])
        self.folder, self.environment, self.user = '/', {}, '0:0'

    def take_workdir(self, rest):
        self.folder = rest
        self.add(f'mkdir -p {rest}')

    def take_env(self, rest):
        self.environment.update(pair.split('=', 1) for pair in shlex.split(rest))

    def take_run(self, rest):
        self.add(rest, self.folder)

    def take_copy(self, rest):
        words = rest.split()
        source, target = words[-2], os.path.join(self.folder, words[-1])
        if words[0].startswith('--from='):
            there = f'{self.results}/{source.strip("/").replace("/", "-")}'
            self.roots[-2].append(f'as_root sh -euc "mkdir -p {self.results}; cp -a {source} {there}"')
            source = there
        self.add(f'mkdir -p {os.path.dirname(target.rstrip("/"))} {target if source == "." else ""}; cp -a {source} {target}')

    def take_user(self, rest):
        self.user = rest

    def take_entrypoint(self, rest):
        self.entry = json.loads(rest)

    def take_cmd(self, rest):
        self.arguments = json.loads(rest)

    def started(self, *arguments):
        """Returns the command of a container that is started with other arguments than its own, or with
        its own if there are none."""
        user, group = self.user.split(':')
        words = [*self.entry, *(arguments or self.arguments)]
        return f'setpriv --reuid {user} --regid {group} --clear-groups {shlex.join(words)}'
