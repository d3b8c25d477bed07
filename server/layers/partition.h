/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A session's part of a device: a green context of the device's primary context, with as many
 * multiprocessors as the session's share, rounded up as the driver divides its device. The primary
 * context stays the current one in all threads, because a green context may be current in one
 * thread only; what makes the work run in the part is the stream. So the session's default stream
 * and its blocking streams are one stream of the green context, and each non-blocking stream is
 * another. The owner is the context (server/worker/session.h). Executor, or the main thread before
 * it runs.
 */
#ifndef OBS_PARTITION_H
#define OBS_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cause.h"
#include "base/cuda_types.h"

struct obs_driver;

/* All zero: there is none. */
struct obs_partition {
	CUgreenCtx green;
	CUstream stream;    /* in place of the default stream and of blocking streams */
	uint32_t units, of; /* multiprocessors: of the part, of the device */
};

/*
 * Whether the driver can give a session this share of the device, in millionths, without giving it
 * the whole device. *ret_units: the multiprocessors that it would get; may be NULL. Makes nothing
 * and needs no context. OB_ERR_DRIVER: *ret_cause says why not.
 */
enum ob_err obs_partition_check(const struct obs_driver *drv, CUdevice device, uint32_t share,
	uint32_t *ret_units, struct ob_cause *ret_cause);
/*
 * Makes it; primary: the device's primary context. Events of that must be accepted in streams of the
 * part, as launches are measured with them. OB_ERR_DRIVER: *ret_cause says why not.
 */
enum ob_err obs_partition_make(const struct obs_driver *drv, CUdevice device, CUcontext primary,
	uint32_t share, struct obs_partition *ret, struct ob_cause *ret_cause);
/* Before the primary context ends. The session's other streams in it are gone then, too. */
void obs_partition_end(const struct obs_driver *drv, struct obs_partition *partition);
/*
 * As cuStreamCreateWithPriority. The stream may be partition->stream, which must not be destroyed
 * and has its own priority.
 */
CUresult obs_partition_stream(const struct obs_driver *drv, const struct obs_partition *partition,
	unsigned flags, int priority, CUstream *ret);

#endif
