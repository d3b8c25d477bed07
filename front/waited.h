/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_waits and obf_waited: announce that the program is about to wait for work of the device, or
 * asks whether it is complete, and that it has waited. There is one listener at most
 * (front/mirror.c), and none before a kernel uses pinned memory. Any thread.
 */
#ifndef OBF_WAITED_H
#define OBF_WAITED_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/cuda_types.h"

struct obf_stream;

/*
 * The wait was for the stream, for all of a context (`all`), or for some point (stream NULL). The
 * result is that of the call.
 */
typedef CUresult obf_waited_fn(const struct obf_stream *stream, bool all);

/* NULL: nobody listens. */
extern obf_waited_fn *_Atomic obf_waited_listener;
extern void (*_Atomic obf_waits_listener)(bool asks);

static inline bool obf_waited_heard(void)
{
	return ob_unlikely(
		atomic_load_explicit(&obf_waited_listener, memory_order_acquire) != NULL);
}

/* For the beginning of a call that waits, or only asks, once its arguments are checked. */
static inline void obf_waits(bool asks)
{
	void (*listener)(bool asks) =
		atomic_load_explicit(&obf_waits_listener, memory_order_acquire);

	if (ob_unlikely(listener != NULL))
		listener(asks);
}

/* For the end of a call that waits, if obf_waited_heard. `result` is that of the wait. */
CUresult obf_waited(CUresult result, const struct obf_stream *stream, bool all);

#endif
