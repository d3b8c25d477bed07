// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
//
// The API of the balancer (docs/DASHBOARD.md), its documents, and the stream that brings them.
import { $, byName, byUuid, clock, collator, draw, FULL, HOT, plain, ranks, state } from './base.js';

const SILENCE_MS = 20000; // the stream sends something every 15 s at least
const HISTORY_MS = 30000, HISTORY_ASK = 64;
const EVENTS_KEPT = 1000;

// ---- the API ----

export const token = () => sessionStorage.getItem('outboard-token');
export async function call(path, options = {}) {
	const headers = { ...(token() && { Authorization: `Bearer ${token()}` }), ...options.headers };
	const answer = await fetch(`/api/v1/${path}`, { ...options, headers, cache: 'no-store' });
	if (answer.ok) return answer;
	let why = { text: `the balancer answered ${answer.status}`, hint: '' };
	try { why = (await answer.json()).error; } catch { /* a proxy's page */ }
	throw Object.assign(new Error(why.text), { status: answer.status, hint: why.hint });
}
export const command = (path, body) => call(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: body ? JSON.stringify(body) : '' });

const ratio = (part, whole) => (part == null || !whole ? null : part / whole);

/** Takes over the documents of the balancer (docs/POOL.md), and works out what the page shows. */
const adopt = {
	info(doc) { state.info = doc.info; },
	servers(doc) {
		state.servers = doc.servers;
		byName.clear();
		for (const server of doc.servers) {
			server.health = plain(server.health);
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
			gpu.name = plain(gpu.name);
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
			for (const name of ['program', 'user', 'host']) session[name] = plain(session[name]);
			session.gpus = session.parts.reduce((n, part) => n + part.gpus.length, 0);
			session.memory = session.parts.reduce((n, part) => n + part.gpus.length * part.memory_bytes, 0);
			session.servers = session.parts.map((part) => part.server).join(', ');
			session.state = ['running', 'kept'].find((state) => session.parts.some((part) => part.state === state)) ?? session.parts[0]?.state ?? 'ended';
			session.shown = session.moving_to ? `moving to ${session.moving_to}` : session.state;
		}
	},
	queue(doc) {
		state.queue = doc.queue;
		for (const request of doc.queue) for (const name of ['program', 'user', 'host', 'where']) request[name] = plain(request[name]);
	},
	quota(doc) { state.quota = doc.tenants; },
	events(doc) {
		const last = state.events.length ? state.events[0].number : 0;
		for (const event of doc.events) for (const name of ['subject', 'text']) event[name] = plain(event[name]);
		state.events = [...doc.events.filter((event) => event.number > last).reverse(), ...state.events].slice(0, EVENTS_KEPT);
	},
};

/** No heartbeats arrive: its figures are old. */
export function away(server) { return server?.state === 'silent' || server?.state === 'lost'; }

/** What a server's GPUs do, together; made once for each document. */
let loads = { of: null, map: new Map() };
export function serverLoad(server) {
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

// ---- history ----

/** Asks for the last hour of those GPUs whose history is missing or old. */
export async function askHistory(uuids) {
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
export async function askPoolHistory() {
	if (state.poolHistory?.asked > Date.now() - HISTORY_MS) return;
	state.poolHistory = { ...state.poolHistory, asked: Date.now() };
	try {
		const doc = await (await call('history')).json();
		state.step = doc.step_s;
		state.poolHistory = { ...doc.pool, asked: Date.now() };
		draw();
	} catch { /* asked again later */ }
}

// ---- the stream ----

let lastId = ''; // of the last event
/** Reads server-sent events by fetch, because EventSource cannot send the token as a header. */
async function readStream(signal) {
	const answer = await call('stream', { signal, headers: lastId ? { 'Last-Event-ID': lastId } : {} });
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = '';
	for (;;) {
		const { value, done } = await reader.read();
		if (done || signal.aborted) return;
		state.arrived = Date.now();
		const blocks = (rest + value).split('\n\n');
		rest = blocks.pop();
		for (const block of blocks) {
			const match = /^event: (\w+)\n(?:id: ([\w-]+)\n)?data: ([^]*)$/.exec(block);
			if (!match || !adopt[match[1]]) continue;
			try {
				if (match[2] && match[2].split('-')[0] !== lastId.split('-')[0]) state.events = []; // all come again
				lastId = match[2] ?? lastId;
				adopt[match[1]](JSON.parse(match[3]));
			} catch (error) { // a document of another version: the others are shown
				console.error(match[1], error);
			}
			state.at = Date.now();
		}
		setConnected(true);
		draw();
	}
}

let streaming = null, following = 0; // the latter counts: a loop that is not the last one ends
/** Ends the stream and forgets what it has brought: it is not for the next caller. */
export function unfollow() {
	following++;
	streaming?.abort();
	lastId = '';
	for (const rows of ['servers', 'gpus', 'sessions', 'queue', 'quota', 'events']) state[rows] = [];
	for (const kept of [byName, byUuid, ranks, state.history]) kept.clear();
	Object.assign(state, { info: {}, at: null, poolHistory: null, connected: false });
}
/** Reads the stream and opens it again when it ends. refused(why): the token is not accepted any more. */
export async function follow(refused) {
	const run = ++following;
	streaming?.abort();
	for (let wait = 1000; run === following; wait = Math.min(wait * 2, 10000)) {
		streaming = new AbortController();
		const began = Date.now();
		try {
			state.arrived = began;
			await readStream(streaming.signal);
		} catch (error) {
			if (run === following && error.status === 401) { refused(token() ? error.message : ''); return; }
		}
		if (run !== following) return; // signed out
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
