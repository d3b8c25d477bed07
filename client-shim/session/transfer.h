/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_transfer: the one place that decides how the bytes of a copy travel. The carriers carry what
 * they are given; they do not decide and do not call one another:
 *
 *     cached     the server is asked which chunks it still has; the others are sent (cache.h)
 *     timed      in the log, without names; the time is measured for the cache
 *     striped    over further connections (stripe.h)
 *     by ref     in the log, read from the caller's memory by the thread that sends (log.h)
 *     inline     in the log: an upload is copied into the ring, a download comes with the replies
 *
 * A copy that the stripes did not carry completely, because one broke, is repeated here over the
 * log. No state; any thread.
 */
#ifndef OBC_TRANSFER_H
#define OBC_TRANSFER_H

#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "client-shim/session/cache_choice.h"
#include "client-shim/session/log.h"
#include "client-shim/session/stripe.h"

enum obc_carrier {
	OBC_CARRY_INLINE,
	OBC_CARRY_BYREF,
	OBC_CARRY_STRIPED,
	OBC_CARRY_CACHED,
	OBC_CARRY_TIMED
};

/* What the decision depends on. */
struct obc_transfer_view {
	enum obc_direction direction;
	uint64_t size;                      /* bytes of the copy that are left */
	uint64_t byref_min;                 /* bytes; smallest upload that is sent by reference */
	const struct obc_cache_view *cache; /* NULL: the copy cannot use the upload cache */
	/* NULL: the copy cannot use stripes: it is too small, there are none, or they are in use */
	const struct obc_stripe_view *stripes;
};

/*
 * Chooses the carrier of the next bytes of a copy: the upload cache where asking takes less time
 * than sending (obc_cache_pays); else the stripes where they were measured to be faster or
 * OUTBOARD_STRIPES requires them; else the log, by reference from byref_min on.
 */
enum obc_carrier obc_transfer_choose(const struct obc_transfer_view *view);

/*
 * Copies to and from the device. After a write the caller may change its memory; after a read all
 * bytes have arrived. settle, user: the call waits for the copy anyway, with this function, which
 * may be called here, after the last byte was sent; NULL: it does not wait.
 */
CUresult obc_transfer_write(uint64_t dst, const void *src, uint64_t size, uint64_t stream,
	obc_settle *settle, void *user);
CUresult obc_transfer_read(void *dst, uint64_t src, uint64_t size, uint64_t stream);
/*
 * Sends data in the log, inline or by reference: chunk k is a record of `opcode` whose body is
 * `head` followed by the bytes. The first 8 bytes of `head` are the destination address, the next 8
 * the size of the chunk; both are set for each chunk. For generated calls.
 */
CUresult obc_transfer_send(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, uint64_t size);

#endif
