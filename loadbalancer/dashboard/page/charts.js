// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
//
// Pictures: lines over the last hour, small lines in tables, and a cell for each GPU.
import { $, byName, counted, degrees, FULL, h, HOT, percent, span, state, watts } from './base.js';
import { away } from './data.js';

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

export function charts(host, past, now, power) {
	host.replaceChildren(
		chart('Utilisation', past.utilization ?? [], now.utilization, { max: 1, print: percent }),
		chart('Memory in use', past.memory ?? [], now.part, { max: 1, print: percent, limit: FULL }),
		chart(power ? 'Temperature, hottest' : 'Temperature', past.temperature ?? [], now.celsius, { max: 110, print: degrees, limit: HOT }),
		chart('Power', past.power ?? [], now.power, { print: watts }));
}

/** A small line in a table's cell. */
export function spark(canvas, values, now) {
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
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- the pool now ----

export function poolNow() {
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

// ---- one cell for each GPU ----

/** One cell for each GPU. Cells shrink until all fit into a quarter of a screen. */
const wrong = (gpu) => gpu.hot || gpu.full || gpu.faulty;
const heat = { canvas: $('heat'), cells: [] };
export function drawHeat() {
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
		if (wrong(gpu) || !silent) {
			pen.globalAlpha = wrong(gpu) ? 1 : 0.15 + 0.85 * (gpu.utilization ?? 0);
			pen.fillStyle = wrong(gpu) ? bad : fill;
			if (gpu.utilization > 0.005 || wrong(gpu)) pen.fillRect(x, y, cell - gap, cell - gap);
		}
	});
	Object.assign(heat, { cell, columns });
}
export function clearHeat() {
	heat.canvas.width = heat.canvas.height = 1;
	heat.canvas.title = '';
}
function heatGpu(event) {
	const box = heat.canvas.getBoundingClientRect();
	return state.gpus[Math.floor((event.clientY - box.top) / heat.cell) * heat.columns + Math.floor((event.clientX - box.left) / heat.cell)];
}
heat.canvas.addEventListener('mousemove', (event) => {
	const gpu = heatGpu(event);
	heat.canvas.title = gpu ? `${gpu.server} · ${gpu.index}: ${percent(gpu.utilization)}, ${percent(gpu.part)} of memory, ${degrees(gpu.celsius)}${gpu.faulty ? ', faulty' : ''}` : '';
});
/** open(uuid): a cell was clicked. */
export function onHeat(open) {
	heat.canvas.addEventListener('click', (event) => { const gpu = heatGpu(event); if (gpu) open(gpu.uuid); });
}
