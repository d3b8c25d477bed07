# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The report of tools/dev/gpu-check, in three files that are good at any moment, also when the
check is cut off:

    NAME.md          one page: what was looked at, what failed and why, what was not reached
    NAME.details.md  everything as it went, outputs too; the same is printed
    NAME.jsonl       one JSON object a line: stage, name, ok (true, false, null for skipped), seconds, and what was seen

A later call may go on with the same report: what it has stays, and what is looked at again
replaces what was seen before.
"""
import json
import os
import pathlib
import time

OUTPUT_LINES = 60     # of what failed, in the details
PAGE_LINES = 30       # of a list on the page
PAGE_COLUMNS = 240    # of a line of such a list


class Report:
    def __init__(self, out, resume):
        self.path = pathlib.Path(out)
        self.rows = self.earlier() if resume else []
        how = 'a' if resume else 'w'
        self.details = open(self.path.with_suffix('.details.md'), how, encoding='utf-8')
        self.lines = open(self.path.with_suffix('.jsonl'), how, encoding='utf-8')
        self.stage, self.left = '', time.monotonic  # what has it tells how many seconds are left
        self.rewrite()

    def earlier(self):
        """What calls before this one have seen; a last line that was cut off is left out."""
        rows = []
        path = self.path.with_suffix('.jsonl')
        if path.exists():
            text = path.read_text(encoding='utf-8')
            for line in text.splitlines():
                try:
                    rows.append(json.loads(line))
                except ValueError:
                    continue
            if text and not text.endswith('\n'):
                with open(path, 'a', encoding='utf-8') as file:
                    file.write('\n')
        return rows

    # ---- while it goes ----

    def say(self, text=''):
        print(text, flush=True)
        self.details.write(text + '\n')
        self.details.flush()

    def text(self, lines):
        """Output as it was."""
        self.say('```')
        self.say(lines.strip('\n'))
        self.say('```')

    def note(self, name, ok=True, seconds=None, **seen):
        """A line of JSON alone."""
        row = {'stage': self.stage, 'name': name, 'ok': ok, 'seconds': seconds and round(seconds, 3), **seen}
        self.rows.append(row)
        self.lines.write(json.dumps(row) + '\n')
        self.lines.flush()

    def record(self, name, ok, seconds=None, text='', output='', reached=True):
        """One thing that was looked at: ok True, False, or None for skipped; with reached=False
        there was no time for it. The output of what failed is kept."""
        word = {True: 'ok', False: '**FAILED**' if reached else '**not reached**', None: 'skipped'}[ok]
        took = f'{seconds:.1f} s, ' if seconds is not None else ''
        self.say(f'- {word}: {name} ({took}{self.left():.0f} s left)' + (f': {text}' if text else ''))
        tail = '\n'.join(output.strip().splitlines()[-OUTPUT_LINES:]) if ok is False else ''
        if tail:
            self.text(tail)
        self.note(name, ok, seconds, text=text, counted=True, reached=reached, **({'output': tail} if tail else {}))
        self.rewrite()

    # ---- what is known ----

    def seen(self):
        """{(stage, name): row} of what was looked at, the newest of each."""
        newest = {}
        for row in self.rows:
            if row.get('counted'):
                newest.pop((row['stage'], row['name']), None)
                newest[row['stage'], row['name']] = row
            elif row['name'] == 'begins':  # what says of a whole stage that it was not reached holds no longer
                newest.pop((row['stage'], 'the whole stage'), None)
        return newest

    def reached(self, name, stage=None):
        """Whether it was looked at to its end, whatever came of it."""
        row = self.seen().get((stage or self.stage, name))
        return bool(row) and row['reached']

    def whole(self, stage):
        """Whether the stage was gone through and nothing of it was left."""
        ends = [row for row in self.rows if row['stage'] == stage and row['name'] == 'the stage']
        return bool(ends) and all(row['reached'] for (of, _), row in self.seen().items() if of == stage)

    def counts(self, stage=None):
        """(right, failed, skipped, not reached)"""
        rows = [row for (of, _), row in self.seen().items() if stage in (None, of)]
        left = sum(not row['reached'] for row in rows)
        return (sum(row['ok'] is True for row in rows), sum(row['ok'] is False for row in rows) - left, sum(row['ok'] is None for row in rows), left)

    # ---- the page ----

    def rewrite(self):
        """Writes the page anew; it is never seen half written."""
        new = self.path.with_suffix('.md.new')
        new.write_text('\n'.join(self.page()) + '\n', encoding='utf-8')
        os.replace(new, self.path)

    def page(self):
        calls = [row for row in self.rows if row['name'] == 'the call']
        yield f'# Outboard on a GPU, {calls[0]["begun"]}, {calls[0]["version"]}' if calls else '# Outboard on a GPU'
        yield ''
        for row in self.rows:
            if row['stage'] == 'machine' and row['name'] in ('GPU', 'processor', 'packages', 'driver library'):
                yield f'- {row["name"]}: {row["text"]}'
        right, failed, skipped, left = self.counts()
        yield f'- {right + failed + skipped} looked at: {right} right, {failed} failed, {skipped} skipped; {left} not reached'
        if len(calls) > 1:
            yield f'- {len(calls)} calls, the last of {calls[-1]["begun"]}'
        if left or calls and not all(self.whole(stage) for call in calls for stage in call['stages']):
            yield f'- go on where it ended: `tools/dev/gpu-check -o {self.path} --resume`, with the other options as before'
        yield ''
        yield '| stage | s | right | failed | skipped | not reached |'
        yield '|---|---|---|---|---|---|'
        for stage in dict.fromkeys(row['stage'] for row in self.rows if row['stage']):
            seconds = sum(row['seconds'] or 0 for row in self.rows if row['stage'] == stage and row['name'] == 'the stage')
            yield f'| {stage} | {seconds:.1f} | ' + ' | '.join(str(n) for n in self.counts(stage)) + ' |'
        rows = self.seen().values()
        yield from self.list_of('Failed', [row for row in rows if row['ok'] is False and row['reached']])
        yield from self.list_of('Not reached', [row for row in rows if not row['reached']])
        yield from self.list_of('Skipped', [row for row in rows if row['ok'] is None])
        yield ''
        yield f'All outputs: {self.path.with_suffix(".details.md").name}; each thing a line of JSON: {self.path.with_suffix(".jsonl").name}'

    @staticmethod
    def list_of(title, rows):
        if rows:
            yield f'\n## {title}\n'
        for row in rows[:PAGE_LINES]:
            line = f'- {row["stage"]}: {row["name"]}' + (f': {row["text"]}' if row['text'] else '')
            yield line if len(line) <= PAGE_COLUMNS else line[:PAGE_COLUMNS - 3] + '...'
        if len(rows) > PAGE_LINES:
            yield f'- and {len(rows) - PAGE_LINES} more'

    def close(self):
        self.rewrite()
        self.details.close()
        self.lines.close()
