/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
'use strict';

const $ = (id) => document.getElementById(id);
const form = $('form');
const PAGE_ROWS = 50;
const LOG_LINES = 400;
const HIDDEN_OPTIONS = ['threads', 'isa', 'quirk-last-column'];
const PHASES = { completed: 'good', failed: 'bad', stopped: 'bad', running: 'busy', reading: 'busy', writing: 'busy' };
let phase = 'idle', offset = 0, lists = null, planTimer = 0, tableTimer = 0, total = 0;

/* ---- words and numbers ---- */

const group = (n) => Number(n).toLocaleString('en');
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
const bytes = (n) => n >= 2 ** 30 ? (n / 2 ** 30).toFixed(1) + ' GiB' : (n / 2 ** 20).toFixed(0) + ' MiB';

function duration(s) {
	if (s === null || !isFinite(s)) return '–';
	s = Math.round(s);
	const tail = String(s % 60).padStart(2, '0');
	return s >= 3600 ? `${Math.floor(s / 3600)}:${String(Math.floor(s / 60) % 60).padStart(2, '0')}:${tail}` : `${Math.floor(s / 60)}:${tail}`;
}

function figure(v) {
	if (v === null) return '';
	return Number.isInteger(v) ? String(v) : Math.abs(v) >= 1e-3 && Math.abs(v) < 1e6 ? v.toPrecision(5) : v.toExponential(4);
}

function add(parent, tag, text, className) {
	const e = document.createElement(tag);
	if (text !== undefined) e.textContent = text;
	if (className) e.className = className;
	parent.append(e);
	return e;
}

/* ---- the form ---- */

const fields = () => {
	const data = new URLSearchParams(new FormData(form));
	for (const [name, value] of [...data]) if (!value.trim() && name !== 'name' && !['m', 'tau', 'eps', 'lmin'].includes(name)) data.delete(name);
	return data;
};

async function post(url) {
	const answer = await fetch(url, { method: 'POST', body: fields(), headers: { 'X-Requested-With': 'outboard' } });
	const said = await answer.json();
	return { good: !said.error, ...said };
}

function showPlan(answer) {
	const plan = $('plan');
	for (const e of form.elements) if (e.name) e.removeAttribute('aria-invalid');
	plan.classList.toggle('wrong', !answer.good);
	if (answer.good) {
		plan.textContent = `${group(answer.combinations)} combinations for each of ${group(answer.files)} files, in every mode.`;
	} else {
		plan.textContent = answer.error;
		const wrong = answer.field && form.elements[answer.field];
		if (wrong) {
			wrong.setAttribute('aria-invalid', 'true');
			if (wrong.closest('details')) wrong.closest('details').open = true;
		}
	}
	setButtons(answer.good);
}

let planned = true;

function setButtons(good) {
	if (good !== undefined) planned = good;
	const busy = PHASES[phase] === 'busy';
	$('start').disabled = busy || !planned;
	$('stop').disabled = !busy;
}

function planSoon() {
	clearTimeout(planTimer);
	planTimer = setTimeout(() => post('/api/plan').then(showPlan).catch(() => {}), 250);
}

form.addEventListener('input', planSoon);
form.addEventListener('submit', (event) => {
	event.preventDefault();
	clearTimeout(planTimer);
	offset = 0;
	post('/api/start').then((answer) => answer.good ? $('progress-heading').focus({ preventScroll: true }) : showPlan(answer)).catch(() => {});
});
$('stop').addEventListener('click', () => post('/api/stop').catch(() => {}));

function describePreset(presets) {
	$('preset-what').textContent = (presets.find((p) => p.name === $('preset').value) || { what: '' }).what;
}

function addOption(option) {
	if (HIDDEN_OPTIONS.includes(option.name)) return;
	const label = add($('options'), 'label', option.name + ' ');
	label.title = option.help;
	let field;
	if (option.words) {
		field = add(label, 'select');
		add(field, 'option', 'as the preset has it').value = '';
		for (const word of option.words.split('|')) add(field, 'option', word).value = word;
	} else {
		field = add(label, 'input');
		field.placeholder = 'as the preset has it';
		field.autocomplete = 'off';
	}
	field.name = option.name;
	field.setAttribute('aria-description', option.help);
}

