/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/op.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "softdevice/core/heap.h"

enum { PENDING = 0, PENDING_WAITED = 2 };

#define WAIT_MS 500 /* longest sleep of a waiter before it checks again */

void *obd_op_new(size_t size, enum obd_op_kind kind, struct obd_ctx *ctx)
{
	struct obd_op *op = obd_heap_alloc(size);

	if (!op)
		return NULL;
	atomic_init(&op->refs, 1);
	op->kind = kind;
	op->ctx = ctx;
	op->after = op->after_inline;
	op->max_after = ob_count(op->after_inline);
	return op;
}

struct obd_op *obd_op_ref(struct obd_op *op)
{
	if (op)
		atomic_fetch_add_explicit(&op->refs, 1, memory_order_relaxed);
	return op;
}

void obd_op_unref(struct obd_op *op)
{
	/* acq_rel: the last holder frees the op after all accesses by the other holders. */
	if (!op || atomic_fetch_sub_explicit(&op->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (op->fini)
		op->fini(op);
	if (op->after != op->after_inline)
		free(op->after);
	obd_heap_free(op);
}

void obd_op_finish(struct obd_op *op)
{
	/* Release: a waiter that sees DONE sees the op's effects. */
	if (atomic_exchange_explicit(&op->state, OBD_OP_DONE, memory_order_acq_rel) ==
		PENDING_WAITED)
		syscall(SYS_futex, &op->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void obd_op_sleep(struct obd_op *op)
{
	struct timespec ts = { .tv_nsec = WAIT_MS * 1000000L };
	uint32_t pending = PENDING;

	if (atomic_compare_exchange_strong(&op->state, &pending, PENDING_WAITED) ||
		pending == PENDING_WAITED)
		syscall(SYS_futex, &op->state, FUTEX_WAIT_PRIVATE, PENDING_WAITED, &ts, NULL, 0);
}
