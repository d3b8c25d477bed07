// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
//
// The dashboard of a pool. It reads /api/v1/stream, keeps the documents that arrive, and draws the
// section that is shown. Tables draw only the rows that are in sight, so that thousands of GPUs
// cost no more than a screenful. docs/DASHBOARD.md describes the API.

const HOT = 85, FULL = 0.95;              // degrees; part of a GPU's memory
const SILENCE_MS = 20000;                 // the stream sends something every 15 s at least
const ROW = 36, SPARE = 6;                // pixels of a row; rows drawn beyond the edges
const HISTORY_MS = 30000, HISTORY_ASK = 64;
const EVENTS_KEPT = 1000;

const $ = (id) => document.getElementById(id);
const state = {
	servers: [], gpus: [], sessions: [], queue: [], quota: [], events: [], info: {},
	caller: null, arrived: 0, at: null, connected: false,
	history: new Map(), poolHistory: null, detail: null,
};
const byName = new Map(), byUuid = new Map();
const ranks = new Map(); // of server names, in natural order: comparing numbers is faster than names

// ---- words ----

const collator = new Intl.Collator('en', { numeric: true });
const GIB = 2 ** 30;
const size = (bytes) => (bytes == null ? '–' : bytes >= 1024 * GIB ? `${(bytes / 1024 / GIB).toFixed(bytes >= 100 * 1024 * GIB ? 0 : 1)} TiB` : bytes >= 10 * GIB || !bytes ? `${Math.round(bytes / GIB)} GiB` : `${(bytes / GIB).toFixed(1)} GiB`);
const percent = (ratio) => (ratio == null ? '–' : `${Math.round(ratio * 100)} %`);
const degrees = (celsius) => (celsius == null ? '–' : `${celsius} °C`);
const watts = (power) => (power == null ? '–' : power >= 1e6 ? `${(power / 1e6).toFixed(2)} MW` : power >= 10000 ? `${(power / 1000).toFixed(1)} kW` : `${Math.round(power)} W`);
const counted = (n, one, many = `${one}s`) => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
function span(seconds) {
	if (seconds == null) return '–';
	const s = Math.max(0, Math.round(seconds));
	if (s < 120) return `${s} s`;
	if (s < 7200) return `${Math.floor(s / 60)} min`;
	if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
	return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

/** Makes an element; strings and elements become its children. */
function h(tag, properties = {}, ...children) {
	const element = document.createElement(tag);
	for (const [key, value] of Object.entries(properties)) {
		if (key in element) element[key] = value; else element.setAttribute(key, value);
	}
	element.append(...children);
	return element;
}
function say(text) {
	$('said').textContent = text;
	clearTimeout(say.timer);
	say.timer = setTimeout(() => { $('said').textContent = ''; }, 6000);
}

// ---- the API ----

const token = () => sessionStorage.getItem('outboard-token');
async function call(path, options = {}) {
	const headers = { ...(token() && { Authorization: `Bearer ${token()}` }), ...options.headers };
	const answer = await fetch(`/api/v1/${path}`, { ...options, headers, cache: 'no-store' });
	if (answer.ok) return answer;
	let why = { text: `the balancer answered ${answer.status}`, hint: '' };
	try { why = (await answer.json()).error; } catch { /* a proxy's page */ }
	throw Object.assign(new Error(why.text), { status: answer.status, hint: why.hint });
}
const command = (path, body) => call(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: body ? JSON.stringify(body) : '' });

const ratio = (part, whole) => (part == null || !whole ? null : part / whole);

/** Takes over the documents of the balancer (docs/POOL.md), and works out what the page shows. */
const adopt = {
	info(doc) { state.info = doc.info; },
	servers(doc) {
		state.servers = doc.servers;
		byName.clear();
		for (const server of doc.servers) {
			server.words = Object.entries(server.labels).map(([key, value]) => `${key}=${value}`).join(', ');
			byName.set(server.name, server);
		}
		if (ranks.size !== byName.size || doc.servers.some((server) => !ranks.has(server.name))) {
			ranks.clear();
			[...byName.keys()].sort(collator.compare).forEach((name, i) => ranks.set(name, i));
		}
	},
	gpus(doc) {
		state.gpus = doc.gpus;
		byUuid.clear();
		for (const gpu of doc.gpus) {
			gpu.utilization = ratio(gpu.busy_per_mille, 1000);
			gpu.power = ratio(gpu.milliwatts, 1000);
			gpu.part = ratio(gpu.used_bytes, gpu.memory_bytes);
			gpu.hot = gpu.celsius > HOT;
			gpu.full = gpu.part > FULL;
			byUuid.set(gpu.uuid, gpu);
		}
	},
	sessions(doc) {
		state.sessions = doc.reservations;
		for (const session of doc.reservations) {
			session.gpus = session.parts.reduce((n, part) => n + part.gpus.length, 0);
			session.memory = session.parts.reduce((n, part) => n + part.gpus.length * part.memory_bytes, 0);
			session.servers = session.parts.map((part) => part.server).join(', ');
			session.state = session.parts.some((part) => part.state === 'running') ? 'running' : session.parts[0]?.state ?? 'ended';
		}
	},
	queue(doc) { state.queue = doc.queue; },
	quota(doc) { state.quota = doc.tenants; },
	events(doc) {
		const last = state.events.length ? state.events[0].number : 0;
		state.events = [...doc.events.filter((event) => event.number > last).reverse(), ...state.events].slice(0, EVENTS_KEPT);
	},
};

