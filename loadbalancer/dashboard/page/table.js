// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
//
// Tables that draw only the rows in sight, so that thousands of GPUs cost no more than a screenful.
import { collator, h, percent } from './base.js';

const ROW = 36, SPARE = 6; // pixels of a row; rows drawn beyond the edges

// ---- tables ----

/**
 * A table that draws the rows in sight. A column: title, value(row) to sort by, text(row) or
 * fill(cell, row), className. Row i is always drawn in element i modulo their number, so the focus
 * stays where it is while figures change.
 */
export class Table {
	constructor(host, caption, columns, { key, empty, quiet = () => false, sort = null, down = false }) {
		Object.assign(this, { host, columns, key, empty, quiet, sort, down, rows: [], lines: [], find: '' });
		this.body = h('tbody');
		this.heads = columns.map((column, i) => this.head(column, i));
		this.table = h('table', {}, h('caption', { textContent: caption }), h('thead', {}, h('tr', {}, ...this.heads)), this.body);
		this.scroll = h('div', { className: 'scroll', tabIndex: 0, role: 'region', ariaLabel: caption }, this.table);
		this.none = h('p', { className: 'none' });
		host.append(this.scroll, this.none);
		this.above = this.gap();
		this.below = this.gap();
		this.scroll.addEventListener('scroll', () => this.draw(), { passive: true });
	}

	gap() { return h('tr', { className: 'gap', ariaHidden: 'true' }, h('td')); }

	head(column, i) {
		const head = h('th', { scope: 'col', className: column.className ?? '' });
		if (column.width) head.style.width = column.width;
		if (!column.value) { head.append(h('span', { textContent: column.title })); return head; }
		head.append(h('button', { type: 'button', textContent: column.title, onclick: () => {
			this.down = this.sort === i ? !this.down : Boolean(column.className?.includes('n'));
			this.sort = i;
			this.set(this.all);
		} }));
		return head;
	}

	set(all) {
		const words = this.find.toLowerCase().split(/\s+/).filter(Boolean);
		this.all = all;
		this.rows = words.length ? all.filter((row) => { const text = this.words(row); return words.every((word) => text.includes(word)); }) : all;
		this.heads.forEach((head, i) => { if (i === this.sort) head.ariaSort = this.down ? 'descending' : 'ascending'; else head.removeAttribute('aria-sort'); });
		if (this.sort != null) {
			const { value } = this.columns[this.sort], sign = this.down ? -1 : 1;
			const order = (a, b) => (typeof a === 'string' && typeof b === 'string' ? collator.compare(a, b) : (a ?? -1) - (b ?? -1));
			this.rows = [...this.rows].sort((a, b) => sign * order(value(a), value(b)));
		}
		this.scroll.hidden = !this.rows.length;
		this.none.hidden = Boolean(this.rows.length);
		this.none.textContent = all.length ? 'Nothing matches.' : this.empty;
		this.draw();
	}

	words(row) { return Object.values(row).filter((v) => typeof v === 'string').join(' ').toLowerCase(); }

	/** The rows in sight; a table is never higher than the window. */
	seen() {
		const top = Math.min(this.scroll.scrollTop, this.rows.length * ROW);
		return [Math.max(0, Math.floor(top / ROW) - SPARE), Math.min(this.rows.length, Math.ceil((top + innerHeight) / ROW) + SPARE)];
	}

	draw() {
		const [first, end] = this.seen(), n = end - first;
		this.table.ariaRowCount = this.rows.length + 1;
		while (this.lines.length < n) this.lines.push(h('tr', {}, ...this.columns.map((column) => h('td', { className: column.className ?? '' }))));
		const shown = [];
		for (let i = first; i < end; i++) {
			const line = this.lines[i % this.lines.length];
			this.fill(line, this.rows[i], i);
			shown.push(line);
		}
		this.above.firstChild.style.height = `${first * ROW}px`;
		this.below.firstChild.style.height = `${(this.rows.length - end) * ROW}px`;
		const want = [this.above, ...shown, this.below];
		if (want.length !== this.body.children.length || want.some((line, i) => this.body.children[i] !== line)) this.body.replaceChildren(...want);
		this.columns.forEach((column, c) => { if (column.late) shown.forEach((line) => column.late(line.children[c], line.row)); });
	}

	fill(line, row, i) {
		line.row = row;
		line.ariaRowIndex = i + 2;
		line.className = this.quiet(row) ? 'quiet' : '';
		this.columns.forEach((column, c) => {
			const cell = line.children[c];
			if (column.fill) { column.fill(cell, row); return; }
			const text = String(column.text(row) ?? '–');
			if (cell.textContent !== text) { cell.textContent = text; cell.title = text; }
		});
	}
}

/** Contents of cells. Each makes its elements once and then only changes them. */
export function opener(cell, text, open, bad = false) {
	if (!cell.firstChild) cell.append(h('button', { type: 'button', className: 'name' }));
	const button = cell.firstChild;
	if (button.textContent !== text) { button.textContent = text; button.title = text; }
	button.classList.toggle('bad', bad);
	button.onclick = open;
}
export function meter(cell, ratio, bad) {
	if (!cell.firstChild) cell.append(h('div', { className: 'meter', ariaHidden: 'true' }, h('i')), h('span'));
	cell.firstChild.className = bad ? 'meter bad' : 'meter';
	cell.firstChild.firstChild.style.width = `${Math.min(1, ratio ?? 0) * 100}%`;
	cell.lastChild.textContent = percent(ratio);
	cell.lastChild.className = bad ? 'bad' : '';
}
const STATES = { ready: 'good', running: 'good', cordoned: 'warn', draining: 'warn', granted: 'warn', kept: 'warn', unknown: 'warn', moving: 'warn', joining: 'warn', silent: 'bad', lost: 'bad', unwell: 'bad' };
export function pill(cell, text) {
	if (!cell.firstChild) cell.append(h('span'));
	cell.firstChild.textContent = text;
	cell.firstChild.title = text;
	cell.firstChild.className = `pill ${STATES[text.split(' ')[0]] ?? ''}`;
}
export function marked(cell, text, bad) {
	cell.textContent = text;
	cell.classList.toggle('bad', Boolean(bad));
}
