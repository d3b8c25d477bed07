/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/terminal.h"
#include "server/common/stats_page.h"
#include "server/supervisor/sense.h"

/* ---- reading stats pages ---- */

/* Cleans a copy: the worker may change the original at any time. */
static void text_take(char ret[OBP_LOAD_NAME_MAX], const char from[OBP_LOAD_NAME_MAX])
{
	memcpy(ret, from, OBP_LOAD_NAME_MAX);
	ret[ob_text_clean(ret, strnlen(ret, OBP_LOAD_NAME_MAX - 1))] = '\0';
}

static uint32_t word_take(const _Atomic uint32_t *word, uint32_t max)
{
	uint32_t value = obs_stats_page_read_word(word);

	return ob_min(value, max);
}

static uint32_t priority_of(const struct obs_proc *proc)
{
	return word_take(&proc->page->priority, 2);
}

/* Bytes that the session uses on a device of the server: its page has the session's numbers. */
static uint64_t used_on(const struct obs_proc *proc, uint32_t device)
{
	uint32_t own;

	return obs_place_to_session(&proc->place, device, &own) && own < OBP_DEVICE_MAX
		? obs_stats_page_read(&proc->page->used[own])
		: 0;
}

/* ---- the load ---- */

static void session_fill(const struct obs_proc *proc, struct obp_load_session *to)
{
	const struct obs_stats_page *page = proc->page;
	uint64_t now = ob_clock_ns(), last = obs_stats_page_read(&page->last_ns);

	*to = (struct obp_load_session){ .id = proc->id,
		.age_ns = now - proc->since_ns,
		.calls = obs_stats_page_read(&page->calls),
		.replies = obs_stats_page_read(&page->replies),
		.bytes_in = obs_stats_page_read(&page->bytes_in),
		.bytes_out = obs_stats_page_read(&page->bytes_out),
		.device_ns = obs_stats_page_read(&page->device_ns),
		.throttled_ns = obs_stats_page_read(&page->throttled_ns),
		.refusals = obs_stats_page_read(&page->refusals),
		.throttle = word_take(&page->throttle, OBP_THROTTLE_COUNT - 1) };
	for (unsigned i = 0; i < OBP_DEVICE_MAX; i++) {
		to->used[i] = used_on(proc, i);
		to->memory += to->used[i];
	}
	to->idle_ns = last > proc->since_ns && now > last ? now - last : last ? 0 : to->age_ns;
	memcpy(to->client, proc->client, sizeof to->client);
	if (!atomic_load_explicit(&page->introduced, memory_order_acquire))
		return;
	to->pid = obs_stats_page_read(&page->pid);
	to->memory_limit = obs_stats_page_read(&page->memory_limit);
	to->share = word_take(&page->share, OBP_SHARE_ALL);
	to->priority = priority_of(proc);
	to->share_by = word_take(&page->share_by, OBP_SHARE_BY_COUNT - 1);
	text_take(to->program, page->program);
}

/* asker: only sessions of its machine; NULL: all. */
static void sessions_fill(
	struct obs_super *super, const struct obs_asker *asker, struct obp_load *ret)
{
	ret->listed = calloc(OBP_LOAD_SESSIONS_MAX, sizeof *ret->listed);
	for (const struct obs_proc *p = super->procs;
		ret->listed && p && ret->n_sessions < OBP_LOAD_SESSIONS_MAX; p = p->next)
		if (p->state == OBS_PROC_BUSY && (!asker || obs_asker_shares(asker, p)))
			session_fill(p, &ret->listed[ret->n_sessions++]);
}

static void devices_fill(const struct obs_super *super, struct obp_load *ret)
{
	ret->n_devices = super->n_devices;
	for (uint32_t i = 0; i < super->n_devices; i++) {
		const struct obs_stats_page_device *from = &super->devices[i];
		struct obp_load_device *to = &ret->devices[i];

		*to = (struct obp_load_device){ .total = from->total,
			.units = from->units,
			.clock_khz = from->clock_khz,
			.capability = from->capability,
			.ptx_only = from->ptx_only,
			.share_by = from->share_by };
		memcpy(to->name, from->name, sizeof to->name);
		memcpy(to->uuid, from->uuid, sizeof to->uuid);
		for (const struct obs_proc *p = super->procs; p; p = p->next)
			if (p->state == OBS_PROC_BUSY) {
				uint64_t used = used_on(p, i);

				to->used += used;
				to->sharers += used != 0;
			}
	}
}

/*
 * What the driver's attributes and the sensors tell. Where sensors tell no use (software devices, dry
 * runs, MIG instances, --nvml none), it is the part of the last second in which a session was
 * executing there.
 */
static void facts_fill(const struct obs_super *super, struct obp_load *ret)
{
	for (uint32_t i = 0; i < super->n_devices; i++) {
		struct obp_facts *facts = &ret->devices[i].facts;

		*facts = super->devices[i].facts;
		obp_fact_set(facts, OBP_FACT_USE_GPU, super->device_busy[i] / 10);
		obs_sense_merge(super, super->devices[i].uuid, facts, ret->nvidia_version);
	}
}

