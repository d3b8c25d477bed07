# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""The report of tools/dev/gpu-check, in three files that are valid at any time, also if the check
is interrupted:

    NAME.md          one page: what was checked, what failed and why, what was not reached
    NAME.details.md  all items in order, with their outputs; the same text is printed
    NAME.jsonl       one JSON object per line: stage, name, ok (true, false, null for skipped),
                     seconds, and results

A later call can continue the report: its items stay, and an item that is checked again replaces
its earlier result.
"""
import json
import os
import pathlib
import time

OUTPUT_LINES = 60     # lines of a failed item's output in the details
PAGE_LINES = 30       # lines of a list on the page
PAGE_COLUMNS = 240    # columns of a line of such a list


class Report:
    def __init__(self, out, resume):
        self.path = pathlib.Path(out)
        self.rows = self.earlier() if resume else []
        how = 'a' if resume else 'w'
        self.details = open(self.path.with_suffix('.details.md'), how, encoding='utf-8')
        self.lines = open(self.path.with_suffix('.jsonl'), how, encoding='utf-8')
        self.stage, self.left = '', time.monotonic  # the owner sets left: it returns the seconds that are left
        self.rewrite()

    def earlier(self):
        """Returns the rows of earlier calls without an incomplete last line, which it ends."""
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

    # ---- during the check ----

    def say(self, text=''):
        print(text, flush=True)
        self.details.write(text + '\n')
        self.details.flush()

    def text(self, lines):
        """Adds the lines as a code block to the details."""
        self.say('```')
        self.say(lines.strip('\n'))
        self.say('```')

    def note(self, name, ok=True, seconds=None, **seen):
        """Adds a row to NAME.jsonl only."""
        row = {'stage': self.stage, 'name': name, 'ok': ok, 'seconds': seconds and round(seconds, 3), **seen}
        self.rows.append(row)
        self.lines.write(json.dumps(row) + '\n')
        self.lines.flush()

    def record(self, name, ok, seconds=None, text='', output='', reached=True):
        """Records an item. ok: True, False, or None for skipped. reached=False: there was no time
        for it. Keeps the end of a failed item's output."""
        word = {True: 'ok', False: '**FAILED**' if reached else '**not reached**', None: 'skipped'}[ok]
        took = f'{seconds:.1f} s, ' if seconds is not None else ''
        self.say(f'- {word}: {name} ({took}{self.left():.0f} s left)' + (f': {text}' if text else ''))
        tail = '\n'.join(output.strip().splitlines()[-OUTPUT_LINES:]) if ok is False else ''
        if tail:
            self.text(tail)
        self.note(name, ok, seconds, text=text, counted=True, reached=reached, **({'output': tail} if tail else {}))
        self.rewrite()

    # ---- results so far ----

    def seen(self):
        """Returns {(stage, name): the newest row} of the recorded items."""
        newest = {}
        for row in self.rows:
            if row.get('counted'):
                newest.pop((row['stage'], row['name']), None)
                newest[row['stage'], row['name']] = row
            elif row['name'] == 'begins':  # the stage has started: an earlier row that it was not reached is void
                newest.pop((row['stage'], 'the whole stage'), None)
        return newest

    def reached(self, name, stage=None):
        """Whether the item was finished, with any result."""
        row = self.seen().get((stage or self.stage, name))
        return bool(row) and row['reached']

    def whole(self, stage):
        """Whether the stage has ended and all its items were reached."""
        ends = [row for row in self.rows if row['stage'] == stage and row['name'] == 'the stage']
        return bool(ends) and all(row['reached'] for (of, _), row in self.seen().items() if of == stage)

    def counts(self, stage=None):
        """Returns the numbers of items: (right, failed, skipped, not reached)."""
        rows = [row for (of, _), row in self.seen().items() if stage in (None, of)]
        left = sum(not row['reached'] for row in rows)
        return (sum(row['ok'] is True for row in rows), sum(row['ok'] is False for row in rows) - left, sum(row['ok'] is None for row in rows), left)

    # ---- the page ----

    def rewrite(self):
        """Replaces the page by a rename, so that it is never incomplete."""
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
