/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_probe: a session that makes no CUDA call: hello, pings, goodbye. `check` and `info` use it.
 * One owner; blocks, each step with a deadline.
 */
#ifndef OBX_PROBE_H
#define OBX_PROBE_H

#include <stdint.h>

#include "protocol/control.h"
#include "transport/stream.h"

struct obx_probe {
	struct obt_stream stream;
	/* after open: type OBP_MSG_WELCOME, or OBP_MSG_REFUSED with its text */
	struct obp_message welcome;
	uint64_t number; /* of the next record */
	uint64_t connect_ns, hello_ns;
	uint64_t timeout_ns;
	struct ob_cause cause; /* why obx_probe_open failed */
};

/*
 * timeout_ns: for connecting and hello together. On error call obx_probe_explain, then
 * obx_probe_close.
 */
enum ob_err obx_probe_open(struct obx_probe *probe, const struct obt_url *url, uint64_t timeout_ns);
/* Sends one ping through the session's executor. *ret_ns: the round trip. */
enum ob_err obx_probe_ping(struct obx_probe *probe, uint64_t timeout_ns, uint64_t *ret_ns);
void obx_probe_close(struct obx_probe *probe);

/*
 * Writes one line of at most OBT_FAILURE_TEXT bytes: what is wrong and what to do, with the texts
 * of the client library. text: the address as the user gave it.
 */
void obx_probe_explain(const struct obx_probe *probe, const struct obt_url *url, const char *text,
	char *ret_text, size_t size);

#endif
