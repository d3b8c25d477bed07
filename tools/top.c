/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `outboard top`: shows the sessions of one server, those with the most calls first, and refreshes
 * the list. It queries the supervisor; sessions are not affected. With a pool it shows the servers,
 * GPUs and programs of the pool (tools/pool_verbs.h).
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "loadbalancer/ask.h"
#include "loadbalancer/together.h"
#include "tools/command.h"
#include "tools/pool_verbs.h"
#include "tools/screen.h"
#include "tools/way.h"
#include "transport/failure.h"

#define ASK_NS (5 * OB_SECOND)
#define SCHEMA 1 /* of --json: keys may be added, but never change their meaning */

struct rates {
	double calls, bytes, device; /* calls/s, bytes/s, share of one device's time */
};

struct top {
	struct obt_stream kept;
	struct obt_url url;
	const char *server, *pool, *url_text;
	bool json, once;
	double interval_s;
	struct obx_screen screen;
	struct obp_load now, before;
	uint64_t now_ns, before_ns;
};

static const struct obp_load_session *find(const struct obp_load *load, uint64_t id)
{
	for (uint32_t i = 0; i < load->n_sessions; i++)
		if (load->listed[i].id == id)
			return &load->listed[i];
	return NULL;
}

/* Rates since the last sample, or since the session's start if it was not in it. */
static struct rates rates_of(const struct top *top, const struct obp_load_session *s)
{
	const struct obp_load_session *old = find(&top->before, s->id);
	double seconds = (double)(old ? top->now_ns - top->before_ns : s->age_ns) / 1e9;
	struct rates r = { 0 };

	if (seconds <= 0)
		return r;
	r.calls = (double)(s->calls - (old ? old->calls : 0)) / seconds;
	r.bytes =
		(double)(s->bytes_in + s->bytes_out - (old ? old->bytes_in + old->bytes_out : 0)) /
		seconds;
	r.device = (double)(s->device_ns - (old ? old->device_ns : 0)) / 1e9 / seconds;
	return r;
}

static const struct top *sorting;

static int by_calls(const void *a, const void *b)
{
	double x = rates_of(sorting, a).calls, y = rates_of(sorting, b).calls;

	return (x < y) - (x > y);
}

/* ---- text ---- */

static const char *age(uint64_t ns, char *ret, size_t size)
{
	uint64_t s = ns / OB_SECOND;

	if (s < 100)
		snprintf(ret, size, "%.1fs", (double)ns / 1e9);
	else if (s < 6000)
		snprintf(ret, size, "%llum%02llus", (unsigned long long)(s / 60),
			(unsigned long long)(s % 60));
	else
		snprintf(ret, size, "%lluh%02llum", (unsigned long long)(s / 3600),
			(unsigned long long)(s / 60 % 60));
	return ret;
}

