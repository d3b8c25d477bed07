/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/timeline_server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "client-shim/session/inside.h"
#include "client-shim/session/log.h"
#include "client-shim/session/server.h"
#include "client-shim/session/timeline.h"
#include "protocol/obc_calls.h"

/*
 * Records between two readings. The server keeps 256 Ki events, two and sometimes more for each. A
 * call that waits anyway reads earlier than one that does not.
 */
#define READ_WAITING (32u << 10)
#define READ_ASYNC   (64u << 10)

struct server_state {
	bool offered;
	_Atomic bool reading; /* a thread reads: it owns the fields below */
	_Atomic uint64_t read_at;
	struct obp_timeline_event *rows;
	size_t n, max;
	uint64_t lost;   /* by the server */
	uint64_t beyond; /* received beyond the limit */
	/* number of the record that switched the server's events off; 0: they are on */
	uint64_t stopped;
	pthread_mutex_t fit_lock;
	struct obc_fit fit;
};

static OBC_PER_SERVER struct server_state server_first = { .fit_lock = PTHREAD_MUTEX_INITIALIZER };
#define server OBC_HERE(server_first)

/* Returns the number of events received. */
static size_t read_once(void)
{
	/* owned by the reading thread */
	static OBC_PER_SERVER uint8_t events_first[OBP_TIMELINE_BYTES];
	uint8_t *events = OBC_HERE(events_first);
	uint64_t clock = 0, lost = 0, sent = ob_clock_ns();
	uint32_t size = 0;
	size_t n, fit;

	if (obc_call_op_timeline_read(OBP_TIMELINE_BYTES, &clock, &lost, events, &size) !=
		CUDA_SUCCESS)
		return 0;
	obc_timeline_server_ping(sent, clock, ob_clock_ns());
	n = size / sizeof *server.rows;
	fit = ob_min(n, server.max - server.n);
	memcpy(server.rows + server.n, events, fit * sizeof *server.rows);
	server.n += fit;
	server.lost = lost;
	server.beyond += n - fit;
	return n;
}

static void read_all(void)
{
	while (server.n < server.max && read_once() >= OBP_TIMELINE_BYTES / sizeof *server.rows)
		;
	/* Nothing more can be stored: the server need not keep events any longer. */
	if (server.n >= server.max && !server.stopped &&
		obc_call_op_timeline_switch(false) == CUDA_SUCCESS)
		server.stopped = obc_log_last();
}

/* Called by the log after a record was written, or after its reply was received. */
static void due(uint64_t number, bool waited)
{
	uint64_t since = atomic_load_explicit(&server.read_at, memory_order_relaxed);
	OBC_WAITS();

	if (number - since < (waited ? READ_WAITING : READ_ASYNC) || number < since ||
		server.stopped || obc_log_ending() || atomic_exchange(&server.reading, true))
		return;
	read_all();
	atomic_store_explicit(&server.read_at, obc_log_last(), memory_order_relaxed);
	atomic_store(&server.reading, false);
}

void obc_timeline_server_start(void)
{
	void *rows;

	if (!obc_timeline_on)
		return;
	if (obc_lines_known < OBP_LINE_timeline_read) {
		ob_warn("the server is older than this client and reports no times: the timeline "
			"shows the client only");
		return;
	}
	server.max = 2 * obc_timeline_limit(); /* of a record: its execution, the device's work */
	rows = mmap(NULL, server.max * sizeof *server.rows, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (rows == MAP_FAILED || obc_call_op_timeline_switch(true) != CUDA_SUCCESS)
		return;
	server.rows = rows;
	server.offered = true;
	obc_log_on_watched(due);
}

void obc_timeline_server_end(void)
{
	if (!server.offered || !obc_timeline_on || obc_inside || obc_log_alive() != CUDA_SUCCESS)
		return;
	obc_log_on_watched(NULL);
	/* Another thread may be reading; the program ends before it is done. */
	if (atomic_exchange(&server.reading, true))
		return;
	obc_log_set_deadline(ob_clock_ns() + OBC_TIMELINE_END_NS);
	read_all();
}

void obc_timeline_server_forget(void)
{
	server = (struct server_state){ .fit_lock = PTHREAD_MUTEX_INITIALIZER };
}

void obc_timeline_server_ping(uint64_t sent, uint64_t clock, uint64_t received)
{
	pthread_mutex_lock(&server.fit_lock);
	obc_fit_add(&server.fit, sent, clock, clock, received);
	pthread_mutex_unlock(&server.fit_lock);
}

/* Calls with their replies bound the difference of the clocks more tightly than pings. */
struct exchange {
	uint64_t number, at, ended;
};

struct exchanges {
	struct exchange *list;
	size_t n, max;
};

static void exchange_add(void *user, unsigned track, const struct obc_timeline_event *event)
{
	struct exchanges *all = user;

	(void)track;
	if (event->kind == OBC_EVENT_WAIT && all->n < all->max)
		all->list[all->n++] =
			(struct exchange){ event->number, event->at, event->at + event->took };
}

static int by_exchange(const void *a, const void *b)
{
	uint64_t x = ((const struct exchange *)a)->number, y = ((const struct exchange *)b)->number;

	return x < y ? -1 : x > y;
}

static void clock_refine(struct obc_fit *fit)
{
	struct exchanges all = { .max = obc_timeline_limit() };

	all.list = malloc(all.max * sizeof *all.list);
	if (!all.list)
		return;
	for (unsigned lane = 0; lane < OBP_LANE_MAX; lane++)
		obc_timeline_each(lane, exchange_add, &all);
	qsort(all.list, all.n, sizeof *all.list, by_exchange);
	for (size_t i = 0; i < server.n; i++) {
		const struct obp_timeline_event *row = &server.rows[i];
		struct exchange *found = bsearch(&(struct exchange){ .number = row->number },
			all.list, all.n, sizeof *all.list, by_exchange);

		if (found && obp_timeline_kind(row) != OBP_TIMELINE_DEVICE)
			obc_fit_add(
				fit, found->at, row->at_ns, row->at_ns + row->more, found->ended);
	}
	free(all.list);
}

void obc_timeline_server_rows(struct obc_timeline_rows *ret)
{
	struct obc_log_stats stats;

	obc_log_stats(&stats);
	pthread_mutex_lock(&server.fit_lock);
	*ret = (struct obc_timeline_rows){ .rows = server.rows,
		.n = server.n,
		.dropped = server.lost + server.beyond,
		.fit = server.fit,
		.offered = server.offered };
	pthread_mutex_unlock(&server.fit_lock);
	clock_refine(&ret->fit);
	if (server.stopped)
		ret->dropped += stats.records - server.stopped;
}
