// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
//
// What all modules share: the state, words for figures, making elements, and asking for a drawing.

export const HOT = 85, FULL = 0.95; // degrees; part of a GPU's memory

export const $ = (id) => document.getElementById(id);
export const state = {
	servers: [], gpus: [], sessions: [], queue: [], quota: [], events: [], info: {},
	caller: null, arrived: 0, at: null, connected: false,
	history: new Map(), poolHistory: null, detail: null,
};
export const byName = new Map(), byUuid = new Map();
export const ranks = new Map(); // of server names, in natural order: comparing numbers is faster than names

// ---- words ----

export const collator = new Intl.Collator('en', { numeric: true });
const GIB = 2 ** 30;
export const size = (bytes) => (bytes == null ? '–' : bytes >= 1024 * GIB ? `${(bytes / 1024 / GIB).toFixed(bytes >= 100 * 1024 * GIB ? 0 : 1)} TiB` : bytes >= 10 * GIB || !bytes ? `${Math.round(bytes / GIB)} GiB` : `${(bytes / GIB).toFixed(1)} GiB`);
export const percent = (ratio) => (ratio == null ? '–' : `${Math.round(ratio * 100)} %`);
export const degrees = (celsius) => (celsius == null ? '–' : `${celsius} °C`);
export const watts = (power) => (power == null ? '–' : power >= 1e6 ? `${(power / 1e6).toFixed(2)} MW` : power >= 10000 ? `${(power / 1000).toFixed(1)} kW` : `${Math.round(power)} W`);
export const counted = (n, one, many = `${one}s`) => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
export function span(seconds) {
	if (seconds == null) return '–';
	const s = Math.max(0, Math.round(seconds));
	if (s < 120) return `${s} s`;
	if (s < 7200) return `${Math.floor(s / 60)} min`;
	if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
	return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

/** Names that programs and their users choose: without characters that turn the text around them, or none at all. */
export const plain = (text) => String(text ?? '').replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, '\ufffd');

/** Makes an element; strings and elements become its children. */
export function h(tag, properties = {}, ...children) {
	const element = document.createElement(tag);
	for (const [key, value] of Object.entries(properties)) {
		if (key in element) element[key] = value; else element.setAttribute(key, value);
	}
	element.append(...children);
	return element;
}
export function say(text) {
	$('said').textContent = text;
	clearTimeout(say.timer);
	say.timer = setTimeout(() => { $('said').textContent = ''; }, 6000);
}

// ---- drawing ----

let drawer = null, asked = false;
/** The function that draws the section in sight. */
export function drawBy(draws) { drawer = draws; }
/** Draws at the next frame, once for many changes. */
export function draw() {
	if (asked || !state.caller) return;
	asked = true;
	requestAnimationFrame(() => {
		asked = false;
		if (state.caller) drawer();
	});
}
