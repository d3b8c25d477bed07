/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Queueing of kernel launches (front/launch_calls.h) and host functions on a stream. Any thread. */
#ifndef OBD_LAUNCH_H
#define OBD_LAUNCH_H

#include "front/stream.h"

/* The front end's backend table (front/backend.h). */
CUresult obd_launch_packed(struct obf_stream *stream, struct obf_func *func,
	const struct obf_launch *launch, void *packed);
CUresult obd_host_function(struct obf_stream *stream, const struct obf_host_function *function);

#endif
