/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/clock_fit.h"

#include "base/check.h"

/* Times are a server's claims: differences wrap as unsigned numbers do. */
static int64_t minus(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b);
}

/* Bounds that exclude one another (the clocks drift): the gap between them becomes the error. */
static void narrow(struct obc_fit *fit, unsigned i, int64_t least, int64_t most)
{
	int64_t low = least, high = most;

	if (fit->windows[i].used) {
		low = ob_max(low, fit->windows[i].least);
		high = ob_min(high, fit->windows[i].most);
	}
	fit->windows[i].used = true;
	fit->windows[i].least = ob_min(low, high);
	fit->windows[i].most = ob_max(low, high);
}

static void halve(struct obc_fit *fit)
{
	for (unsigned i = 0; i < OBC_FIT_WINDOWS; i++) {
		bool used = fit->windows[i].used;
		int64_t least = fit->windows[i].least, most = fit->windows[i].most;

		fit->windows[i].used = false;
		if (used)
			narrow(fit, i / 2, least, most);
	}
	fit->width *= 2;
}

void obc_fit_add(
	struct obc_fit *fit, uint64_t sent, uint64_t first, uint64_t last, uint64_t received)
{
	uint64_t since;

	if (received < sent)
		return;
	if (!fit->width) {
		fit->width = OBC_FIT_WIDTH_NS;
		fit->start = sent;
	}
	/* One from before the first that was added counts in the first window. */
	since = sent > fit->start ? sent - fit->start : 0;
	while (since / fit->width >= OBC_FIT_WINDOWS)
		halve(fit);
	fit->exchanges++;
	narrow(fit, (unsigned)(since / fit->width), minus(last, received), minus(first, sent));
}

static int64_t middle(const struct obc_fit *fit, unsigned i)
{
	uint64_t width = (uint64_t)fit->windows[i].most - (uint64_t)fit->windows[i].least;

	return (int64_t)((uint64_t)fit->windows[i].least + width / 2);
}

/* The used window nearest to i, at or before it (step -1) or after it (1). -1: none. */
static int find(const struct obc_fit *fit, int i, int step)
{
	while (i >= 0 && i < (int)OBC_FIT_WINDOWS && !fit->windows[i].used)
		i += step;
	return i >= 0 && i < (int)OBC_FIT_WINDOWS ? i : -1;
}

/* The difference at a time of the client, interpolated between the middles of windows. */
static int64_t difference(const struct obc_fit *fit, int64_t at)
{
	double place = (double)at / (double)fit->width - 0.5;
	int i = place < 0 ? 0 : place >= OBC_FIT_WINDOWS ? (int)OBC_FIT_WINDOWS - 1 : (int)place;
	int before = find(fit, i, -1), after = find(fit, i + 1, 1);

	if (before < 0)
		return middle(fit, (unsigned)after);
	if (after < 0)
		return middle(fit, (unsigned)before);
	if (place <= before)
		return middle(fit, (unsigned)before);
	return middle(fit, (unsigned)before) +
		(int64_t)((place - before) / (after - before) *
			(double)minus((uint64_t)middle(fit, (unsigned)after),
				(uint64_t)middle(fit, (unsigned)before)));
}

uint64_t obc_fit_client_time(const struct obc_fit *fit, uint64_t server_ns)
{
	int any = find(fit, 0, 1);
	uint64_t about = server_ns - (uint64_t)middle(fit, (unsigned)any);

	return server_ns - (uint64_t)difference(fit, minus(about, fit->start));
}

uint64_t obc_fit_error(const struct obc_fit *fit)
{
	uint64_t error = 0;

	if (!fit->width)
		return UINT64_MAX;
	for (unsigned i = 0; i < OBC_FIT_WINDOWS; i++)
		if (fit->windows[i].used)
			error = ob_max(error,
				((uint64_t)fit->windows[i].most - (uint64_t)fit->windows[i].least) /
						2 +
					1);
	return error;
}
