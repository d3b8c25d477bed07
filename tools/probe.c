/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/probe.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/opt.h"
#include "loadbalancer/ticket_text.h"
#include "protocol/conn.h"
#include "protocol/obp_calls.h"
#include "protocol/welcome.h"
#include "transport/connect.h"
#include "transport/failure.h"
#include "transport/message.h"
#include "transport/path.h"
#include "transport/shm.h"
#include "transport/token.h"

static enum ob_err probe_open(
	struct obx_probe *probe, const struct obt_url *url, uint64_t timeout_ns)
{
	const struct obp_preface preface = {
		.magic = OBP_MAGIC, .version = OBP_VERSION, .intent = OBP_INTENT_NEW
	};
	static struct obp_message hello;
	uint64_t began = ob_clock_ns(), deadline = began + timeout_ns;
	enum ob_err err;

	err = obt_stream_connect(url, deadline, &probe->stream, &probe->cause);
	if (err)
		return err;
	probe->connect_ns = ob_clock_ns() - began;
	hello = (struct obp_message){ .type = OBP_MSG_HELLO,
		.hello = {
			.version = OB_VERSION, .program = "outboard", .pid = (uint64_t)getpid() } };
	if (url->shm && ob_opt_on(OB_OPT_SHM))
		err = obt_shm_offer(&probe->stream, &probe->cause);
	if (err)
		return err;
	hello.shm = obt_shm_offered(&probe->stream);
	/* in a program of a pool; as the client library, which shows no token then */
	err = OB_ERR_NOT_FOUND;
	if (probe->stream.tls || obt_path_local(&probe->stream))
		err = obl_ticket_find(getenv("OUTBOARD_TICKET"), url, hello.hello.ticket,
			&hello.hello.ticket_size, &probe->cause);
	if (err == OB_ERR_NOT_FOUND)
		err = obt_token_show(&probe->stream, hello.hello.token);
	if (err)
		return err;
	err = obt_message_send(&probe->stream, &hello, &preface, sizeof preface, deadline);
	if (!err || err == OB_ERR_CLOSED)
		err = obt_message_receive(&probe->stream, &probe->welcome, deadline);
	obt_shm_settle(&probe->stream, err ? 0 : probe->welcome.shm);
	probe->hello_ns = ob_clock_ns() - began - probe->connect_ns;
	if (!err && probe->welcome.type == OBP_MSG_REFUSED)
		return ob_cause_set(&probe->cause, OB_ERR_REFUSED, "%s", probe->welcome.text);
	if (!err)
		err = obp_welcome_check(&hello, &probe->welcome, &probe->cause);
	if (!err && probe->welcome.welcome.vmm && !probe->welcome.welcome.range_ok) {
		/*
		 * The probe needs no device addresses: answer like a client that could not reserve
		 * the range.
		 */
		struct obp_message answer = { .type = OBP_MSG_RANGE };

		err = obt_message_send(&probe->stream, &answer, NULL, 0, deadline);
	}
	return err;
}

enum ob_err obx_probe_open(struct obx_probe *probe, const struct obt_url *url, uint64_t timeout_ns)
{
	const struct ob_cause *known;
	enum ob_err err;

	memset(probe, 0, sizeof *probe);
	probe->stream.fd = -1;
	probe->number = 1;
	probe->timeout_ns = timeout_ns;
	err = probe_open(probe, url, timeout_ns);
	if (err && probe->cause.code != err) {
		known = obt_stream_cause(&probe->stream);
		probe->cause = known ? *known : (struct ob_cause){ .code = err };
		probe->cause.code = err;
	}
	return err;
}

static enum ob_err call(struct obx_probe *probe, uint16_t opcode, uint64_t deadline)
{
	struct {
		struct obp_frame frame;
		struct obp_record record;
	} out = { .record = { sizeof out.record, opcode, 0 } };
	struct iovec iov = { &out, sizeof out };
	struct obp_frame frame;
	char body[4096];
	enum ob_err err;

	obp_frame_fill(&out.frame, OBP_FRAME_CALLS, sizeof out.record, 1, probe->number++, 0);
	err = obt_stream_send_all(&probe->stream, &iov, 1, deadline);
	do {
		if (!err)
			err = obt_stream_recv_all(&probe->stream, &frame, sizeof frame, deadline);
		if (!err && (frame.magic != OBP_MAGIC || frame.size > sizeof body))
			err = OB_ERR_PROTOCOL;
		if (!err)
			err = obt_stream_recv_all(&probe->stream, body, frame.size, deadline);
		/* Other frames may come before the answer, up to a limit. */
		if (!err && frame.type != OBP_FRAME_REPLIES && ob_clock_ns() >= deadline)
			err = OB_ERR_TIMEOUT;
	} while (!err && frame.type != OBP_FRAME_REPLIES);
	return err;
}

enum ob_err obx_probe_ping(struct obx_probe *probe, uint64_t timeout_ns, uint64_t *ret_ns)
{
	uint64_t began = ob_clock_ns();
	enum ob_err err = call(probe, OBP_OP_PING, began + timeout_ns);

	*ret_ns = ob_clock_ns() - began;
	return err;
}

void obx_probe_close(struct obx_probe *probe)
{
	if (probe->stream.fd >= 0 && probe->welcome.type == OBP_MSG_WELCOME)
		call(probe, OBP_OP_BYE, ob_clock_ns() + OB_SECOND);
	obt_stream_close(&probe->stream);
	obp_message_fini(&probe->welcome);
}

void obx_probe_explain(const struct obx_probe *probe, const struct obt_url *url, const char *text,
	char *ret_text, size_t size)
{
	const struct obt_failure failure = { .cause = &probe->cause,
		.connected = probe->connect_ns != 0,
		.timeout_s = (unsigned)(probe->timeout_ns / OB_SECOND),
		.url = url,
		.text = text };

	obt_failure_print(&failure, ret_text, size);
}
