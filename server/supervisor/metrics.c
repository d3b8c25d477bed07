/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/metrics.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "server/supervisor/status.h"
#include "transport/connect.h"

#define TEXT_MAX      (1u << 20)
#define LOOK_AGAIN_MS 50 /* while connections are open */
#define BACKLOG       1024

struct peer {
	struct peer *newer, *older;
	int fd; /* -1: closed by the server */
};

static struct metrics {
	struct peer *newest, *oldest; /* connections */
	unsigned n_open;              /* not closed by the server */
	struct MHD_Daemon *daemon;
	uv_poll_t poll;
	uv_timer_t timer;
	int fd;    /* listening */
	bool open; /* there were connections at the last look */
} metrics;

/* ---- the text ---- */

static void put(struct ob_buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct ob_buf *out, const char *format, ...)
{
	char line[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (n > 0)
		ob_buf_append(out, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static void head(struct ob_buf *out, const char *name, const char *type, const char *what)
{
	put(out, "# HELP outboard_%s %s\n# TYPE outboard_%s %s\n", name, what, name, type);
}

static void gauge(struct ob_buf *out, const char *name, const char *what, double value)
{
	head(out, name, "gauge", what);
	put(out, "outboard_%s %.9g\n", name, value);
}

static void counter(struct ob_buf *out, const char *name, const char *what, uint64_t value)
{
	head(out, name, "counter", what);
	put(out, "outboard_%s %llu\n", name, (unsigned long long)value);
}

static void seconds(struct ob_buf *out, const char *name, const char *what, uint64_t ns)
{
	head(out, name, "counter", what);
	put(out, "outboard_%s %.9f\n", name, (double)ns / 1e9);
}

/* A label's value: quotes, backslashes and line ends are escaped. */
static const char *label(const char *text, char *ret, size_t size)
{
	size_t n = 0;

	for (; *text && n + 3 < size; text++) {
		if (*text == '"' || *text == '\\')
			ret[n++] = '\\';
		ret[n++] = (unsigned char)*text < 0x20 ? '?' : *text;
	}
	ret[n] = 0;
	return ret;
}

/* Labels as dcgm-exporter's, so that the series can be joined. */
static void device_labels(
	const struct obp_load_device *device, uint32_t index, char *ret, size_t size)
{
	char hex[33], name[2 * OBP_LOAD_NAME_MAX];

	ob_text_hex(device->uuid, sizeof device->uuid, hex);
	snprintf(ret, size, "{gpu=\"%u\",UUID=\"GPU-%.8s-%.4s-%.4s-%.4s-%.12s\",modelName=\"%s\"}",
		index, hex, hex + 8, hex + 12, hex + 16, hex + 20,
		label(device->name, name, sizeof name));
}

static void devices(struct ob_buf *out, const struct obp_load *load)
{
	static const struct {
		const char *name, *what;
	} series[] = {
		{ "device_memory_bytes", "Memory of the device." },
		{ "device_memory_used_bytes", "Memory charged to sessions." },
		{ "device_sessions", "Sessions that hold memory on the device." },
	};

	for (unsigned s = 0; s < 3; s++) {
		head(out, series[s].name, "gauge", series[s].what);
		for (uint32_t i = 0; i < load->n_devices; i++) {
			const struct obp_load_device *d = &load->devices[i];
			char labels[256];

			device_labels(d, i, labels, sizeof labels);
			put(out, "outboard_%s%s %llu\n", series[s].name, labels,
				(unsigned long long)(s == 0 ? d->total
						: s == 1    ? d->used
							    : d->sharers));
		}
	}
}

static void sessions(struct ob_buf *out, const struct obp_load *load)
{
	unsigned throttle[OBP_THROTTLE_COUNT] = { 0 };
	uint64_t memory = 0, idle = 0;

	for (uint32_t i = 0; i < load->n_sessions; i++) {
		throttle[load->listed[i].throttle]++;
		memory += load->listed[i].memory;
		idle = load->listed[i].idle_ns > idle ? load->listed[i].idle_ns : idle;
	}
	gauge(out, "session_memory_used_bytes", "Device memory of all sessions.", (double)memory);
	gauge(out, "session_idle_seconds_max", "How long the most idle session has made no call.",
		(double)idle / 1e9);
	head(out, "sessions_by_conduct", "gauge", "Sessions by how they keep to their limits.");
	for (uint32_t c = 0; c < OBP_THROTTLE_COUNT - 1; c++)
		put(out, "outboard_sessions_by_conduct{conduct=\"%s\"} %u\n", obp_throttle_name(c),
			throttle[c]);
}

static void cache(struct ob_buf *out, const struct obs_cache *kept, const struct obs_totals *totals)
{
	uint64_t bytes, evicted;

	obs_cache_count(kept, &bytes, &evicted);
	gauge(out, "cache_bytes", "Uploads kept for later sessions.", (double)bytes);
	gauge(out, "cache_limit_bytes", "What may be kept.", (double)kept->limit);
	counter(out, "cache_hits_total",
		"Chunks of uploads that clients asked for and that were there.",
		totals->cache_hits);
	counter(out, "cache_misses_total", "Those that were not.", totals->cache_misses);
	counter(out, "cache_hit_bytes_total",
		"Bytes copied to devices that did not have to be sent.", totals->cache_bytes);
	counter(out, "cache_evictions_total",
		"Kept uploads thrown away to make room, since the directory was made.", evicted);
}

static void pool(struct ob_buf *out, const struct obs_membership *m)
{
	static const struct {
		enum obp_pool_state state;
		const char *name;
	} states[] = { { OBP_POOL_CLAIMED, "claimed" }, { OBP_POOL_ENDED, "ended" },
		{ OBP_POOL_VOID, "void" } };
	uint32_t registered = 0;

	if (!m->tick)
		return;
	for (uint32_t i = 0; i < m->n_members; i++)
		registered += m->members[i].balancer[0] != '\0';
	gauge(out, "pool_balancers", "Balancers of the pool.", m->n_members);
	gauge(out, "pool_balancers_registered", "Balancers at which the server is registered.",
		registered);
	gauge(out, "pool_cordoned", "1 while no new reservations are taken.",
		m->cordoned || m->drain_ns);
	head(out, "reservations", "gauge",
		"Reservations by state; ended and void ones until they are credited.");
	for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
		put(out, "outboard_reservations{state=\"%s\"} %u\n", states[i].name,
			obs_reservations_count(&m->reservations, states[i].state));
	head(out, "tickets_refused_total", "counter",
		"Sessions refused for their ticket, or for having none, by reason.");
	for (uint32_t i = 0; i < OBS_TICKET_REFUSAL_COUNT; i++)
		put(out, "outboard_tickets_refused_total{reason=\"%s\"} %llu\n",
			obs_ticket_refusal_name((enum obs_ticket_refusal)i),
			(unsigned long long)m->refused[i]);
}

static void text_make(struct obs_super *super, struct ob_buf *out)
{
	struct obs_totals totals;
	struct obp_load load;
	char text[2 * OBP_NAME_MAX];

	obs_status_fill(super, OBP_LOAD_WANT_SESSIONS, NULL, &load);
	obs_status_totals(super, &totals);
	head(out, "server_info", "gauge", "Always 1.");
	put(out, "outboard_server_info{version=\"%s\",driver=\"%.200s\"} 1\n", load.version,
		label(load.driver, text, sizeof text));
	gauge(out, "uptime_seconds", "Since the server started.", (double)load.uptime_ns / 1e9);
	gauge(out, "draining", "1 while the server shuts down.", load.draining);
	gauge(out, "sessions", "Sessions now.", load.sessions);
	gauge(out, "sessions_max", "Sessions that there may be.", load.max_sessions);
	gauge(out, "workers_warm", "Workers that wait for a session, their driver loaded.",
		load.warm);
	gauge(out, "workers_starting", "Workers whose driver is loading.", load.starting);
	gauge(out, "busy_ratio", "Part of the last second in which any session executed calls.",
		load.busy / 1000.0);
	counter(out, "sessions_started_total", "Sessions given to a worker.", load.sessions_total);
	counter(out, "connections_refused_total", "Connections answered with a refusal.",
		load.refused_total);
	counter(out, "worker_deaths_total",
		"Workers that ended otherwise than by their session's end.", load.deaths_total);
	counter(out, "calls_total", "Calls executed.", totals.calls);
	counter(out, "replies_total", "Replies sent: calls that somebody waited for.",
		totals.replies);
	head(out, "net_bytes_total", "counter", "Bytes of data connections, by direction.");
	put(out,
		"outboard_net_bytes_total{dir=\"in\"} %llu\noutboard_net_bytes_total{dir=\"out\"} "
		"%llu\n",
		(unsigned long long)totals.bytes_in, (unsigned long long)totals.bytes_out);
	seconds(out, "device_seconds_total",
		"Measured device time of launches, where it is measured.", totals.device_ns);
	seconds(out, "throttled_seconds_total",
		"How long launches were held back for a share or a priority.", totals.throttled_ns);
	counter(out, "limit_refusals_total", "Calls refused by a limit.", totals.refusals);
	cache(out, &super->cache, &totals);
	devices(out, &load);
	sessions(out, &load);
	pool(out, &super->membership);
	obp_load_fini(&load);
}

/* ---- HTTP ---- */

static enum MHD_Result respond(
	struct MHD_Connection *connection, unsigned status, const char *type, struct ob_buf *body)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(body->size, body->data, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result = MHD_NO;

	if (response) {
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
		result = MHD_queue_response(connection, status, response);
		MHD_destroy_response(response);
	}
	return result;
}

static enum MHD_Result answer(void *user, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **state)
{
	static const char other[] = "This is an Outboard server; its metrics are at /metrics\n";
	enum MHD_Result result;
	struct ob_buf body;

	(void)version;
	(void)data;
	(void)state;
	if (*size) { /* requests with a body are not supported */
		*size = 0;
		return MHD_YES;
	}
	ob_buf_init(&body, TEXT_MAX);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0) {
		ob_buf_append(&body, "GET only\n", 9);
		result = respond(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", &body);
	} else if (strcmp(url, "/metrics") != 0) {
		ob_buf_append(&body, other, sizeof other - 1);
		result = respond(connection, MHD_HTTP_NOT_FOUND, "text/plain", &body);
	} else {
		text_make(user, &body);
		result = respond(
			connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", &body);
	}
	ob_buf_fini(&body);
	return result;
}

/* ---- connections ---- */

/*
 * A connection that sends half a request, or reads slowly, is closed after a time-out, and earlier
 * when others come: beyond OBS_METRICS_FULL connections the oldest is closed. A scraper sends its
 * request at once and reads the answer, so it is never among the oldest.
 */
static void oldest_evict(void)
{
	for (struct peer *peer = metrics.oldest; peer && metrics.n_open >= OBS_METRICS_FULL;
		peer = peer->newer) {
		if (peer->fd < 0)
			continue;
		/* the library notices the end in its next turn and closes it */
		shutdown(peer->fd, SHUT_RDWR);
		peer->fd = -1;
		metrics.n_open--;
	}
}

static void peer_remove(struct peer *peer)
{
	*(peer->newer ? &peer->newer->older : &metrics.newest) = peer->older;
	*(peer->older ? &peer->older->newer : &metrics.oldest) = peer->newer;
	metrics.n_open -= peer->fd >= 0;
	free(peer);
}

static void connection_changed(void *unused, struct MHD_Connection *connection, void **state,
	enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct peer *peer = *state;

	(void)unused;
	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (peer)
			peer_remove(peer);
		*state = NULL;
		return;
	}
	peer = calloc(1, sizeof *peer);
	if (!peer)
		return;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	oldest_evict();
	peer->fd = info ? info->connect_fd : -1;
	peer->older = metrics.newest;
	*(metrics.newest ? &metrics.newest->newer : &metrics.oldest) = peer;
	metrics.newest = peer;
	metrics.n_open += peer->fd >= 0;
	*state = peer;
}

/* ---- in the loop ---- */

static void work(void);

static void timer_due(uv_timer_t *timer)
{
	(void)timer;
	work();
}

static void work(void)
{
	const union MHD_DaemonInfo *info;
	MHD_UNSIGNED_LONG_LONG ms = LOOK_AGAIN_MS;
	bool had = metrics.open;

	MHD_run(metrics.daemon);
	info = MHD_get_daemon_info(metrics.daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
	metrics.open = info && info->num_connections;
	/*
	 * Its descriptor shows neither time-outs nor room for the next connection: look again soon.
	 */
	if (!metrics.open && !had)
		return;
	if (MHD_get_timeout(metrics.daemon, &ms) != MHD_YES || ms > LOOK_AGAIN_MS)
		ms = LOOK_AGAIN_MS;
	uv_timer_start(&metrics.timer, timer_due, ms + 1, 0);
}

static void readable(uv_poll_t *poll, int status, int events)
{
	(void)poll;
	(void)status;
	(void)events;
	work();
}

enum ob_err obs_metrics_open(struct obs_super *super, const char *text, struct ob_cause *ret_cause)
{
	const union MHD_DaemonInfo *info;
	struct ob_cause cause = { .text = "write tcp://127.0.0.1:9464" };
	char printed[OBS_URL_MAX];
	struct obt_url url;
	enum ob_err err = obt_url_parse(text, &url, &cause);

	if (!err && url.scheme != OBT_TCP)
		err = OB_ERR_URL;
	if (!err)
		err = obt_listen(&url, BACKLOG, &metrics.fd, printed, sizeof printed, &cause);
	if (err)
		return ob_cause_set(
			ret_cause, err, "cannot serve metrics at %.200s: %s", text, cause.text);
	metrics.daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, super,
		MHD_OPTION_LISTEN_SOCKET, metrics.fd, MHD_OPTION_CONNECTION_LIMIT,
		OBS_METRICS_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, OBS_METRICS_TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384, MHD_OPTION_NOTIFY_CONNECTION,
		connection_changed, NULL, MHD_OPTION_END);
	info = metrics.daemon ? MHD_get_daemon_info(metrics.daemon, MHD_DAEMON_INFO_EPOLL_FD)
			      : NULL;
	if (!info) {
		close(metrics.fd);
		return ob_cause_set(ret_cause, OB_ERR_IO,
			"cannot serve metrics at %.200s: libmicrohttpd does not start", text);
	}
	uv_timer_init(&super->loop, &metrics.timer);
	uv_poll_init(&super->loop, &metrics.poll, info->epoll_fd);
	uv_poll_start(&metrics.poll, UV_READABLE, readable);
	fprintf(stderr, "outboard-server: metrics at http%s/metrics\n", printed + 3);
	return OB_ERR_NONE;
}

static void poll_closed(uv_handle_t *handle)
{
	(void)handle;
	MHD_stop_daemon(metrics.daemon); /* closes the listening socket too */
}

void obs_metrics_close(struct obs_super *super)
{
	(void)super;
	if (!metrics.daemon)
		return;
	uv_close((uv_handle_t *)&metrics.timer, NULL);
	uv_close((uv_handle_t *)&metrics.poll, poll_closed);
}