async function setUp() {
	const setup = await (await fetch('/api/setup')).json();
	$('where').textContent = `${group(setup.files)} files in ${setup.folder}`;
	for (const p of setup.presets) add($('preset'), 'option', p.name).value = p.name;
	for (const m of setup.measures) add($('measure-names'), 'option', m.what).value = m.name;
	setup.options.forEach(addOption);
	describePreset(setup.presets);
	$('preset').addEventListener('change', () => describePreset(setup.presets));
	planSoon();
}

/* ---- progress ---- */

function showShare(share) {
	$('fill').style.width = share + '%';
	$('percent').textContent = share.toFixed(share < 100 && share > 0 ? 1 : 0) + ' %';
	$('bar').setAttribute('aria-valuenow', share.toFixed(0));
}

function log(level, text, timestamp) {
	const list = $('log'), atEnd = list.scrollTop + list.clientHeight > list.scrollHeight - 30;
	const line = add(list, 'li', undefined, level);
	add(line, 'time', new Date(timestamp * 1000).toLocaleTimeString('en-GB'));
	line.append(text);
	while (list.childElementCount > LOG_LINES) list.firstElementChild.remove();
	if (atEnd) list.scrollTop = list.scrollHeight;
}

function showCounts(done, skipped, failed, rows) {
	$('done').textContent = group(done);
	$('skipped').textContent = group(skipped);
	$('failed').textContent = group(failed);
	$('failed').parentElement.classList.toggle('some', failed > 0);
	$('total').textContent = group(rows);
}

const handlers = {
	phase(e) {
		phase = e.phase;
		$('phase').textContent = phase;
		$('phase').className = 'pill ' + (PHASES[phase] || '');
		$('downloads').hidden = phase !== 'completed';
		if (phase === 'reading') {
			lists = null;
			showShare(0);
			for (const id of ['done', 'skipped', 'failed', 'total', 'eta', 'elapsed']) $(id).textContent = '–';
		}
		if (phase === 'running') refreshSoon(0);
		setButtons();
	},
	reading(e) { $('signature').textContent = `reading file ${group(e.current)} of ${group(e.total)}`; },
	batch_started(e) { $('total').textContent = group(e.total); },
	progress_update(e) {
		showShare(e.progress);
		showCounts(e.success, e.skipped, e.failed, e.total);
		$('eta').textContent = duration(e.eta);
		$('elapsed').textContent = duration(e.elapsed);
		$('signature').textContent = e.param_signature || 'no combination yet';
		$('rate').textContent = e.cells_per_second > 0 ? `${compact.format(e.cells_per_second)} cells a second` : '';
		refreshSoon(1500);
	},
	log(e) { log(e.level, e.text, e.timestamp); },
	batch_completed(e) {
		showCounts(e.stats.success, e.stats.skipped, e.stats.failed, e.stats.total);
		$('elapsed').textContent = e.seconds < 10 ? e.seconds.toFixed(2) + ' s' : duration(e.seconds);
		$('eta').textContent = '–';
		if (e.complete) showShare(100);
		refreshSoon(0);
	},
	gpu_stats(e) {
		$('device-name').textContent = (e.gpu ? 'GPU: ' : 'CPU: ') + e.name;
		$('busy').style.width = Math.min(100, e.utilization) + '%';
		$('busy-text').textContent = e.utilization.toFixed(0) + ' %';
		$('memory').style.width = Math.min(100, e.memory_percent) + '%';
		$('memory-text').textContent = `${bytes(e.memory_used)} of ${bytes(e.memory_total)}`;
	},
};

function listen() {
	const events = new EventSource('/api/events');
	events.onopen = () => { $('link').textContent = 'connected'; $('link').className = 'pill good'; };
	events.onerror = () => { $('link').textContent = 'not connected, trying again'; $('link').className = 'pill bad'; };
	for (const [name, handle] of Object.entries(handlers)) events.addEventListener(name, (e) => handle(JSON.parse(e.data)));
}

/* ---- results ---- */

const filters = [...document.querySelectorAll('[data-filter]')];

function query(extra) {
	const q = new URLSearchParams(extra);
	for (const f of filters) if (f.value !== '') q.set(f.dataset.filter, f.value);
	return q;
}

