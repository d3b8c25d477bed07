// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
//
// The dashboard of a pool: signing in, and which section is shown. It reads /api/v1/stream, keeps the
// documents that arrive (data.js), and draws the section in sight (sections.js).
import { $, draw, drawBy, state } from './base.js';
import { call, follow, token, unfollow } from './data.js';
import { clear, draws } from './sections.js';

// ---- signing in ----

function askToken(why) {
	state.caller = null;
	unfollow();
	clear();
	for (const count of document.querySelectorAll('[data-count]')) count.textContent = '';
	$('where').textContent = '';
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
	follow(askToken);
}

$('login').addEventListener('submit', (event) => {
	event.preventDefault();
	const given = $('token').value.trim();
	$('token').value = '';
	if (!/^[!-~]+$/.test(given)) { // it could not be sent as a header
		$('login-error').textContent = 'That is no token: it has letters, digits and underscores only.';
		return;
	}
	sessionStorage.setItem('outboard-token', given);
	$('login-error').textContent = '';
	begin();
});
$('leave').addEventListener('click', () => askToken(''));

// ---- drawing ----

const sections = Object.keys(draws);
const current = () => (sections.includes(location.hash.slice(1)) ? location.hash.slice(1) : 'overview');
function drawAll() {
	const began = performance.now();
	for (const count of document.querySelectorAll('[data-count]')) count.textContent = state[count.dataset.count].length || '';
	$('where').textContent = state.info.balancer ? `${state.info.balancer} · Outboard ${state.info.version}` : '';
	draws[current()]();
	if (state.detail) state.detail();
	document.documentElement.dataset.drawMs = (performance.now() - began).toFixed(1);
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
drawBy(drawAll);
begin();
