#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""Finds circles among the sources: files that include one another, directly or through others.

The unit is an object: foo.c, foo.h, foo.cu and foo.cuh of one folder, and its private header
foo_inside.h. The objects of a circle cannot be understood, tested or moved one at a time. To remove
a circle, move the structure that both objects need into a header below both, or let the lower object
call through a list of listeners that the upper one joins. Folders are checked in the same way: if
server/worker uses server/layers, then nothing in server/layers may use server/worker.

Called by check-style. As a program:

    tools/dev/circles.py              print the circles
    tools/dev/circles.py --picture    write the picture of the folders into docs/ARCHITECTURE.md
"""
import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
SUFFIXES = {'.c', '.h', '.cu', '.cuh'}

Edges = dict[str, dict[str, list[str]]]


def object_of(path: str) -> str:
    return re.sub(r'_inside$', '', str(pathlib.PurePosixPath(path).with_suffix('')))


def graph(paths: list[str], read=lambda path: pathlib.Path(path).read_text(encoding='utf-8')) -> Edges:
    """Returns {object: {included object: [file:line of each include]}}."""
    known = set(paths)
    edges: Edges = {object_of(path): {} for path in paths}
    for path in paths:
        for number, line in enumerate(read(path).split('\n'), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            beside = str(pathlib.PurePosixPath(path).parent / match.group(1))
            target = next((name for name in (match.group(1), beside) if name in known), None)
            if target and object_of(target) != object_of(path):
                edges[object_of(path)].setdefault(object_of(target), []).append(f'{path}:{number}')
    return edges


def folders(edges: Edges) -> Edges:
    """The same for folders, whose names end in a slash."""
    found: Edges = {}
    for name, below in edges.items():
        folder = name.rpartition('/')[0] + '/'
        found.setdefault(folder, {})
        for other, where in below.items():
            target = other.rpartition('/')[0] + '/'
            if target != folder:
                found[folder].setdefault(target, []).extend(where)
                found.setdefault(target, {})
    return found


def circles(edges: Edges) -> list[list[str]]:
    """Returns the strongly connected components of more than one object (Tarjan's algorithm without
    recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_, stack, found = set(), [], []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        open_.add(root)
        while work:
            node, below = work[-1]
            for other in below:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    open_.add(other)
                    work.append((other, iter(edges[other])))
                    break
                if other in open_:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members = []
                    while not members or members[-1] != node:
                        members.append(stack.pop())
                        open_.discard(members[-1])
                    if len(members) > 1:
                        found.append(sorted(members))
    return sorted(found)


def closing(edges: Edges, members: list[str]) -> list[str]:
    """Returns a shortest circle through the first member: "a -> b (a.c:3)"."""
    start, before = members[0], {}
    queue = [start]
    for node in queue:
        for other in edges[node]:
            if other == start:
                path = [(node, start)]
                while node != start:
                    path.append((before[node], node))
                    node = before[node]
                return [f'{a} -> {b} ({edges[a][b][0]})' for a, b in reversed(path)]
            if other in members and other not in before:
                before[other] = node
                queue.append(other)
    return []


def problems(paths: list[str], read=None):
    """Yields (file:line, what is wrong) for each circle."""
    objects = graph(paths, read) if read else graph(paths)
    for edges in objects, folders(objects):
        for members in circles(edges):
            steps = closing(edges, members)
            yield re.search(r'\((.*)\)$', steps[0]).group(1), f'files include one another in a circle: {" ".join(members)}; one way round: {", ".join(steps)}'


# ---- the picture of the folders ----

PAGE = pathlib.Path('docs/ARCHITECTURE.md')
BEGIN, END = '<!-- picture of the folders: tools/dev/circles.py --picture -->\n```\n', '```\n<!-- end of the picture -->'
ASIDE = ('tests/', 'examples/')
COLUMNS = 100


def levels(edges: Edges) -> dict[str, int]:
    """Returns {folder: level}: 0 if it includes no other folder, else one above the highest level
    that it includes. There must be no circle."""
    found: dict[str, int] = {}

    def level(name: str) -> int:
        if name not in found:
            found[name] = 1 + max(map(level, edges[name]), default=-1)
        return found[name]

    for name in edges:
        level(name)
    return found


def reduced(edges: Edges) -> dict[str, list[str]]:
    """Returns {folder: included folders}, without those that it also reaches through another
    one."""
    below: dict[str, set[str]] = {}

    def reach(name: str) -> set[str]:
        if name not in below:
            below[name] = set(edges[name]).union(*map(reach, edges[name]))
        return below[name]

    return {name: sorted(o for o in edges[name] if not any(o in reach(other) for other in edges[name])) for name in edges}


def picture(paths: list[str], read=lambda path: pathlib.Path(path).read_text(encoding='utf-8')) -> str:
    """Returns the picture: a block of lines for each level, the highest first, with a line for each
    folder."""
    edges = folders(graph([path for path in paths if not path.startswith(ASIDE)], read))
    level, arrows = levels(edges), reduced(edges)
    wide = max(map(len, edges))
    lines = []
    for at in range(max(level.values()), -1, -1):
        lines.append('─' * COLUMNS if lines else '')
        for name in sorted(name for name in edges if level[name] == at):
            lines.append(f' {at}  {name:{wide}}  ' + ('─► ' + '  '.join(arrows[name]) if arrows[name] else ''))
    return '\n'.join(line.rstrip() for line in lines[1:]) + '\n'


def picture_problems(paths: list[str]):
    """Yields (file:line, what is wrong) if the page has another picture."""
    text = PAGE.read_text(encoding='utf-8')
    if circles(folders(graph(paths))):
        return  # problems() reports the circle
    if BEGIN + picture(paths) + END not in text:
        yield f'{PAGE}:1', 'the picture of the folders is out of date: run tools/dev/circles.py --picture'


def picture_write(paths: list[str]) -> None:
    """Replaces the picture in the page."""
    before, _, rest = PAGE.read_text(encoding='utf-8').partition(BEGIN)
    PAGE.write_text(before + BEGIN + picture(paths) + END + rest.partition(END)[2], encoding='utf-8')


def tracked() -> list[str]:
    names = subprocess.run(['git', 'ls-files'], stdout=subprocess.PIPE, text=True, check=True).stdout.split('\n')
    return [name for name in names if pathlib.PurePosixPath(name).suffix in SUFFIXES and pathlib.Path(name).is_file()]


def main() -> int:
    if sys.argv[1:] == ['--picture']:
        picture_write(tracked())
        return 0
    objects = graph(tracked())
    for edges in objects, folders(objects):
        for members in circles(edges):
            print(' '.join(members))
            for a in members:
                for b in members:
                    for where in edges[a].get(b, []):
                        print(f'    {a} -> {b}  {where}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
