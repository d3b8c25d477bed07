/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_probe: a session with a server that makes no CUDA call: hello, pings, goodbye. What `check`
 * and `info` look through. One owner; blocks, each step with a deadline.
 */
#ifndef OBX_PROBE_H
#define OBX_PROBE_H

#include <stdint.h>

#include "protocol/control.h"
#include "transport/stream.h"

struct obx_probe {
	struct obt_stream stream;
	/* type OBP_MSG_WELCOME or OBP_MSG_REFUSED (text) once open returned */
	struct obp_message welcome;
	uint64_t number; /* of the next record */
	uint64_t connect_ns, hello_ns;
	uint64_t timeout_ns;
	/* after OB_ERR_UNSUPPORTED and OB_ERR_PROTOCOL; NULL: nothing more is known */
	const char *why;
};

/*
 * timeout_ns for connecting and hello together. On error the probe is what obx_probe_explain takes,
 * with errno; then obx_probe_close.
 */
enum ob_err obx_probe_open(struct obx_probe *probe, const struct obt_url *url, uint64_t timeout_ns);
/* One ping through the session's executor; *ret_ns round trip. */
enum ob_err obx_probe_ping(struct obx_probe *probe, uint64_t timeout_ns, uint64_t *ret_ns);
void obx_probe_close(struct obx_probe *probe);

/*
 * One line of at most OBT_FAILURE_TEXT bytes: what is wrong and what to do, in the client library's
 * words. text: the address as it was given.
 */
void obx_probe_explain(const struct obx_probe *probe, const struct obt_url *url, const char *text,
	enum ob_err err, int saved_errno, char *ret_text, size_t size);

#endif
