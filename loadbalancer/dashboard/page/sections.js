// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
//
// The sections of the page and their tables.
import { $, byName, clock, counted, degrees, draw, h, HOT, percent, ranks, size, span, state, watts } from './base.js';
import { charts, clearHeat, drawHeat, onHeat, poolNow, spark } from './charts.js';
import { askHistory, askPoolHistory, away, serverLoad } from './data.js';
import { openEvent, openGpu, openServer, openSession, openWaiting, replaceText } from './details.js';
import { marked, meter, opener, pill, Table } from './table.js';

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
		{ title: 'GPU', width: '9.5rem', value: (r) => (ranks.get(r.server) ?? 0) * 64 + r.index, fill: (c, r) => opener(c, `${r.server} · ${r.index}${r.faulty ? ' · faulty' : ''}`, () => openGpu(r.uuid), r.faulty) },
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
		{ title: 'Program', width: '28%', value: (r) => r.program, fill: (c, r) => opener(c, r.program || r.id, () => openSession(r.id)) },
		{ title: 'Tenant', className: 'p2', value: (r) => r.tenant, text: (r) => r.tenant },
		{ title: 'User', className: 'p3', value: (r) => r.user, text: (r) => `${r.user}@${r.host}` },
		{ title: 'State', width: '9.8rem', value: (r) => r.shown, fill: (c, r) => pill(c, r.shown) },
		{ title: 'GPUs', className: 'n p2', width: '4.2rem', value: (r) => r.gpus, text: (r) => r.gpus },
		{ title: 'Reserved', className: 'n p2', width: '6.5rem', value: (r) => r.memory, text: (r) => size(r.memory) },
		{ title: 'Servers', className: 'p3', value: (r) => r.servers, text: (r) => r.servers },
		{ title: 'Moves', className: 'n p3', width: '5rem', value: (r) => r.moves, text: (r) => r.moves || '–' },
		{ title: 'Age', className: 'n p2', width: '7rem', value: (r) => -r.since, text: (r) => span(Date.now() / 1000 - r.since) },
	], { key: (r) => r.id, empty: 'No session is running.', sort: 8 }),
	queue: new Table(document.querySelector('[data-table=queue]'), 'Requests that wait', [
		{ title: '#', className: 'n', width: '3rem', value: (r) => r.position, text: (r) => r.position },
		{ title: 'Program', value: (r) => r.program, fill: (c, r) => opener(c, r.program || '–', () => openWaiting(r)) },
		{ title: 'Tenant', className: 'p2', value: (r) => r.tenant, text: (r) => r.tenant },
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

// ---- sections ----

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

export const draws = {
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
		const filters = { busy: (g) => g.reservations > 0, free: (g) => !g.reservations, hot: (g) => g.hot, faulty: (g) => g.faulty, full: (g) => g.full };
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
/** Removes what was drawn and typed, when the caller signs out. */
export function clear() {
	for (const input of document.querySelectorAll('[data-find], #gpu-filter')) input.value = '';
	for (const table of Object.values(tables)) {
		table.find = '';
		table.set([]);
		table.lines = [];
		table.body.replaceChildren();
	}
	for (const id of ['tiles', 'problems', 'pool-charts', 'detail-title', 'detail-facts', 'detail-charts', 'detail-actions', 'confirm-title', 'confirm-text', 'said']) $(id).replaceChildren();
	clearHeat();
}
// Rows that scroll into sight want their history too.
document.querySelector('[data-table=gpus] .scroll').addEventListener('scrollend', () => draw());
onHeat(openGpu);
