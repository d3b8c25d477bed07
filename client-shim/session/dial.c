/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/opt.h"
#include "client-shim/session/log.h"
#include "client-shim/session/resume.h"
#include "client-shim/session/server.h"
#include "protocol/control.h"
#include "transport/connect.h"
#include "transport/message.h"
#include "transport/shm.h"
#include "transport/tls.h"

/* if nothing listens for this long, the server and its workers have ended */
#define REFUSED_NS (3 * OB_SECOND)
#define ATTEMPT_NS (5 * OB_SECOND)
#define SLICE_NS   (20 * OB_MS) /* interval at which a wait checks the session's state */

static OBC_PER_SERVER struct obc_resume_terms terms_first;
#define terms OBC_HERE(terms_first)
static OBC_PER_SERVER _Atomic bool stopping_first;
#define stopping OBC_HERE(stopping_first)
static OBC_PER_SERVER _Atomic uint64_t attempts_first;
#define attempts OBC_HERE(attempts_first)

void obc_resume_init(const struct obc_resume_terms *given)
{
	terms = *given;
	atomic_store(&stopping, false);
}

uint64_t obc_resume_grace(void)
{
	return terms.grace_ns;
}

void obc_resume_stop(void)
{
	atomic_store(&stopping, true);
}

void obc_dial_begin(struct obc_dial *dial, enum obp_join_purpose purpose, uint64_t received)
{
	*dial = (struct obc_dial){
		.purpose = purpose, .received = received, .since = ob_clock_ns()
	};
	obp_backoff_init(&dial->backoff, dial->since ^ (uint64_t)getpid() << 32 ^ purpose);
}

enum ob_err obc_dial_join(struct obt_stream *stream, enum obp_join_purpose purpose,
	uint64_t received, uint64_t deadline)
{
	const struct obp_preface preface = { .magic = OBP_MAGIC,
		.version = OBP_VERSION,
		.intent = OBP_INTENT_JOIN,
		.route = terms.route };
	OB_CLEANUP(ob_freep) struct obp_message *message = calloc(1, sizeof *message);

	if (!message)
		return OB_ERR_NO_MEMORY;
	message->type = OBP_MSG_JOIN;
	message->code = (uint32_t)purpose;
	message->received = received;
	message->shm = obt_shm_offered(stream);
	message->attempt = atomic_fetch_add(&attempts, 1) + 1;
	memcpy(message->secret, terms.secret, sizeof message->secret);
	if (obt_tls_use_secret(stream, terms.secret, sizeof terms.secret))
		return OB_ERR_NO_MEMORY;
	return obt_message_send(stream, message, &preface, sizeof preface, deadline);
}

/*
 * Reads the server's answer. OB_ERR_NONE: joined. OB_ERR_NOT_FOUND and OB_ERR_REFUSED are final.
 * After any other error another attempt may succeed.
 */
static enum ob_err answer_await(
	struct obt_stream *stream, uint64_t deadline, uint64_t *ret_received)
{
	OB_CLEANUP(ob_freep) struct obp_message *message = calloc(1, sizeof *message);
	enum ob_err err =
		message ? obt_message_receive(stream, message, deadline) : OB_ERR_NO_MEMORY;

	if (err)
		return err;
	*ret_received = message->received;
	obt_shm_settle(stream, message->type == OBP_MSG_JOINED ? message->shm : 0);
	if (message->type == OBP_MSG_REFUSED || message->type == OBP_MSG_FATAL) {
		err = message->code == OB_ERR_NOT_FOUND || message->code == OB_ERR_LIMIT
			? (enum ob_err)message->code
			: OB_ERR_REFUSED;
		if (err == OB_ERR_REFUSED && !obc_log_ending())
			ob_error("the server refuses to resume the session: %s", message->text);
	} else if (message->type != OBP_MSG_JOINED) {
		err = OB_ERR_PROTOCOL;
	}
	obp_message_fini(message);
	return err;
}