// ---- the stream ----

/** Reads server-sent events by fetch, because EventSource cannot send the token as a header. */
async function readStream(signal) {
	const answer = await call('stream', { signal });
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = '';
	state.events = [];
	for (;;) {
		const { value, done } = await reader.read();
		if (done) return;
		state.arrived = Date.now();
		const blocks = (rest + value).split('\n\n');
		rest = blocks.pop();
		for (const block of blocks) {
			const match = /^event: (\w+)\ndata: ([^]*)$/.exec(block);
			if (!match || !adopt[match[1]]) continue;
			try {
				adopt[match[1]](JSON.parse(match[2]));
			} catch (error) { // a document of another version: the others are shown
				console.error(match[1], error);
			}
			state.at = Date.now();
		}
		setConnected(true);
		draw();
	}
}

let streaming = null;
async function follow() {
	for (let wait = 1000; ; wait = Math.min(wait * 2, 10000)) {
		streaming = new AbortController();
		const began = Date.now();
		try {
			state.arrived = began;
			await readStream(streaming.signal);
		} catch (error) {
			if (error.status === 401) { askToken(token() ? error.message : ''); return; }
		}
		if (!state.caller) return; // signed out
		setConnected(false);
		if (Date.now() - began > 15000) wait = 1000;
		await new Promise((resolve) => { setTimeout(resolve, wait); });
	}
}

function setConnected(connected) {
	state.connected = connected;
	const usable = state.info.registry_usable !== false;
	$('link').textContent = !connected ? 'connection lost' : usable ? 'live' : 'registry lost';
	$('link').className = `pill ${connected && usable ? 'good' : 'bad'}`;
	const stale = $('stale');
	stale.hidden = connected || !state.at;
	if (!stale.hidden && !stale.textContent) stale.textContent = `The connection to the balancer is lost. What is shown is of ${clock(state.at)}; sessions go on without it. Connecting again …`;
	if (stale.hidden) stale.textContent = '';
	document.body.classList.toggle('stale', !connected);
}

/** A connection may end without a word: a suspended laptop, a firewall. */
setInterval(() => {
	if (state.caller && state.connected && Date.now() - state.arrived > SILENCE_MS) streaming.abort();
}, 1000);

// ---- signing in ----

function askToken(why) {
	state.caller = null;
	if (streaming) streaming.abort();
	sessionStorage.removeItem('outboard-token');
	for (const section of document.querySelectorAll('section')) section.hidden = true;
	for (const dialog of document.querySelectorAll('dialog')) dialog.close();
	$('nav').hidden = true;
	$('stale').hidden = true;
	$('leave').hidden = true;
	$('login').hidden = false;
	$('login-error').textContent = why;
	$('link').textContent = 'signed out';
	$('link').className = 'pill';
	$('token').focus();
}

async function begin() {
	const run = begin.run = (begin.run ?? 0) + 1; // a later one replaces this one
	clearTimeout(begin.timer);
	try {
		const caller = await (await call('caller')).json();
		if (run !== begin.run) return;
		state.caller = caller;
	} catch (error) {
		if (run !== begin.run) return;
		if (error.status === 401) { askToken(token() ? `The token was refused: ${error.message}.` : ''); return; }
		$('link').textContent = 'no connection';
		$('link').className = 'pill bad';
		$('stale').hidden = !error.status;
		$('stale').textContent = error.status ? `${error.message}: ${error.hint}` : '';
		if (error.status !== 403) begin.timer = setTimeout(begin, 3000);
		return;
	}
	$('login').hidden = true;
	$('stale').hidden = true;
	$('stale').textContent = '';
	$('nav').hidden = false;
	$('leave').hidden = !token();
	$('own').hidden = state.caller.sees_all;
	show();
	follow();
}

$('login').addEventListener('submit', (event) => {
	event.preventDefault();
	sessionStorage.setItem('outboard-token', $('token').value.trim());
	$('token').value = '';
	$('login-error').textContent = '';
	begin();
});
$('leave').addEventListener('click', () => askToken(''));

// ---- charts ----

const SVG = 'http://www.w3.org/2000/svg';
function svg(tag, attributes) {
	const element = document.createElementNS(SVG, tag);
	for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
	return element;
}

