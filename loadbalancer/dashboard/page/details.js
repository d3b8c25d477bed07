// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
//
// Dialogs: the details of a row, and commands with their confirmation.
import { $, byName, byUuid, counted, degrees, h, percent, say, size, span, state } from './base.js';
import { charts } from './charts.js';
import { askHistory, away, command, serverLoad } from './data.js';

export function replaceText(host, made) {
	if (host.textContent !== made.map((e) => e.textContent).join('') || host.children.length !== made.length) host.replaceChildren(...made);
}

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
$('detail').addEventListener('close', () => { if (!$('detail').open) state.detail = null; }); // it comes late: another one may be open
$('detail-close').addEventListener('click', () => $('detail').close());
const button = (text, className, onclick) => h('button', { type: 'button', textContent: text, className, onclick, 'aria-haspopup': 'dialog' });

export function openServer(name) {
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
export function openGpu(uuid) {
	openDetail('', () => {
		const g = byUuid.get(uuid);
		if (!g) { facts([['State', 'no longer registered']]); return; }
		$('detail-title').textContent = `${g.server} · GPU ${g.index}`;
		const sessions = state.sessions.filter((s) => s.parts.some((part) => part.gpus.includes(uuid)));
		facts([['State', g.faulty ? 'faulty: it gets no new sessions' : away(byName.get(g.server)) ? byName.get(g.server).state : g.exclusive ? 'reserved as a whole' : g.reservations ? 'reserved' : 'free'], ['Model', g.name], ['UUID', g.uuid], ['Memory', `${size(g.used_bytes)} in use, ${size(g.reserved_bytes)} reserved, ${size(g.memory_bytes)} in all`], ['Reservations', g.reservations], ['Shares kept by', g.share_by?.join(', ') || '–'],
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
/** Whether a session may be moved, and how often it was. */
function movesOf(s) {
	const often = s.moves ? `; moved ${s.moves === 1 ? 'once' : `${s.moves} times`}` : '';
	return `${s.restartable ? 'yes: it can be moved to another server' : 'no: it was started without --restartable'}${often}`;
}
export function openSession(id) {
	const move = button('Move …', '', () => askMove(id)), kill = button('Kill …', 'danger', () => askKill(id));
	move.id = 'do-move';
	kill.id = 'do-kill';
	openDetail('Session', () => {
		const s = state.sessions.find((row) => row.id === id);
		move.hidden = !s?.restartable || Boolean(s.moving_to);
		kill.hidden = !s;
		if (!s) { facts([['State', 'ended']]); return; }
		const faulty = s.parts.flatMap((part) => part.gpus).filter((uuid) => byUuid.get(uuid)?.faulty).length;
		$('detail-title').textContent = `Session: ${s.program || s.id}`;
		facts([['Program', s.program], ['Tenant', s.tenant], ['User', `${s.user}@${s.host}`], ['State', s.shown], ['Restartable', movesOf(s)], ['Age', span(Date.now() / 1000 - s.since)],
			['Share', shareOf(s)], ...(faulty ? [['Faulty GPUs', faulty]] : []),
			...s.parts.map((part) => [part.server, `${counted(part.gpus.length, 'GPU')} with ${size(part.memory_bytes)} each, ${size(part.used_bytes)} in use`]), ['Reservation', s.id]]);
	}, [move, kill]);
}

export function openEvent(e) {
	openDetail(e.kind, () => facts([['Time', new Date(e.time_ms).toLocaleString([], { hour12: false })], ['Subject', e.subject], ['What', e.text], ['Times', e.count]]));
}
export function openWaiting(r) {
	openDetail('Waiting request', () => facts([['Program', r.program], ['Tenant', r.tenant], ['Position', r.position], ['User', `${r.user}@${r.host}`], ['Wants', `${counted(r.gpus, 'GPU')}${r.memory_bytes ? ` with ${size(r.memory_bytes)} each` : ''}`], ['Where', r.where || 'anywhere'],
		['Priority', r.priority], ['Waiting', span(r.waited_ms / 1000)], ['Estimate', r.estimate_ms == null ? 'not known' : span(r.estimate_ms / 1000)], ['Balancer', r.balancer]]));
}

// ---- commands ----

const WORDS = {
	cordon: ['Cordon', (s) => `It gets no new sessions until it is uncordoned. ${counted(s.sessions, 'running session')} ${s.sessions === 1 ? 'goes' : 'go'} on.`],
	uncordon: ['Uncordon', () => 'It gets new sessions again.'],
	drain: ['Drain', (s) => `It gets no new sessions, and ${counted(s.sessions, 'running session')} ${s.sessions === 1 ? 'is' : 'are'} ended when the time below has passed. What they have not saved is lost.`],
};
/** choices: values and words of the list; run() returns the answer's document. */
function confirmCommand({ title, text, verb, danger, grace, choices, run }) {
	const turn = confirmCommand.turn = (confirmCommand.turn ?? 0) + 1; // a command that ends later is not this dialog's
	$('confirm-title').textContent = title;
	$('confirm-text').textContent = text;
	$('confirm-yes').textContent = verb;
	$('confirm-yes').className = danger ? 'primary danger' : 'primary';
	$('confirm-yes').disabled = false;
	$('confirm-error').textContent = '';
	$('grace-label').hidden = !grace;
	$('grace').disabled = !grace;
	$('target-label').hidden = !choices;
	$('target').replaceChildren(...(choices ?? []).map(([value, words]) => h('option', { value, textContent: words })));
	$('confirm-form').onsubmit = async (event) => {
		event.preventDefault();
		const { caller } = state; // what ends after the sign-out is not for the next one
		$('confirm-yes').disabled = true;
		try {
			const answer = await (await run()).json();
			if (caller !== state.caller) return;
			say(`${title.replace(/\?$/, '')}: ${verb === 'Move' && answer.text || 'done'}`);
			if (turn === confirmCommand.turn) $('confirm').close();
		} catch (error) {
			if (caller !== state.caller) return;
			if (turn !== confirmCommand.turn || !$('confirm').open) {
				say(`${title.replace(/\?$/, '')}: ${error.message}`);
				return;
			}
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
function askMove(id) {
	const s = state.sessions.find((row) => row.id === id);
	if (!s) return;
	const here = new Set(s.parts.map((part) => part.server));
	const places = state.servers.filter((server) => server.state === 'ready' && !here.has(server.name)).map((server) => [server.name, `${server.name}, ${percent(serverLoad(server).busy)} busy, ${percent(serverLoad(server).reserved)} reserved`]);
	confirmCommand({ title: `Move ${s.program || id}?`, verb: 'Move', danger: true, choices: [['', 'anywhere (the least loaded)'], ...places],
		text: `The program of ${s.user} (tenant ${s.tenant}) is ended on ${s.servers}, and started again on the other server. What it has not saved is lost. If its 'outboard run' does not answer within a minute, everything stays as it was.`,
		run: () => command(`sessions/${encodeURIComponent(id)}/move`, $('target').value ? { server: $('target').value } : null) });
}