static enum ob_err attempt(
	struct obc_dial *dial, uint64_t deadline, struct obt_stream *ret, uint64_t *ret_received)
{
	struct obt_stream stream = { .fd = -1 };
	struct ob_cause cause;
	enum ob_err err = obt_stream_connect(&terms.url, deadline, &stream, &cause);

	if (err == OB_ERR_CONNECT && (cause.system == ECONNREFUSED || cause.system == ENOENT)) {
		if (!dial->refused_since)
			dial->refused_since = ob_clock_ns();
		/*
		 * For a server on this machine this is certain. For a remote one, a proxy may be
		 * restarting.
		 */
		if (terms.url.scheme == OBT_UNIX ||
			ob_clock_ns() - dial->refused_since > REFUSED_NS)
			return OB_ERR_NOT_FOUND;
	} else {
		dial->refused_since = 0;
	}
	if (err)
		return err;
	stream.fd = ob_fd_raise(stream.fd);
	/*
	 * Without shared memory the socket carries everything, as in a session that started without
	 * it.
	 */
	if (dial->purpose == OBP_JOIN_DATA && terms.url.shm && ob_opt_on(OB_OPT_SHM) &&
		obt_shm_offer(&stream, &cause))
		ob_info("no shared memory for the new connection: %s", cause.text);
	err = obc_dial_join(&stream, dial->purpose, dial->received, deadline);
	/* the server may have sent a refusal and closed the connection already */
	if (!err || err == OB_ERR_CLOSED)
		err = answer_await(&stream, deadline, ret_received);
	if (err)
		obt_stream_close(&stream);
	else
		*ret = stream;
	return err;
}

enum ob_err obc_dial_once(
	struct obt_stream *ret, enum obp_join_purpose purpose, uint64_t received, uint64_t deadline)
{
	struct obc_dial dial = { .purpose = purpose, .received = received };
	uint64_t unused;

	return attempt(&dial, deadline, ret, &unused);
}

/* False: the wait ended early, because the session ended or the process exits. */
static bool pause_for(uint64_t ns)
{
	uint64_t until = ob_clock_ns() + ns, now;

	while ((now = ob_clock_ns()) < until) {
		struct timespec ts = { .tv_nsec = (long)ob_min(until - now, (uint64_t)SLICE_NS) };

		if (atomic_load(&stopping) && now - (until - ns) > SLICE_NS)
			break;
		nanosleep(&ts, NULL);
		if (obc_log_error() != CUDA_SUCCESS)
			return false;
	}
	return true;
}

enum ob_err obc_dial_run(struct obc_dial *dial, struct obt_stream *ret, uint64_t *ret_received)
{
	uint64_t end = dial->since + terms.grace_ns, limit = ob_min(terms.timeout_ns, ATTEMPT_NS);
	enum ob_err err = OB_ERR_CLOSED;

	while (pause_for(obp_backoff_next(&dial->backoff))) {
		uint64_t now = ob_clock_ns();

		if (now >= end) {
			ob_error("the connection to %s broke and could not be restored within %u s "
				 "(OUTBOARD_GRACE): %s",
				*obc_server_name() ? obc_server_name() : "the server",
				(unsigned)(terms.grace_ns / OB_SECOND), ob_err_text(err));
			return err == OB_ERR_NONE || err == OB_ERR_CONNECT ||
					err == OB_ERR_RESOLVE || err == OB_ERR_LIMIT
				? OB_ERR_TIMEOUT
				: err;
		}
		err = attempt(dial, ob_min(now + limit, end), ret, ret_received);
		if (err == OB_ERR_NONE)
			return OB_ERR_NONE;
		if (err == OB_ERR_NOT_FOUND)
			return OB_ERR_CLOSED;
		if (err == OB_ERR_REFUSED || err == OB_ERR_VERSION || err == OB_ERR_MAGIC)
			return err;
		ob_debug("reconnecting failed, trying again: %s", ob_err_text(err));
	}
	return OB_ERR_CLOSED;
}