/* Prints one line cut to the screen's width: a line that wraps would push others off the screen. */
static void put(const struct obx_screen *screen, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void put(const struct obx_screen *screen, const char *format, ...)
{
	char line[1024];
	va_list args;
	size_t n;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	n = strlen(line);
	while (n && line[n - 1] == ' ')
		n--;
	printf("%.*s\n", (int)ob_min(n, (size_t)screen->columns), line);
}

static void text_head(const struct top *top)
{
	const struct obx_screen *screen = &top->screen;
	const struct obp_load *l = &top->now;
	char up[32], used[32], total[32];

	put(screen, "%s: version %s, driver %s, up %s%s", top->url_text, l->version, l->driver,
		age(l->uptime_ns, up, sizeof up), l->draining ? ", shutting down" : "");
	put(screen,
		"%u of %u sessions, %u workers warm, %u starting; %llu in all, %llu refused; %.0f "
		"%% busy",
		l->sessions, l->max_sessions, l->warm, l->starting,
		(unsigned long long)l->sessions_total, (unsigned long long)l->refused_total,
		l->busy / 10.0);
	for (uint32_t i = 0; i < l->n_devices; i++) {
		ob_text_print_size(l->devices[i].used, used, sizeof used);
		ob_text_print_size(l->devices[i].total, total, sizeof total);
		put(screen, "[%u] %s: %s of %s used by %u session%s", i, l->devices[i].name, used,
			total, l->devices[i].sharers, l->devices[i].sharers == 1 ? "" : "s");
	}
}

/*
 * Columns are chosen by the screen's width. 80 columns show which session is active and its share
 * of the device; the client, the rates of calls and bytes, and the age need more.
 */
#define WIDE_COLUMNS 118u

static void text_row(const struct obx_screen *screen, bool wide, const char *const cell[10])
{
	if (wide)
		put(screen, "%8s %-16.16s %-22.22s %8s %10s %10s %11s %8s %6s %s", cell[0], cell[1],
			cell[2], cell[3], cell[4], cell[5], cell[6], cell[7], cell[8], cell[9]);
	else
		put(screen, "%8s %-14.14s %10s %8s %10s %7s %5s %s", cell[0], cell[1], cell[4],
			cell[5], cell[6], cell[7], cell[8], cell[9]);
}

static void state_print(const struct obp_load_session *s, char *ret, size_t size)
{
	static const char *const priorities[] = { "low priority", "", "high priority" };
	const char *state = s->throttle      ? obp_throttle_name(s->throttle)
		: s->idle_ns > 2 * OB_SECOND ? "idle"
					     : "",
		   *priority = priorities[s->priority];
	int n = snprintf(ret, size, "%s%s%s", state, *state && *priority ? ", " : "", priority);

	if (s->share_by > OBP_SHARE_BY_THROTTLE && s->share_by < OBP_SHARE_BY_COUNT && n >= 0 &&
		(size_t)n < size)
		snprintf(ret + n, size - (size_t)n, "%sshare by %s", n ? ", " : "",
			obp_share_by_name(s->share_by));
}

static void text_print(const struct top *top)
{
	static const char *const names[10] = { "pid", "program", "client", "age", "memory",
		"calls/s", "bytes/s", "device", "share", "state" };
	const struct obx_screen *screen = &top->screen;
	uint32_t used = top->now.n_devices + 5; /* lines other than those of sessions */
	bool wide = screen->columns >= WIDE_COLUMNS;

	text_head(top);
	put(screen, "%s", "");
	text_row(screen, wide, names);
	for (uint32_t i = 0;
		i < top->now.n_sessions && (screen->rows <= used + 1 || i < screen->rows - used);
		i++) {
		const struct obp_load_session *s = &top->now.listed[i];
		struct rates r = rates_of(top, s);
		char pid[24], old[32], memory[32], calls[32], bytes[32], device[16] = "-",
									 share[16], state[64];

		snprintf(pid, sizeof pid, "%llu", (unsigned long long)s->pid);
		ob_text_print_size(s->memory, memory, sizeof memory);
		snprintf(calls, sizeof calls, "%.0f", r.calls);
		ob_text_print_size((uint64_t)r.bytes, bytes, sizeof bytes);
		if (s->device_ns)
			snprintf(device, sizeof device, "%.0f %%", r.device * 100);
		snprintf(share, sizeof share, "%.0f%%", s->share * 100.0 / OBP_SHARE_ALL);
		state_print(s, state, sizeof state);
		text_row(screen, wide,
			(const char *const[10]){ pid, s->program, s->client,
				age(s->age_ns, old, sizeof old), memory, calls, bytes, device,
				share, state });
	}
	if (top->now.sessions > top->now.n_sessions)
		put(screen, "%s",
			top->now.n_sessions ? "... and more than one answer holds"
					    : "the sessions are told to clients on the server's "
					      "own host only: run this there");
	fflush(stdout);
}

/* ---- JSON ---- */

static void json_session(
	struct ob_json *json, const struct top *top, const struct obp_load_session *s)
{
	struct rates r = rates_of(top, s);

	ob_json_break(json);
	ob_json_object(json, NULL);
	ob_json_textf(json, "id", "%016llx", (unsigned long long)s->id);
	ob_json_uint(json, "pid", s->pid);
	ob_json_text(json, "program", s->program);
	ob_json_text(json, "client", s->client);
	ob_json_text(json, "conduct", obp_throttle_name(s->throttle));
	ob_json_fixed(json, "age_seconds", (double)s->age_ns / 1e9, 3);
	ob_json_fixed(json, "idle_seconds", (double)s->idle_ns / 1e9, 3);
	ob_json_uint(json, "memory_bytes", s->memory);
	ob_json_uint(json, "memory_limit_bytes", s->memory_limit);
	ob_json_uint(json, "calls", s->calls);
	ob_json_uint(json, "replies", s->replies);
	ob_json_uint(json, "bytes_in", s->bytes_in);
	ob_json_uint(json, "bytes_out", s->bytes_out);
	ob_json_fixed(json, "calls_per_second", r.calls, 1);
	ob_json_fixed(json, "bytes_per_second", r.bytes, 1);
	ob_json_fixed(json, "device_seconds", (double)s->device_ns / 1e9, 6);
	ob_json_fixed(json, "throttled_seconds", (double)s->throttled_ns / 1e9, 6);
	ob_json_fixed(json, "share", s->share / (double)OBP_SHARE_ALL, 6);
	if (s->share_by < OBP_SHARE_BY_COUNT)
		ob_json_text(json, "share_by", obp_share_by_name(s->share_by));
	else
		ob_json_null(json, "share_by");
	ob_json_uint(json, "priority", s->priority);
	ob_json_uint(json, "refusals", s->refusals);
	ob_json_end(json);
}

static void json_device(struct ob_json *json, const struct obp_load_device *d)
{
	ob_json_break(json);
	ob_json_object(json, NULL);
	ob_json_text(json, "name", d->name);
	ob_json_uint(json, "memory_bytes", d->total);
	ob_json_uint(json, "used_bytes", d->used);
	ob_json_uint(json, "sharers", d->sharers);
	ob_json_uint(json, "units", d->units);
	ob_json_uint(json, "capability", d->capability);
	ob_json_array(json, "share_by");
	for (uint32_t by = OBP_SHARE_BY_THROTTLE; by < OBP_SHARE_BY_COUNT; by++)
		if (d->share_by >> by & 1)
			ob_json_text(json, NULL, obp_share_by_name(by));
	ob_json_end(json);
	ob_json_end(json);
}

static void json_print(const struct top *top)
{
	const struct obp_load *l = &top->now;
	struct ob_json json;

	ob_json_begin(&json, stdout, OB_JSON_SPACED);
	ob_json_object(&json, NULL);
	ob_json_uint(&json, "schema", SCHEMA);
	ob_json_text(&json, "server", top->url_text);
	ob_json_text(&json, "version", l->version);
	ob_json_text(&json, "driver", l->driver);
	ob_json_bool(&json, "draining", l->draining);
	ob_json_uint(&json, "sessions", l->sessions);
	ob_json_uint(&json, "max_sessions", l->max_sessions);
	ob_json_uint(&json, "warm", l->warm);
	ob_json_uint(&json, "starting", l->starting);
	ob_json_fixed(&json, "busy_ratio", l->busy / 1000.0, 3);
	ob_json_fixed(&json, "uptime_seconds", (double)l->uptime_ns / 1e9, 3);
	ob_json_uint(&json, "sessions_total", l->sessions_total);
	ob_json_uint(&json, "refused_total", l->refused_total);
	ob_json_break(&json);
	ob_json_array(&json, "devices");
	for (uint32_t i = 0; i < l->n_devices; i++)
		json_device(&json, &l->devices[i]);
	ob_json_end(&json);
	ob_json_break(&json);
	ob_json_array(&json, "listed");
	for (uint32_t i = 0; i < l->n_sessions; i++)
		json_session(&json, top, &l->listed[i]);
	ob_json_end(&json);
	ob_json_end(&json);
	putchar('\n');
	fflush(stdout);
}

/* ---- sampling ---- */

static bool look(struct top *top)
{
	struct obp_load load;
	struct ob_cause cause;
	enum ob_err err = obl_ask(&top->url, OBP_LOAD_WANT_SESSIONS, ob_clock_ns() + ASK_NS,
		&top->kept, &load, &cause);

	if (err) {
		const struct obt_failure failure = { .cause = &cause,
			.connected = err != OB_ERR_TIMEOUT,
			.timeout_s = ASK_NS / OB_SECOND,
			.url = &top->url,
			.text = top->url_text };
		char text[OBT_FAILURE_TEXT];

		obx_screen_close(&top->screen);
		obt_failure_print(&failure, text, sizeof text);
		fprintf(stderr, "outboard top: %s\n", text);
		return false;
	}
	obp_load_fini(&top->before);
	top->before = top->now;
	top->before_ns = top->now_ns;
	top->now = load;
	top->now_ns = ob_clock_ns();
	sorting = top;
	if (load.n_sessions)
		qsort(load.listed, load.n_sessions, sizeof *load.listed, by_calls);
	return true;
}

static int run(struct top *top)
{
	bool screen = !top->json && !top->once;

	/*
	 * Redrawn output is cut to the terminal's width. A single sample and output to a file have
	 * whole lines.
	 */
	top->screen = (struct obx_screen){ .rows = UINT_MAX, .columns = UINT_MAX };
	if (screen)
		obx_screen_open(&top->screen);
	/*
	 * Rates need two samples. With a single sample the mean since the session's start is shown,
	 * without waiting.
	 */
	while (look(top)) {
		if (screen)
			obx_screen_clear(&top->screen);
		if (top->json)
			json_print(top);
		else
			text_print(top);
		if (top->once)
			return 0;
		if (fflush(stdout) != 0 || ferror(stdout))
			return OBX_EXIT_UNWELL;
		if (obx_screen_wait(&top->screen, top->interval_s)) {
			obx_screen_close(&top->screen);
			return 0;
		}
		if (screen && !top->screen.terminal)
			printf("\n");
	}
	return OBX_EXIT_UNWELL;
}

static const struct ob_option options[] = {
	OBX_SERVER_OPTION(struct top, server),
	OBX_POOL_OPTION(struct top, pool),
	{ OB_OPTION("interval", OB_REAL, struct top, interval_s), .arg = "S", .low = 0.1,
		.high = 3600, .fallback = "1", .help = "seconds between samples" },
	{ OB_OPTION("once", OB_FLAG, struct top, once),
		.help = "one sample; rates are then means since each session's start" },
	{ OB_OPTION("json", OB_FLAG, struct top, json), .help = "one JSON object for each sample" },
	{ 0 },
};

static int top_main(int argc, char **argv)
{
	static struct top top = { .interval_s = 1, .kept.fd = -1 };
	struct obx_way way;
	struct ob_cause cause;
	int code = ob_options_parse(&obx_top_command, &top, argc, argv);

	if (code == OB_OPTIONS_GO)
		code = obx_way_find(&obx_top_command, top.pool, top.server, &way);
	if (code != OB_OPTIONS_GO)
		return code;
	if (way.pool) {
		const struct obx_look look = {
			.json = top.json, .watch = !top.once, .interval_s = top.interval_s
		};

		return obx_pool_top(&obx_top_command, way.pool, &look);
	}
	top.url_text = way.server;
	if (obl_together_several(top.url_text))
		return ob_usage_error(&obx_top_command,
			"'%s' names several servers: name one of them with --server", top.url_text);
	if (obt_url_parse(top.url_text, &top.url, &cause))
		return ob_usage_error(&obx_top_command, "the server's address '%s': %s",
			top.url_text, cause.text);
	return run(&top);
}

const struct ob_command obx_top_command = {
	.name = "outboard top",
	.group = OBX_GROUP_REMOTE,
	.summary = "the sessions of a server or a pool, refreshed",
	.about = "Shows the sessions of one server: memory, calls and bytes a second, age, client. "
		 "The list is refreshed until q is pressed. A server lists its sessions only to "
		 "clients on its own host. With a pool: its servers, GPUs and programs.",
	.options = options,
	.main = top_main,
};
