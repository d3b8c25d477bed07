/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Parts of the web server: the files of the page, and the stream of events. */
#ifndef OBX_RQA_STREAM_H
#define OBX_RQA_STREAM_H

#include <stddef.h>

#include "compute/command/rqa/device.h"
#include "compute/command/rqa/job.h"

struct obx_asset {
	const char *url, *type;
	const unsigned char *data;
	size_t size;
};

/* Generated from compute/command/rqa/page; the last entry has the URL NULL. */
extern const struct obx_asset obx_assets[];

/*
 * A response that continues until the page closes: events after number `after`, and gpu_stats every
 * five seconds. It blocks the thread of its connection, so the server runs one thread per
 * connection. NULL: out of memory.
 */
struct MHD_Response *obx_stream_new(
	struct obx_job *job, struct obx_device_shared *device, uint64_t after);

#endif
