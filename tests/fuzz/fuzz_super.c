/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/fuzz/fuzz_super.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/supervisor/lease.h"
#include "server/supervisor/pending.h"
#include "server/supervisor/supervisor.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_peer.h"

/* above the largest process id of Linux: a signal to it has no effect */
#define NO_PROCESS INT_MAX
#define TURNS_MAX  1000

struct obs_super fuzz_super;
int fuzz_admission = -1;
struct obs_proc *fuzz_worker[FUZZ_WORKERS];
int fuzz_worker_end[FUZZ_WORKERS];

static struct obs_options options;

void fuzz_super_start(void)
{
	char *argv[] = { "outboard-server", "--driver", "null", "--listen", "tcp://127.0.0.1:0",
		"--max-sessions", "2", "--upload-cache", "0", NULL };

	ob_log_set_level(OB_LOG_DEBUG); /* log lines are formatted and dropped */
	ob_log_set_fd(-1);
	if (obs_options_parse(&options, 9, argv) || uv_loop_init(&fuzz_super.loop) != 0)
		exit(1);
	options.refill = 0; /* no process is started */
	fuzz_super.options = &options;
	obs_super_listen(&fuzz_super);
	fuzz_super.cache.top = fuzz_super.cache.dir = -1;
	fuzz_super.admit.fd = -1;
	fuzz_super.admit.process.pid = NO_PROCESS;
	uv_timer_init(&fuzz_super.loop, &fuzz_super.status);
	uv_timer_init(&fuzz_super.loop, &fuzz_super.retry);
	fuzz_super.status.data = fuzz_super.retry.data = &fuzz_super;
}

static void worker_new(unsigned i)
{
	struct obs_proc *proc = calloc(1, sizeof *proc);
	int ends[2], page = -1;

	if (!proc || !(proc->page = obs_stats_page_new(&page)) || obs_handoff_pair(ends) != 0 ||
		fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) {
		perror("a worker");
		exit(1);
	}
	if (ftruncate(page, 0) == 0)
		abort(); /* must be sealed: the worker maps it, too */
	close(page);
	proc->super = &fuzz_super;
	proc->process.pid = NO_PROCESS;
	proc->fd = ends[0];
	proc->since_ns = ob_clock_ns();
	uv_timer_init(&fuzz_super.loop, &proc->timer);
	proc->next = fuzz_super.procs;
	if (fuzz_super.procs)
		fuzz_super.procs->prev = proc;
	fuzz_super.procs = proc;
	fuzz_super.n_procs++;
	fuzz_super.n_starting++;
	fuzz_worker[i] = proc;
	fuzz_worker_end[i] = ends[1];
}

void fuzz_super_begin(void)
{
	int ends[2];

	if (obs_handoff_pair(ends) != 0) {
		perror("a channel");
		exit(1);
	}
	fuzz_super.admit.fd = ends[0];
	fuzz_admission = ends[1];
	fuzz_super.since_ns = ob_clock_ns();
	fuzz_super.retrying = false;
	fuzz_super.draining = false;
	fuzz_super.sandbox_told = false;
	fuzz_super.n_devices = 0;
	for (unsigned i = 0; i < FUZZ_WORKERS; i++)
		worker_new(i);
}

void fuzz_super_turn(void)
{
	uv_run(&fuzz_super.loop, UV_RUN_NOWAIT);
}

void fuzz_super_end(void)
{
	obs_pending_close_all(&fuzz_super);
	uv_timer_stop(&fuzz_super.status);
	uv_timer_stop(&fuzz_super.retry);
	for (unsigned i = 0; i < FUZZ_WORKERS; i++)
		uv_close((uv_handle_t *)&fuzz_worker[i]->timer, NULL);
	for (unsigned i = 0; i < TURNS_MAX && (i == 0 || fuzz_super.n_pending); i++)
		fuzz_super_turn();
	if (fuzz_super.n_pending || fuzz_super.n_waiting)
		abort();
	for (unsigned i = 0; i < FUZZ_WORKERS; i++) {
		obs_broker_forget(&fuzz_super.broker, fuzz_worker[i]->id);
		obs_lease_drop(&fuzz_super, fuzz_worker[i]->reservation, fuzz_worker[i]->page);
		close(fuzz_worker[i]->fd);
		close(fuzz_worker_end[i]);
		obs_stats_page_free(fuzz_worker[i]->page);
		free(fuzz_worker[i]);
	}
	obs_reservations_fini(&fuzz_super.membership.reservations);
	close(fuzz_super.admit.fd);
	close(fuzz_admission);
	fuzz_super.procs = NULL;
	fuzz_super.n_procs = fuzz_super.n_starting = fuzz_super.n_idle = fuzz_super.n_busy = 0;
}

void fuzz_stats_page_spoil(unsigned worker)
{
	static const uint8_t fills[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0x1b, '"' };
	uint8_t *page = (uint8_t *)fuzz_worker[worker]->page;
	size_t size = sizeof(struct obs_stats_page), at = fuzz_take_word() % size,
	       n = fuzz_take(256);

	n = ob_min(n, size - at);
	if (fuzz_take(4) == 3)
		memset(page, fills[fuzz_take(ob_count(fills))], size);
	else if (fuzz_take(2))
		memset(page + at, fills[fuzz_take(ob_count(fills))], n);
	else
		fuzz_take_bytes(page + at, n);
}