void obs_status_fill(
	struct obs_super *super, unsigned want, const struct obs_asker *asker, struct obp_load *ret)
{
	*ret = (struct obp_load){ .draining = super->draining || super->membership.drain_ns != 0,
		.sessions = (uint32_t)super->n_busy,
		.max_sessions = super->options->max_sessions,
		.warm = (uint32_t)super->n_idle,
		.starting = (uint32_t)super->n_starting,
		.busy = super->busy,
		.uptime_ns = ob_clock_ns() - super->since_ns,
		.sessions_total = super->sessions_total,
		.refused_total = super->refused_total,
		.deaths_total = super->deaths_total,
		.cuda_version = super->cuda_version,
		.memory_limit = super->options->limits.memory };
	snprintf(ret->version, sizeof ret->version, "%s", OB_VERSION);
	snprintf(ret->driver, sizeof ret->driver, "%s", super->driver ? super->driver : "");
	devices_fill(super, ret);
	if (want & OBP_LOAD_WANT_FACTS)
		facts_fill(super, ret);
	if (want & OBP_LOAD_WANT_SESSIONS)
		sessions_fill(super, NULL, ret);
	else if ((want & OBP_LOAD_WANT_OWN) && asker)
		sessions_fill(super, asker, ret);
}

static void totals_add(struct obs_totals *totals, const struct obs_stats_page *page)
{
	totals->calls += obs_stats_page_read(&page->calls);
	totals->replies += obs_stats_page_read(&page->replies);
	totals->bytes_in += obs_stats_page_read(&page->bytes_in);
	totals->bytes_out += obs_stats_page_read(&page->bytes_out);
	totals->device_ns += obs_stats_page_read(&page->device_ns);
	totals->throttled_ns += obs_stats_page_read(&page->throttled_ns);
	totals->refusals += obs_stats_page_read(&page->refusals);
	totals->cache_hits += obs_stats_page_read(&page->cache_hits);
	totals->cache_misses += obs_stats_page_read(&page->cache_misses);
	totals->cache_bytes += obs_stats_page_read(&page->cache_bytes);
}

void obs_status_totals(const struct obs_super *super, struct obs_totals *ret)
{
	*ret = super->ended;
	for (const struct obs_proc *p = super->procs; p; p = p->next)
		if (p->state == OBS_PROC_BUSY)
			totals_add(ret, p->page);
}

bool obs_status_answer(struct obs_super *super, int fd, uint64_t want)
{
	struct obs_asker asker;
	int size = 2 * OBP_CONTROL_MAX;
	struct obp_load load;
	struct ob_buf frame;
	bool sent = false;

	obs_asker_find(fd, &asker);
	if (!asker.local)
		want &= ~(uint64_t)OBP_LOAD_WANT_SESSIONS;
	obs_status_fill(super, (unsigned)want, &asker, &load);
	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX);
	if (obp_load_encode(&load, &frame)) {
		/*
		 * One write that never blocks, so the socket's buffer must hold the whole answer.
		 */
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
		sent = send(fd, frame.data, frame.size, MSG_DONTWAIT | MSG_NOSIGNAL) ==
			(ssize_t)frame.size;
		if (!sent)
			ob_debug("an answer about the load was not taken whole");
	}
	ob_buf_fini(&frame);
	obp_load_fini(&load);
	return sent;
}

/* ---- while sessions run ---- */

/* How many threads of the session are in a call at this moment. */
static uint64_t threads_in_calls(const struct obs_proc *proc)
{
	const struct obs_stats_page *page = proc->page;

	if (!atomic_load_explicit(&page->introduced, memory_order_acquire))
		return 0;
	return (uint64_t)obs_stats_page_read_word(&page->blocked) +
		!obs_stats_page_read_word(&page->waiting);
}

/* True if a call is being executed at this moment: not one that is held back. */
static bool executes(const struct obs_proc *proc)
{
	return threads_in_calls(proc) > obs_stats_page_read_word(&proc->page->held_back);
}

/*
 * For priorities: true if a call was begun, or was a moment ago. A session with many short calls
 * counts as working all the time, so that others do not slip in between them.
 */
static bool works(struct obs_proc *proc)
{
	uint64_t calls = obs_stats_page_read(&proc->page->calls);
	bool moved = threads_in_calls(proc) || calls != proc->seen_calls;

	proc->seen_calls = calls;
	proc->active_ticks = moved ? 4 : proc->active_ticks - (proc->active_ticks > 0);
	return proc->active_ticks > 0;
}

/* One more sample: the average over OBS_BUSY_TICKS of them. */
static uint32_t busy_next(uint32_t busy, bool now)
{
	return (busy * (OBS_BUSY_TICKS - 1) + (now ? 1000u : 0u)) / OBS_BUSY_TICKS;
}

