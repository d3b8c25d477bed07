/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/follower.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

/* for connecting to one balancer: the end of the program waits for it at most that long */
#define FOLLOW_NS (5 * OB_SECOND)

static bool is_stopped(void *context)
{
	struct obx_follower *f = context;

	return atomic_load(&f->stop);
}

/*
 * The end of a reservation is nothing to warn of: a script may go on after its program that uses GPUs.
 * Of a fixed one the refusal is the confirmation.
 */
static void refusal_print(const struct obx_follower *f, const struct ob_cause *cause)
{
	bool ended = f->err == OB_ERR_REFUSED && cause->code != OB_ERR_DENIED;

	if (ended && !f->fixed)
		ob_info("the program is not moved any more: %s", cause->text);
	else if (!ended)
		ob_warn("the program is not moved any more: %s", cause->text);
}

static void *follower_main(void *argument)
{
	struct obx_follower *f = argument;
	struct ob_cause cause = { .text = "" };

	f->err = obl_pool_follow(&f->pool, f->id, f->fixed, &f->moved, &cause);
	f->until_ns = ob_clock_ns() + OBP_POOL_OFFER_S * OB_SECOND;
	if (f->err && f->err != OB_ERR_CANCELLED)
		refusal_print(f, &cause);
	eventfd_write(f->event, 1);
	return NULL;
}

void obx_follower_init(struct obx_follower *f)
{
	*f = (struct obx_follower){ .event = -1, .err = OB_ERR_CANCELLED };
}

void obx_follower_start(struct obx_follower *f, const char *balancers,
	const uint8_t id[OBP_RESERVATION_BYTES], bool fixed)
{
	obx_follower_init(f);
	f->pool = (struct obl_pool){ .balancers = balancers,
		.timeout_ns = ob_min(obl_pool_timeout_ns(), FOLLOW_NS),
		.cancelled = is_stopped,
		.context = f };
	f->fixed = fixed;
	f->event = eventfd(0, EFD_CLOEXEC);
	memcpy(f->id, id, sizeof f->id);
	f->runs = f->event >= 0 && ob_thread_start(follower_main, f, 0, &f->thread);
	if (!f->runs)
		ob_warn("the program cannot be moved: the system gives no thread");
}

bool obx_follower_offers(const struct obx_follower *f)
{
	struct pollfd fd = { .fd = f->event, .events = POLLIN };

	/* it is readable only when the thread has written all the rest */
	return f->runs && poll(&fd, 1, 0) == 1 && f->err == OB_ERR_NONE && !f->fixed;
}

void obx_follower_stop(struct obx_follower *f)
{
	atomic_store(&f->stop, true);
	if (f->runs)
		pthread_join(f->thread, NULL);
	if (f->event >= 0)
		close(f->event);
	f->event = -1;
	f->runs = false;
}
