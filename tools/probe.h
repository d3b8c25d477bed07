/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_probe: a session with a server that makes no CUDA call: hello, pings, goodbye. What `check` and `info` look through.
 * One owner; blocks, each step with a deadline.
 */
#ifndef OBX_PROBE_H
#define OBX_PROBE_H

#include <stdint.h>

#include "protocol/control.h"
#include "transport/stream.h"

struct obx_probe {
	struct obt_stream stream;
	struct obp_message welcome;     /* type OBP_MSG_WELCOME or OBP_MSG_REFUSED (text) once open returned */
	uint64_t number;                /* of the next record */
	uint64_t connect_ns, hello_ns;
	const char *shm_why;            /* after OB_ERR_UNSUPPORTED */
};

/* timeout_ns for connecting and hello together. On error: errno for OB_ERR_CONNECT; welcome.text for OB_ERR_REFUSED. */
enum ob_err obx_probe_open(struct obx_probe *probe, const struct obt_url *url, uint64_t timeout_ns);
/* One ping through the session's executor; *ret_ns round trip. */
enum ob_err obx_probe_ping(struct obx_probe *probe, uint64_t timeout_ns, uint64_t *ret_ns);
void obx_probe_close(struct obx_probe *probe);

/* One sentence: what is wrong and what to do. */
void obx_probe_explain(const struct obx_probe *probe, const char *url, enum ob_err err, int saved_errno, char *ret_text, size_t size);

#endif
