/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/watch.h"

#include <pthread.h>

#include "base/check.h"
#include "base/opt.h"
#include "client-shim/session/later.h"
#include "protocol/obc_calls.h"

_Static_assert(sizeof(struct obp_event_watch_req) == sizeof(struct obp_stream_watch_req),
	"both records hold a handle");

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;

static bool server_knows(uint16_t opcode)
{
	return obc_lines_known >=
		(opcode == OBP_OP_EVENT_WATCH ? OBP_LINE_event_watch : OBP_LINE_stream_watch);
}

/* Under the lock. */
static void drop(struct obc_watch *watch)
{
	obc_later_drop(watch->later);
	watch->later = NULL;
}

void obc_watch_begin(struct obc_watch *watch, uint16_t opcode, uint64_t handle, uint64_t number)
{
	struct obp_event_watch_req *req;
	struct obc_later *later;
	struct obc_slot slot;

	if (!ob_opt_on(OB_OPT_LOCAL) || !ob_opt_on(OB_OPT_WATCH) || !server_knows(opcode))
		return;
	pthread_mutex_lock(&watch_lock);
	if (watch->later && watch->number > number)
		goto out;
	drop(watch);
	later = obc_later_new();
	if (!later)
		goto out;
	req = obc_log_begin(&slot, opcode, sizeof *req);
	if (!req) {
		obc_later_drop(later);
		goto out;
	}
	req->event = handle;
	obc_later_ask(later, &slot);
	watch->later = later;
	watch->number = slot.number;
out:
	pthread_mutex_unlock(&watch_lock);
}

bool obc_watch_look(struct obc_watch *watch, uint64_t number, CUresult *ret, uint64_t *ret_before)
{
	bool asked;

	pthread_mutex_lock(&watch_lock);
	asked = watch->later && watch->number > number;
	if (asked) {
		*ret_before = watch->number;
		if (!obc_later_look(watch->later, ret))
			*ret = CUDA_ERROR_NOT_READY;
		else
			drop(watch);
	}
	pthread_mutex_unlock(&watch_lock);
	return asked;
}

void obc_watch_end(struct obc_watch *watch)
{
	pthread_mutex_lock(&watch_lock);
	drop(watch);
	pthread_mutex_unlock(&watch_lock);
}
