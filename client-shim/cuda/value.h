/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Words of device memory that a stream writes or waits for. No state; any thread. */
#ifndef OBC_VALUE_H
#define OBC_VALUE_H

#include "front/backend.h"

/* For struct obf_backend. */
CUresult obc_stream_value(struct obf_stream *stream, const struct obf_value *value);

#endif