/** A line over the last hour, with `now` as its last point. Gaps are points without a value. */
function chart(title, values, now, { max, print, limit = null, hours = 'last hour' }) {
	const points = [...values, now ?? null], known = points.filter((v) => v != null);
	const top = max ?? Math.max(1, ...known) * 1.1, x = (i) => (points.length < 2 ? 100 : i * 100 / (points.length - 1));
	const y = (v) => 50 - Math.min(v / top, 1) * 50;
	const picture = svg('svg', { viewBox: '0 0 100 50', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${title}, ${hours}: now ${print(now)}, highest ${print(known.length ? Math.max(...known) : null)}` });
	for (const part of [0, 0.5, 1]) picture.append(svg('line', { class: 'grid', x1: 0, x2: 100, y1: y(part * top), y2: y(part * top) }));
	if (limit != null) picture.append(svg('line', { class: 'limit', x1: 0, x2: 100, y1: y(limit), y2: y(limit) }));
	let line = [];
	const flush = () => {
		if (line.length > 1) {
			const d = line.map(([i, v], n) => `${n ? 'L' : 'M'}${x(i).toFixed(2)} ${y(v).toFixed(2)}`).join('');
			picture.append(svg('path', { class: 'area', d: `${d}L${x(line.at(-1)[0]).toFixed(2)} 50L${x(line[0][0]).toFixed(2)} 50Z` }), svg('path', { class: 'curve', d }));
		}
		line = [];
	};
	points.forEach((v, i) => { if (v == null) flush(); else line.push([i, v]); });
	flush();
	return h('figure', {}, h('figcaption', {}, h('span', { textContent: title }), h('strong', { textContent: print(now) })), picture,
		h('div', { className: 'ends', ariaHidden: 'true' }, h('span', { textContent: values.length ? `${span((points.length - 1) * (state.step ?? 30))} ago` : 'no history yet' }), h('span', { textContent: 'now' })));
}

function charts(host, past, now, power) {
	host.replaceChildren(
		chart('Utilisation', past.utilization ?? [], now.utilization, { max: 1, print: percent }),
		chart('Memory in use', past.memory ?? [], now.part, { max: 1, print: percent, limit: FULL }),
		chart(power ? 'Temperature, hottest' : 'Temperature', past.temperature ?? [], now.celsius, { max: 110, print: degrees, limit: HOT }),
		chart('Power', past.power ?? [], now.power, { print: watts }));
}

/** A small line in a table's cell. */
function spark(canvas, values, now) {
	const width = canvas.clientWidth, height = canvas.clientHeight, scale = devicePixelRatio, points = [...values, now];
	if (!width) return;
	canvas.width = width * scale;
	canvas.height = height * scale;
	const pen = canvas.getContext('2d');
	pen.scale(scale, scale);
	pen.strokeStyle = colour('--fill');
	pen.lineWidth = 1.4;
	pen.beginPath();
	points.forEach((v, i) => {
		const x = points.length < 2 ? width : i * (width - 2) / (points.length - 1) + 1, y = height - 2 - (v ?? 0) * (height - 4);
		if (i && points[i - 1] != null && v != null) pen.lineTo(x, y); else pen.moveTo(x, y);
	});
	pen.stroke();
}
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Asks for the last hour of those GPUs whose history is missing or old. */
async function askHistory(uuids) {
	const now = Date.now(), old = uuids.filter((uuid) => !(state.history.get(uuid)?.asked > now - HISTORY_MS)).slice(0, HISTORY_ASK);
	if (!old.length) return;
	for (const uuid of old) state.history.set(uuid, { ...state.history.get(uuid), asked: now });
	try {
		const doc = await (await call(`history?gpu=${old.join(',')}`)).json();
		state.step = doc.step_s;
		for (const uuid of old) state.history.set(uuid, { ...doc.gpus[uuid], asked: now });
		draw();
	} catch { /* asked again later */ }
}
async function askPoolHistory() {
	if (state.poolHistory?.asked > Date.now() - HISTORY_MS) return;
	state.poolHistory = { ...state.poolHistory, asked: Date.now() };
	try {
		const doc = await (await call('history')).json();
		state.step = doc.step_s;
		state.poolHistory = { ...doc.pool, asked: Date.now() };
		draw();
	} catch { /* asked again later */ }
}

// ---- tables ----

/**
 * A table that draws the rows in sight. A column: title, value(row) to sort by, text(row) or
 * fill(cell, row), className. Row i is always drawn in element i modulo their number, so the focus
 * stays where it is while figures change.
 */
class Table {
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
function opener(cell, text, open) {
	if (!cell.firstChild) cell.append(h('button', { type: 'button', className: 'name' }));
	const button = cell.firstChild;
	if (button.textContent !== text) { button.textContent = text; button.title = text; }
	button.onclick = open;
}
function meter(cell, ratio, bad) {
	if (!cell.firstChild) cell.append(h('div', { className: 'meter', ariaHidden: 'true' }, h('i')), h('span'));
	cell.firstChild.className = bad ? 'meter bad' : 'meter';
	cell.firstChild.firstChild.style.width = `${Math.min(1, ratio ?? 0) * 100}%`;
	cell.lastChild.textContent = percent(ratio);
	cell.lastChild.className = bad ? 'bad' : '';
}
/** No heartbeats arrive: its figures are old. */
function away(server) { return server?.state === 'silent' || server?.state === 'lost'; }
const STATES = { ready: 'good', running: 'good', cordoned: 'warn', draining: 'warn', granted: 'warn', unknown: 'warn', joining: 'warn', silent: 'bad', lost: 'bad', unwell: 'bad' };
function pill(cell, text) {
	if (!cell.firstChild) cell.append(h('span'));
	cell.firstChild.textContent = text;
	cell.firstChild.className = `pill ${STATES[text] ?? ''}`;
}
function marked(cell, text, bad) {
	cell.textContent = text;
	cell.classList.toggle('bad', Boolean(bad));
}

const tables = {
	servers: new Table(document.querySelector('[data-table=servers]'), 'Servers', [
		{ title: 'Server', width: '11rem', value: (r) => ranks.get(r.name), fill: (c, r) => opener(c, r.name, () => openServer(r.name)) },
		{ title: 'State', width: '7.5rem', value: (r) => r.state, fill: (c, r) => pill(c, r.state) },
		{ title: 'GPUs', className: 'n', width: '4.2rem', value: (r) => r.devices, text: (r) => r.devices },
		{ title: 'Sessions', className: 'n p2', width: '6rem', value: (r) => r.sessions, text: (r) => r.sessions },
		{ title: 'Utilisation', className: 'p2', value: (r) => serverLoad(r).busy, fill: (c, r) => meter(c, serverLoad(r).busy) },
		{ title: 'Reserved', className: 'p3', value: (r) => serverLoad(r).reserved, fill: (c, r) => meter(c, serverLoad(r).reserved) },
		{ title: 'Hottest', className: 'n', width: '5.5rem', value: (r) => serverLoad(r).celsius, fill: (c, r) => marked(c, degrees(serverLoad(r).celsius), serverLoad(r).celsius > HOT) },
		{ title: 'Heartbeat', className: 'n p3', width: '7rem', value: (r) => r.heartbeat_age_ms, fill: (c, r) => marked(c, r.heartbeat_age_ms == null ? '–' : `${(r.heartbeat_age_ms / 1000).toFixed(1)} s ago`, away(r)) },
		{ title: 'Labels', className: 'p3', text: (r) => r.words || '–' },
	], { key: (r) => r.name, empty: 'No server has registered yet.', quiet: away, sort: 0 }),
	gpus: new Table(document.querySelector('[data-table=gpus]'), 'GPUs', [
		{ title: 'GPU', width: '9.5rem', value: (r) => (ranks.get(r.server) ?? 0) * 64 + r.index, fill: (c, r) => opener(c, `${r.server} · ${r.index}`, () => openGpu(r.uuid)) },
		{ title: 'Model', className: 'p3', width: '13rem', value: (r) => r.name, text: (r) => r.name.replace(/^NVIDIA /, '') },
		{ title: 'Utilisation', value: (r) => r.utilization, fill: (c, r) => meter(c, r.utilization) },
		{ title: 'Last hour', className: 'p2', width: '8rem', fill: (c) => { if (!c.firstChild) c.append(h('canvas', { ariaHidden: 'true' })); }, late: (c, r) => spark(c.firstChild, state.history.get(r.uuid)?.utilization ?? [], r.utilization) },
		{ title: 'Memory in use', className: 'p2', value: (r) => r.part, fill: (c, r) => meter(c, r.part, r.full) },
		{ title: 'Reserved', className: 'n p3', width: '6.5rem', value: (r) => r.reserved_bytes, text: (r) => size(r.reserved_bytes) },
		{ title: 'Temp.', className: 'n', width: '4.8rem', value: (r) => r.celsius, fill: (c, r) => marked(c, degrees(r.celsius), r.hot) },
		{ title: 'Power', className: 'n p3', width: '5rem', value: (r) => r.power, text: (r) => watts(r.power) },
		{ title: 'Sharers', className: 'n p3', width: '5.5rem', value: (r) => r.reservations, text: (r) => r.reservations },
	], { key: (r) => r.uuid, empty: 'The pool has no GPU.', quiet: (r) => away(byName.get(r.server)), sort: 0 }),
	sessions: new Table(document.querySelector('[data-table=sessions]'), 'Sessions', [
		{ title: 'Program', width: '31%', value: (r) => r.program, fill: (c, r) => opener(c, r.program || r.id, () => openSession(r.id)) },
		{ title: 'Tenant', value: (r) => r.tenant, text: (r) => r.tenant },
		{ title: 'User', className: 'p3', value: (r) => r.user, text: (r) => `${r.user}@${r.host}` },
		{ title: 'State', className: 'p2', width: '7rem', value: (r) => r.state, fill: (c, r) => pill(c, r.state) },
		{ title: 'GPUs', className: 'n', width: '4.2rem', value: (r) => r.gpus, text: (r) => r.gpus },
		{ title: 'Reserved', className: 'n p2', width: '6.5rem', value: (r) => r.memory, text: (r) => size(r.memory) },
		{ title: 'Servers', className: 'p3', value: (r) => r.servers, text: (r) => r.servers },
		{ title: 'Age', className: 'n p2', width: '7rem', value: (r) => -r.since, text: (r) => span(Date.now() / 1000 - r.since) },
	], { key: (r) => r.id, empty: 'No session is running.', sort: 7 }),
	queue: new Table(document.querySelector('[data-table=queue]'), 'Requests that wait', [
		{ title: '#', className: 'n', width: '3rem', value: (r) => r.position, text: (r) => r.position },
		{ title: 'Program', value: (r) => r.program, fill: (c, r) => opener(c, r.program || '–', () => openWaiting(r)) },
		{ title: 'Tenant', value: (r) => r.tenant, text: (r) => r.tenant },
		{ title: 'GPUs', className: 'n', width: '4.2rem', value: (r) => r.gpus, text: (r) => r.gpus },
		{ title: 'Memory each', className: 'n p2', width: '7.5rem', value: (r) => r.memory_bytes, text: (r) => size(r.memory_bytes) },
		{ title: 'Priority', className: 'p3', width: '6rem', value: (r) => r.priority, text: (r) => r.priority },
		{ title: 'Waiting', className: 'n', width: '5.2rem', value: (r) => r.waited_ms, text: (r) => span(r.waited_ms / 1000) },
		{ title: 'Estimate', className: 'n p2', width: '6.5rem', value: (r) => r.estimate_ms, text: (r) => (r.estimate_ms == null ? 'not known' : span(r.estimate_ms / 1000)) },
		{ title: 'Where', className: 'p3', text: (r) => r.where || 'anywhere' },
	], { key: (r) => r.position, empty: 'Nobody waits.', sort: 0 }),
	quota: new Table(document.querySelector('[data-table=quota]'), 'Tenants', [
		{ title: 'Tenant', value: (r) => r.tenant, text: (r) => r.tenant },
		{ title: 'Sessions', className: 'n p2', width: '6rem', value: (r) => r.reservations, text: (r) => r.reservations },
		{ title: 'GPUs', className: 'n', width: '4.6rem', value: (r) => r.gpus, text: (r) => (r.gpus_limit ? `${r.gpus} of ${r.gpus_limit}` : r.gpus) },
		{ title: 'GPU quota', className: 'p2', value: (r) => (r.gpus_limit ? r.gpus / r.gpus_limit : null), fill: (c, r) => meter(c, r.gpus_limit ? r.gpus / r.gpus_limit : null) },
		{ title: 'Memory', className: 'n', width: '9.6rem', value: (r) => r.memory_bytes, text: (r) => (r.memory_limit_bytes ? `${size(r.memory_bytes)} of ${size(r.memory_limit_bytes)}` : size(r.memory_bytes)) },
		{ title: 'Memory quota', className: 'p2', value: (r) => (r.memory_limit_bytes ? r.memory_bytes / r.memory_limit_bytes : null), fill: (c, r) => meter(c, r.memory_limit_bytes ? r.memory_bytes / r.memory_limit_bytes : null) },
	], { key: (r) => r.tenant, empty: 'No tenant has used the pool.', sort: 0 }),
	events: new Table(document.querySelector('[data-table=events]'), 'Events, newest first', [
		{ title: 'Time', width: '6.5rem', text: (r) => clock(r.time_ms) },
		{ title: 'Event', width: '6.5rem', fill: (c, r) => opener(c, r.count > 1 ? `${r.kind} × ${r.count}` : r.kind, () => openEvent(r)) },
		{ title: 'Subject', text: (r) => r.subject },
		{ title: 'What', className: 'p2', width: '50%', text: (r) => r.text },
	], { key: (r) => r.number, empty: 'Nothing has happened yet.' }),
};
for (const input of document.querySelectorAll('[data-find]')) {
	input.addEventListener('input', () => { tables[input.dataset.find].find = input.value; draw(); });
}
$('gpu-filter').addEventListener('change', () => draw());

/** What a server's GPUs do, together; made once for each document. */
let loads = { of: null, map: new Map() };
function serverLoad(server) {
	if (loads.of !== state.gpus) {
		loads = { of: state.gpus, map: new Map() };
		for (const gpu of state.gpus) {
			const load = loads.map.get(gpu.server) ?? { sum: 0, n: 0, reserved: 0, total: 0, celsius: null };
			if (gpu.utilization != null) { load.sum += gpu.utilization; load.n++; }
			load.bytes = (load.bytes ?? 0) + gpu.reserved_bytes;
			load.total += gpu.memory_bytes;
			if (gpu.celsius != null) load.celsius = Math.max(load.celsius ?? 0, gpu.celsius);
			loads.map.set(gpu.server, load);
		}
		for (const load of loads.map.values()) { load.busy = load.n ? load.sum / load.n : null; load.reserved = load.total ? load.bytes / load.total : null; }
	}
	return loads.map.get(server.name) ?? { busy: null, reserved: null, celsius: null };
}

// ---- sections ----

function poolNow() {
	const now = { n: 0, sum: 0, used: 0, known: 0, total: 0, reserved: 0, power: null, celsius: null, taken: 0 };
	for (const gpu of state.gpus) {
		now.total += gpu.memory_bytes;
		now.reserved += gpu.reserved_bytes;
		now.taken += gpu.reservations > 0;
		if (gpu.utilization != null) { now.sum += gpu.utilization; now.n++; }
		if (gpu.used_bytes != null) { now.used += gpu.used_bytes; now.known += gpu.memory_bytes; }
		if (gpu.power != null) now.power = (now.power ?? 0) + gpu.power;
		if (gpu.celsius != null && !(gpu.celsius <= now.celsius)) { now.celsius = gpu.celsius; now.hottest = gpu; }
	}
	now.utilization = now.n ? now.sum / now.n : null;
	now.part = now.known ? now.used / now.known : null;
	return now;
}

function problems() {
	const found = [], list = (names) => (names.length > 6 ? `${names.slice(0, 6).join(', ')} and ${names.length - 6} more` : names.join(', '));
	const add = (rows, one, many, name) => { if (rows.length) found.push(`${rows.length === 1 ? one : `${rows.length.toLocaleString('en')} ${many}`}: ${list(rows.map(name))}`); };
	const gpu = (g) => `${g.server} · ${g.index}`;
	if (state.info.registry_usable === false) found.push('The registry does not answer: no session is placed until it does. Running sessions go on.');
	add(state.servers.filter((s) => away(s)), 'Server silent or lost, it gets no new sessions', 'servers silent or lost, they get no new sessions', (s) => s.name);
	add(state.servers.filter((s) => s.state === 'unwell'), 'Server reports a fault', 'servers report a fault', (s) => (s.health ? `${s.name} (${s.health})` : s.name));
	add(state.gpus.filter((g) => g.faulty), 'GPU with a fault, it gets no new sessions', 'GPUs with a fault, they get no new sessions', gpu);
	add(state.gpus.filter((g) => g.hot), `GPU hotter than ${HOT} °C`, `GPUs hotter than ${HOT} °C`, (g) => `${gpu(g)} (${degrees(g.celsius)})`);
	add(state.gpus.filter((g) => g.full), 'GPU with more than 95 % of its memory in use', 'GPUs with more than 95 % of their memory in use', (g) => `${gpu(g)} (${percent(g.part)})`);
	return found;
}

function tile(title, value, detail = '') {
	return h('div', {}, h('dt', { textContent: title }), h('dd', {}, value, ...(detail ? [' ', h('small', { textContent: detail })] : [])));
}

function replaceText(host, made) {
	if (host.textContent !== made.map((e) => e.textContent).join('') || host.children.length !== made.length) host.replaceChildren(...made);
}

const draws = {
	overview() {
		const now = poolNow(), ready = state.servers.filter((s) => s.state === 'ready').length, wrong = problems();
		$('empty').hidden = !state.at || state.servers.length > 0;
		replaceText($('tiles'), [
			tile('Servers ready', ready.toLocaleString('en'), `of ${state.servers.length.toLocaleString('en')}`),
			tile('GPUs reserved', now.taken.toLocaleString('en'), `of ${state.gpus.length.toLocaleString('en')}`),
			tile('Memory reserved', size(now.reserved), `of ${size(now.total)}`),
			tile('Utilisation', percent(now.utilization), 'mean of the GPUs'),
			tile('Hottest GPU', degrees(now.celsius), now.hottest ? `${now.hottest.server} · ${now.hottest.index}` : ''),
			tile('Power', watts(now.power), now.power == null ? '' : `${watts(now.power / state.gpus.length)} each`),
			tile('Sessions', state.sessions.length.toLocaleString('en'), `${state.sessions.filter((s) => s.state === 'running').length.toLocaleString('en')} running`),
			tile('Waiting', state.queue.length.toLocaleString('en'), state.queue.length ? `oldest ${span(Math.max(...state.queue.map((q) => q.waited_ms)) / 1000)}` : 'nobody'),
		]);
		$('attention').hidden = !wrong.length;
		replaceText($('problems'), wrong.map((text) => h('li', { textContent: text })));
		charts($('pool-charts'), state.poolHistory ?? {}, now, true);
		drawHeat();
		askPoolHistory();
	},
	servers() { tables.servers.set(state.servers); },
	gpus() {
		const filters = { busy: (g) => g.reservations > 0, free: (g) => !g.reservations, hot: (g) => g.hot, full: (g) => g.full };
		const filter = filters[$('gpu-filter').value], table = tables.gpus;
		table.set(filter ? state.gpus.filter(filter) : state.gpus);
		const [first, end] = table.seen();
		askHistory(table.rows.slice(first, end).map((gpu) => gpu.uuid));
	},
	sessions() { tables.sessions.set(state.sessions); },
	queue() { tables.queue.set(state.queue); },
	tenants() { tables.quota.set(state.quota); },
	events() { tables.events.set(state.events); },
};
// Rows that scroll into sight want their history too.
document.querySelector('[data-table=gpus] .scroll').addEventListener('scrollend', () => draw());

/** One cell for each GPU. Cells shrink until all fit into a quarter of a screen. */
const heat = { canvas: $('heat'), cells: [] };
function drawHeat() {
	const { canvas } = heat, width = canvas.clientWidth, n = state.gpus.length, scale = devicePixelRatio;
	if (!width) return;
	let cell = 18, columns = 1, rows = 1;
	for (; cell > 3; cell--) {
		columns = Math.max(1, Math.floor(width / cell));
		rows = Math.ceil(n / columns);
		if (rows * cell <= 280) break;
	}
	canvas.style.height = `${Math.max(1, rows) * cell}px`;
	canvas.width = width * scale;
	canvas.height = Math.max(1, rows) * cell * scale;
	canvas.ariaLabel = `Utilisation of ${counted(n, 'GPU')}: mean ${percent(poolNow().utilization)}`;
	const pen = canvas.getContext('2d'), gap = cell > 6 ? 2 : 1;
	const fill = colour('--fill'), shade = colour('--shade'), none = colour('--none'), bad = colour('--bad');
	pen.scale(scale, scale);
	state.gpus.forEach((gpu, i) => {
		const x = (i % columns) * cell, y = Math.floor(i / columns) * cell, silent = away(byName.get(gpu.server));
		pen.globalAlpha = 1;
		pen.fillStyle = silent || gpu.utilization == null ? none : shade;
		pen.fillRect(x, y, cell - gap, cell - gap);
		if (gpu.hot || gpu.full || !silent) {
			pen.globalAlpha = gpu.hot || gpu.full ? 1 : 0.15 + 0.85 * (gpu.utilization ?? 0);
			pen.fillStyle = gpu.hot || gpu.full ? bad : fill;
			if (gpu.utilization > 0.005 || gpu.hot || gpu.full) pen.fillRect(x, y, cell - gap, cell - gap);
		}
	});
	Object.assign(heat, { cell, columns });
}
function heatGpu(event) {
	const box = heat.canvas.getBoundingClientRect();
	return state.gpus[Math.floor((event.clientY - box.top) / heat.cell) * heat.columns + Math.floor((event.clientX - box.left) / heat.cell)];
}
heat.canvas.addEventListener('mousemove', (event) => {
	const gpu = heatGpu(event);
	heat.canvas.title = gpu ? `${gpu.server} · ${gpu.index}: ${percent(gpu.utilization)}, ${percent(gpu.part)} of memory, ${degrees(gpu.celsius)}` : '';
});
heat.canvas.addEventListener('click', (event) => { const gpu = heatGpu(event); if (gpu) openGpu(gpu.uuid); });

// ---- details ----

function facts(pairs) {
	replaceText($('detail-facts'), pairs.flatMap(([name, value]) => [h('dt', { textContent: name }), h('dd', { textContent: String(value ?? '–') })]));
}
function openDetail(title, render, actions = []) {
	state.detail = render;
	$('detail-title').textContent = title;
	$('detail-charts').replaceChildren();
	$('detail-actions').replaceChildren(...(state.caller?.may_command ? actions : []));
	render();
	if (!$('detail').open) $('detail').showModal();
}
$('detail').addEventListener('close', () => { state.detail = null; });
$('detail-close').addEventListener('click', () => $('detail').close());
const button = (text, className, onclick) => h('button', { type: 'button', textContent: text, className, onclick });

function openServer(name) {
	openDetail(name, () => {
		const s = byName.get(name);
		if (!s) { facts([['State', 'no longer registered']]); return; }
		const load = serverLoad(s);
		facts([['State', s.state], ['Sessions', s.sessions], ['GPUs', s.devices], ['Utilisation', percent(load.busy)], ['Memory reserved', percent(load.reserved)], ['Hottest GPU', degrees(load.celsius)],
			['Labels', s.words || '–'], ...(s.health ? [['Health', s.health]] : []), ['Version', s.version], ['Last heartbeat', s.heartbeat_age_ms == null ? '–' : `${(s.heartbeat_age_ms / 1000).toFixed(1)} s ago`]]);
		const held = s.state === 'cordoned' || s.state === 'draining';
		for (const action of $('detail-actions').children) action.hidden = action.id === 'do-uncordon' ? !held : action.id === 'do-cordon' ? held : s.state === 'draining';
	}, [
		Object.assign(button('Uncordon', '', () => askServer('uncordon', name)), { id: 'do-uncordon' }),
		Object.assign(button('Cordon', '', () => askServer('cordon', name)), { id: 'do-cordon' }),
		Object.assign(button('Drain', 'danger', () => askServer('drain', name)), { id: 'do-drain' }),
	]);
}
function openGpu(uuid) {
	openDetail('', () => {
		const g = byUuid.get(uuid);
		if (!g) { facts([['State', 'no longer registered']]); return; }
		$('detail-title').textContent = `${g.server} · GPU ${g.index}`;
		const sessions = state.sessions.filter((s) => s.parts.some((part) => part.gpus.includes(uuid)));
		facts([['Model', g.name], ['UUID', g.uuid], ['Memory', `${size(g.used_bytes)} in use, ${size(g.reserved_bytes)} reserved, ${size(g.memory_bytes)} in all`], ['Reservations', g.reservations], ['Shares kept by', g.share_by?.join(', ') || '–'],
			['Sessions', sessions.map((s) => `${s.program} (${s.tenant})`).join('; ') || '–']]);
		charts($('detail-charts'), state.history.get(uuid) ?? {}, g, false);
		askHistory([uuid]);
	});
}
/** The share of each GPU, and how it is kept: "25 % by green". */
function shareOf(s) {
	if (!s.share_millionths || s.share_millionths >= 1e6) return 'all';
	const by = [...new Set(s.parts.map((part) => part.share_by).filter(Boolean))];
	return `${Math.round(s.share_millionths / 1e4)} %${by.length ? ` by ${by.join(', ')}` : ''}`;
}
function openSession(id) {
	openDetail('Session', () => {
		const s = state.sessions.find((row) => row.id === id);
		if (!s) { facts([['State', 'ended']]); return; }
		facts([['Program', s.program], ['Tenant', s.tenant], ['User', `${s.user}@${s.host}`], ['State', s.state], ['Age', span(Date.now() / 1000 - s.since)],
			['Share', shareOf(s)],
			...s.parts.map((part) => [part.server, `${counted(part.gpus.length, 'GPU')} with ${size(part.memory_bytes)} each, ${size(part.used_bytes)} in use`]), ['Reservation', s.id]]);
	}, [button('Kill', 'danger', () => askKill(id))]);
}

function openEvent(e) {
	openDetail(e.kind, () => facts([['Time', new Date(e.time_ms).toLocaleString([], { hour12: false })], ['Subject', e.subject], ['What', e.text], ['Times', e.count]]));
}
function openWaiting(r) {
	openDetail('Waiting request', () => facts([['Program', r.program], ['Tenant', r.tenant], ['Position', r.position], ['User', `${r.user}@${r.host}`], ['Wants', `${counted(r.gpus, 'GPU')}${r.memory_bytes ? ` with ${size(r.memory_bytes)} each` : ''}`], ['Where', r.where || 'anywhere'],
		['Priority', r.priority], ['Waiting', span(r.waited_ms / 1000)], ['Estimate', r.estimate_ms == null ? 'not known' : span(r.estimate_ms / 1000)], ['Balancer', r.balancer]]));
}

// ---- commands ----

const WORDS = {
	cordon: ['Cordon', (s) => `It gets no new sessions until it is uncordoned. ${counted(s.sessions, 'running session')} ${s.sessions === 1 ? 'goes' : 'go'} on.`],
	uncordon: ['Uncordon', () => 'It gets new sessions again.'],
	drain: ['Drain', (s) => `It gets no new sessions, and ${counted(s.sessions, 'running session')} ${s.sessions === 1 ? 'is' : 'are'} ended when the time below has passed. What they have not saved is lost.`],
};
function confirmCommand({ title, text, verb, danger, grace, run }) {
	$('confirm-title').textContent = title;
	$('confirm-text').textContent = text;
	$('confirm-yes').textContent = verb;
	$('confirm-yes').className = danger ? 'primary danger' : 'primary';
	$('confirm-yes').disabled = false;
	$('confirm-error').textContent = '';
	$('grace-label').hidden = !grace;
	$('confirm-form').onsubmit = async (event) => {
		event.preventDefault();
		$('confirm-yes').disabled = true;
		try {
			await run();
			$('confirm').close();
			say(`${title.replace(/\?$/, '')}: done`);
		} catch (error) {
			$('confirm-error').textContent = `${error.message}${error.hint ? `: ${error.hint}` : ''}`;
			$('confirm-yes').disabled = false;
		}
	};
	$('confirm').showModal();
	$('confirm-no').focus();
}
$('confirm-no').addEventListener('click', () => $('confirm').close());

function askServer(verb, name) {
	const server = byName.get(name), [title, text] = WORDS[verb];
	if (!server) return;
	confirmCommand({ title: `${title} ${name}?`, text: text(server), verb: title, danger: verb === 'drain', grace: verb === 'drain',
		run: () => command(`servers/${encodeURIComponent(name)}/${verb}`, verb === 'drain' ? { grace_s: Math.round($('grace').valueAsNumber) } : null) });
}
function askKill(id) {
	const s = state.sessions.find((row) => row.id === id);
	if (!s) return;
	confirmCommand({ title: `Kill ${s.program || id}?`, verb: 'Kill', danger: true,
		text: `The session of ${s.user} (tenant ${s.tenant}) on ${s.servers} ends at once, and its ${counted(s.gpus, 'GPU')} ${s.gpus === 1 ? 'is' : 'are'} free for others. What the program has not saved is lost.`,
		run: () => command(`sessions/${encodeURIComponent(id)}/kill`) });
}

// ---- drawing ----

const sections = Object.keys(draws);
const current = () => (sections.includes(location.hash.slice(1)) ? location.hash.slice(1) : 'overview');
let asked = false;
/** Draws at the next frame, once for many changes. */
function draw() {
	if (asked || !state.caller) return;
	asked = true;
	requestAnimationFrame(() => {
		asked = false;
		if (!state.caller) return;
		const began = performance.now();
		for (const count of document.querySelectorAll('[data-count]')) count.textContent = state[count.dataset.count].length || '';
		$('where').textContent = state.info.balancer ? `${state.info.balancer} · Outboard ${state.info.version}` : '';
		draws[current()]();
		if (state.detail) state.detail();
		document.documentElement.dataset.drawMs = (performance.now() - began).toFixed(1);
	});
}
function show() {
	const name = current();
	for (const section of sections) $(section).hidden = section !== name || !state.caller;
	for (const link of $('nav').children) {
		if (link.hash === `#${name}`) link.ariaCurrent = 'page'; else link.removeAttribute('aria-current');
	}
	document.title = `${$('nav').querySelector('[aria-current]').firstChild.textContent.trim()} – Outboard pool`;
	draw();
}
addEventListener('hashchange', show);
addEventListener('resize', draw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
begin();