uint32_t obs_status_busy(const struct obs_super *super, const struct obs_reservation *reservation)
{
	uint32_t busy = 0;

	for (const struct obs_proc *p = super->procs; p; p = p->next)
		if (p->state == OBS_PROC_BUSY && p->reservation == reservation)
			busy += p->busy;
	return ob_min(busy, 1000u);
}

static void sweep(uv_work_t *work)
{
	struct obs_super *super = work->data;

	obs_cache_sweep(&super->cache);
}

static void swept(uv_work_t *work, int status)
{
	struct obs_super *super = work->data;

	(void)status;
	super->sweeping = false;
}

/*
 * Workers see only their tenant's folder. A sweep of all files takes a while, so it runs on another
 * thread.
 */
static void cache_tend(struct obs_super *super)
{
	if (super->sweeping || !obs_cache_crowded(&super->cache))
		return;
	super->sweep.data = super;
	super->sweeping = uv_queue_work(&super->loop, &super->sweep, sweep, swept) == 0;
}

/* The devices that the session works on if it executes: its only one, or where it has memory. */
static uint32_t devices_of(const struct obs_super *super, const struct obs_proc *proc)
{
	bool single = super->n_devices == 1 || (proc->place.reserved && proc->place.n_devices == 1);
	uint32_t mask = 0, own;

	for (uint32_t i = 0; i < super->n_devices; i++)
		if (single ? obs_place_to_session(&proc->place, i, &own) : used_on(proc, i) != 0)
			mask |= 1u << i;
	return mask;
}

void obs_status_sample(struct obs_super *super)
{
	uint32_t working = 0;
	bool any = false;

	for (struct obs_proc *p = super->procs; p; p = p->next) {
		bool now = p->state == OBS_PROC_BUSY && executes(p);

		any |= now;
		working |= now ? devices_of(super, p) : 0;
		p->busy = p->state == OBS_PROC_BUSY ? busy_next(p->busy, now) : 0;
	}
	super->busy = busy_next(super->busy, any);
	for (uint32_t i = 0; i < super->n_devices; i++)
		super->device_busy[i] = busy_next(super->device_busy[i], working >> i & 1);
}

static void tick(uv_timer_t *timer)
{
	struct obs_super *super = timer->data;
	uint32_t highest = 0;

	obs_status_sample(super);
	for (struct obs_proc *p = super->procs; p; p = p->next) {
		if (p->state == OBS_PROC_BUSY && works(p)) {
			uint32_t own = priority_of(p);

			highest = ob_max(highest, own);
		}
	}
	for (struct obs_proc *p = super->procs; p; p = p->next)
		if (p->state == OBS_PROC_BUSY)
			atomic_store_explicit(
				&p->page->yield, priority_of(p) < highest, memory_order_relaxed);
	cache_tend(super);
	if (super->n_busy == 0 && super->busy < OBS_BUSY_TICKS) {
		super->busy = 0;
		memset(super->device_busy, 0, sizeof super->device_busy);
		uv_timer_stop(timer);
	}
}

void obs_status_session_began(struct obs_proc *proc, int fd)
{
	struct obs_super *super = proc->super;

	obs_asker_print(fd, proc->client, sizeof proc->client);
	proc->seen_calls = 0;
	proc->active_ticks = 0;
	proc->busy = 0;
	uv_timer_start(&super->status, tick, OBS_STATUS_TICK_MS, OBS_STATUS_TICK_MS);
}

void obs_status_session_ended(struct obs_proc *proc)
{
	totals_add(&proc->super->ended, proc->page);
}

/* Sessions get the next method of the list silently, so it is told here once. */
static void share_tell(const struct obs_super *super, const struct obs_stats_page *page)
{
	const struct obs_limits *limits = &super->options->limits;
	enum obp_share_by first = obs_limits_share_by(limits, 0);
	char why[OBS_SHARE_WHY_MAX + 1] = "";

	memcpy(why, page->share_why, OBS_SHARE_WHY_MAX);
	if (*why)
		ob_warn("shares are not kept by %s: %s", obp_share_by_name(first), why);
	else if (first == OBP_SHARE_BY_MPS)
		ob_warn("--share-by mps: a fault of one session can end the others on the same "
			"GPU; "
			"serve one tenant only");
}

void obs_status_worker_ready(struct obs_proc *proc)
{
	struct obs_super *super = proc->super;

	super->n_devices = word_take(&proc->page->n_devices, OBP_DEVICE_MAX);
	memcpy(super->devices, proc->page->devices, sizeof super->devices);
	for (uint32_t i = 0; i < super->n_devices; i++) {
		text_take(super->devices[i].name, proc->page->devices[i].name);
		obp_facts_check(&super->devices[i].facts);
		super->devices[i].share_by &= (1u << OBP_SHARE_BY_COUNT) - 1;
	}
	super->cuda_version = obs_stats_page_read_word(&proc->page->cuda_version);
	if (!super->sandbox_told)
		ob_info("sandbox of workers: %.*s", (int)sizeof proc->page->sandbox - 1,
			proc->page->sandbox);
	if (!super->sandbox_told)
		share_tell(super, proc->page);
	super->sandbox_told = true;
}
