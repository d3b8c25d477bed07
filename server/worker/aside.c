/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/aside.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "server/common/stats_page.h"
#include "server/worker/device_times.h"
#include "server/worker/record.h"
#include "server/worker/times.h"

struct aside {
	struct obs_exec x;
	struct obs_lane lane; /* a copy: the client's thread may end meanwhile */
	struct obp_record record;
	uint32_t size;
	_Alignas(8) uint8_t body[OBS_ASIDE_BODY];
};

static void *aside_main(void *argument)
{
	struct aside *aside = argument;
	struct obs_session *session = aside->x.session;

	obs_device_thread(&aside->x);
	if (ob_unlikely(obs_times_on))
		obs_times_begin(aside->x.call, aside->x.opcode);
	obs_exec_record(&aside->x, &aside->record, aside->body, aside->size);
	if (ob_unlikely(obs_times_on))
		obs_times_end();
	atomic_fetch_sub_explicit(&obs_stats_page->blocked, 1, memory_order_relaxed);
	atomic_fetch_sub(&session->asides, 1);
	free(aside);
	return NULL;
}

bool obs_aside_run(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size)
{
	struct aside *aside;

	if (size > OBS_ASIDE_BODY || atomic_load(&x->session->asides) == OBS_ASIDE_MAX)
		return false;
	atomic_fetch_add(&x->session->asides, 1);
	aside = malloc(sizeof *aside);
	if (aside) {
		*aside = (struct aside){ .x = { .session = x->session,
						 .drv = x->drv,
						 .lane_index = x->lane_index,
						 .call = x->call,
						 .opcode = x->opcode },
			.lane = { .context = x->lane->context },
			.record = *rec,
			.size = size };
		aside->x.lane = &aside->lane;
		memcpy(aside->body, body, size);
		atomic_fetch_add_explicit(&obs_stats_page->blocked, 1, memory_order_relaxed);
		if (ob_thread_start(aside_main, aside, OBS_THREAD_STACK, NULL))
			return true;
		atomic_fetch_sub_explicit(&obs_stats_page->blocked, 1, memory_order_relaxed);
		free(aside);
	}
	atomic_fetch_sub(&x->session->asides, 1);
	return false;
}