function refreshSoon(delay) {
	if (tableTimer && delay) return;
	clearTimeout(tableTimer);
	tableTimer = setTimeout(() => { tableTimer = 0; refresh().catch(() => {}); }, delay);
}

async function loadLists() {
	const answer = await fetch('/api/lists');
	if (!answer.ok) return false;
	lists = await answer.json();
	for (const f of filters) {
		const name = f.dataset.filter, values = lists[name === 'file' ? 'files' : name === 'mode' ? 'modes' : name];
		f.replaceChildren();
		add(f, 'option', 'all').value = '';
		values.forEach((v, i) => { add(f, 'option', String(v)).value = i; });
	}
	$('heat-measure').replaceChildren();
	lists.measures.forEach((m, i) => { add($('heat-measure'), 'option', m).value = i; });
	if (lists.measures.includes('DET')) $('heat-measure').value = lists.measures.indexOf('DET');
	$('download-wide').hidden = !(lists.writes & 2);
	return true;
}

function showRow(body, row, columns) {
	const tr = add(body, 'tr', undefined, row.status);
	add(tr, 'td', row.file);
	add(tr, 'td', row.mode);
	for (const name of ['m', 'tau', 'eps', 'lmin']) add(tr, 'td', String(row[name]));
	if (row.values) {
		for (const v of row.values) add(tr, 'td', figure(v));
	} else {
		const td = add(tr, 'td', row.status === 'failed' ? row.reason : 'still to come', row.status === 'failed' ? 'reason' : '');
		td.colSpan = columns;
	}
}

async function refresh() {
	if (!lists && !(await loadLists())) return;
	const answer = await fetch('/api/results?' + query({ offset, limit: PAGE_ROWS }));
	if (!answer.ok) return;
	const page = await answer.json();
	total = page.total;
	$('no-results').hidden = true;
	$('results').hidden = false;
	$('head').replaceChildren();
	const tr = add($('head'), 'tr');
	for (const name of ['file', 'mode', 'm', 'tau', 'eps', 'lmin', ...page.measures]) add(tr, 'th', name).scope = 'col';
	const body = document.createElement('tbody');
	for (const row of page.rows) showRow(body, row, page.measures.length);
	$('rows').replaceChildren(...body.childNodes);
	$('page').textContent = total ? `${group(offset + 1)} to ${group(Math.min(offset + PAGE_ROWS, total))} of ${group(total)} rows` : 'no rows';
	$('previous').disabled = offset === 0;
	$('next').disabled = offset + PAGE_ROWS >= total;
	await drawHeat();
}

async function drawHeat() {
	const x = $('heat-x').value, y = $('heat-y').value, image = $('heat');
	if (x === y) {
		image.hidden = true;
		$('heat-caption').textContent = 'Choose two different parameters.';
		return;
	}
	// as wide as its place, so that it is not scaled and its text stays legible; the rest is for the axes
	const width = Math.max(160, Math.min(640, image.parentElement.clientWidth - 150));
	const answer = await fetch('/api/heat.png?' + query({ measure: $('heat-measure').value, x, y, width }));
	if (!answer.ok) {
		image.hidden = true;
		$('heat-caption').textContent = (await answer.json()).error;
		return;
	}
	const reader = new FileReader();
	reader.onload = () => { image.src = reader.result; image.hidden = false; };
	reader.readAsDataURL(await answer.blob());
	const over = answer.headers.get('Outboard-Mean-Over');
	$('heat-caption').textContent = (over ? `Each cell is the mean over ${over}; choose one of them above to split it.` : 'Each cell is one row of the table.') + ' Grey: no numbers.';
}

for (const f of filters) f.addEventListener('change', () => { offset = 0; refreshSoon(0); });
for (const id of ['heat-measure', 'heat-x', 'heat-y']) $(id).addEventListener('change', () => drawHeat().catch(() => {}));
let resizeTimer;
addEventListener('resize', () => {
	clearTimeout(resizeTimer);
	resizeTimer = setTimeout(() => { if (lists) drawHeat().catch(() => {}); }, 200);
});
$('previous').addEventListener('click', () => { offset = Math.max(0, offset - PAGE_ROWS); refreshSoon(0); });
$('next').addEventListener('click', () => { offset += PAGE_ROWS; refreshSoon(0); });

setUp().catch(() => { $('plan').textContent = 'The server does not answer; load the page again.'; });
listen();
