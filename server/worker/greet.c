/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/greet.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "protocol/obp_calls.h"
#include "server/common/handoff.h"
#include "server/common/refuse.h"
#include "server/common/sandbox.h"
#include "server/layers/throttle.h"
#include "server/layers/hold.h"
#include "server/layers/quota.h"
#include "server/worker/context.h"
#include "server/worker/end.h"
#include "server/worker/held.h"
#include "server/worker/ipc.h"
#include "server/worker/place.h"
#include "server/worker/reply.h"
#include "server/worker/resume.h"
#include "server/worker/start.h"
#include "server/worker/stripe.h"
#include "transport/path.h"
#include "transport/shm.h"

#define SEND_MS 5000 /* for the welcome */

/*
 * Refuses the client during the handshake: sends and logs the reason, which also goes to the audit
 * log.
 */
static void turn_away(struct obs_session *session, enum ob_err code, const char *why)
{
	obs_refuse_stream(&session->data, code, why);
	ob_info("session %016llx: refused: %s", (unsigned long long)session->id, why);
	snprintf(session->end_reason, sizeof session->end_reason, "%.190s", why);
}

/*
 * Receives the next control message, of this type, before the deadline. False: the client was told
 * what is wrong, or has left.
 */
static bool message_await(struct obs_session *session, enum obp_message_type type,
	uint64_t deadline, struct obp_message *ret)
{
	struct obp_item item;
	enum obp_event event;
	ssize_t n;
	size_t size;
	void *data;

	while ((event = obp_conn_next(&session->conn, &item)) == OBP_NEED) {
		obp_conn_space(&session->conn, &data, &size);
		if (size == 0 || obt_stream_wait(&session->data, POLLIN, deadline) <= 0) {
			turn_away(session, OB_ERR_TIMEOUT,
				"the client did not confirm the address range in time");
			return false;
		}
		n = session->data.ops->recv(&session->data, data, size, false);
		if (n > 0) {
			obp_conn_fed(&session->conn, (size_t)n);
		} else if (n == 0 || errno != EAGAIN) {
			const struct ob_cause *cause = obt_stream_cause(&session->data);

			if (n < 0 && cause)
				turn_away(session, cause->code, cause->text);
			return false;
		}
	}
	if (event == OBP_BROKEN) {
		turn_away(session, session->conn.cause.code, session->conn.cause.text);
		return false;
	}
	if (event != OBP_CONTROL || obp_message_decode(item.body, item.size, ret) != OB_ERR_NONE ||
		ret->type != type) {
		turn_away(session, OB_ERR_PROTOCOL,
			"unexpected message: the client has to confirm the address range");
		return false;
	}
	return true;
}

static void no_vmm(struct obs_session *session)
{
	struct obp_welcome *welcome = &session->welcome->welcome;

	welcome->vmm = false;
	welcome->range_ok = true;
	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		welcome->devices[i].grant = 0;
		welcome->devices[i].range = (struct obp_range){ 0 };
	}
	welcome->range = (struct obp_range){ 0 };
}

/* The devices as a client sees them whose session can share nothing with others. */
static void no_ipc(struct obs_session *session)
{
	struct obp_welcome *welcome = &session->welcome->welcome;

	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		int32_t *attr = welcome->devices[i].attr;

		attr[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = 0;
		attr[CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED] = 0;
	}
}

/*
 * Whether to grant memory of the first device. Memory of other devices is mapped on demand: a grant
 * would create a context on each. A single device is used in any case.
 */
static bool grant_wanted(const struct obp_welcome *welcome, const struct obp_hello *hello)
{
	return !hello->no_grant || welcome->n_devices == 1;
}

/* The first slab, in the context that was made current while warm. */
static void slab_grant(struct obs_session *session)
{
	struct obp_device *first = &session->welcome->welcome.devices[0];
	uint64_t size = ob_min(OBS_SLAB_BYTES, first->free_mem / 8) & ~(OBS_MEMORY_ALIGN - 1);

	if (session->warm_context && size &&
		obs_slabs_new(&session->memory.slabs, session->warm_context, 0, size,
			OBS_MEMORY_ALIGN, &first->range) == CUDA_SUCCESS)
		first->grant = first->range.size;
}

/*
 * Settles the address range that both sides use, and the memory that is granted at its beginning.
 */
static void addresses_settle(struct obs_session *session, const struct obp_hello *hello)
{
	struct obp_welcome *welcome = &session->welcome->welcome;
	struct obs_memory *memory = &session->memory;
	struct obp_device *first = &welcome->devices[0];

	/*
	 * The software device lacks virtual memory management only when it checks accesses. It must
	 * then know each allocation, so none lies in a slab.
	 */
	if (hello->slabs && ob_opt_on(OB_OPT_GRANT) && (welcome->vmm || !session->lib.soft))
		welcome->slabs = OBP_SLAB_MAX;
	obs_memory_init(
		memory, session->drv, welcome->n_devices, welcome->vmm && hello->n_ranges > 0);
	if (memory->vmm && obs_ipc_offered(session))
		obs_ipc_start(session);
	else
		no_ipc(session);
	if (!memory->vmm ||
		!obs_memory_choose(memory, hello->ranges, hello->n_ranges, &welcome->range_ok)) {
		memory->vmm = memory->shares = false;
		no_vmm(session);
		no_ipc(session);
		if (welcome->slabs && grant_wanted(welcome, hello))
			slab_grant(session);
		return;
	}
	welcome->range = memory->range;
	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		welcome->devices[i].range =
			(struct obp_range){ memory->slices[i].base, memory->slices[i].size };
		obs_memory_set_total(memory, i, welcome->devices[i].total_mem);
	}
	if (ob_opt_on(OB_OPT_GRANT) && grant_wanted(welcome, hello))
		first->grant =
			obs_memory_grant(memory, 0, ob_min(OBS_GRANT_BYTES, first->free_mem / 8));
}

/* Under the replies' lock. */
static double path_rate(void *session)
{
	struct obs_session *s = session;

	return obt_meter_rate(&s->meter, &s->replies.stream, s->trust_reader);
}

/*
 * Replies are compressed as the client requests for its own data: one setting for both directions.
 */
static void codecs_settle(struct obs_session *session, const struct obp_hello *hello)
{
	session->conn.codecs = hello->codecs & obp_codecs_own();
	session->codec_request = hello->codec;
	session->trust_reader = hello->codec == OBP_CODEC_MEASURE;
	obp_packer_init(&session->packer, session->conn.codecs, hello->codec,
		obt_path_local(&session->data), path_rate, session);
	/* Only a beginning: a wrong rate delays this client's first copy and nothing else. */
	if (ob_opt_on(OB_OPT_LINKMEMORY))
		obp_packer_expect(
			&session->packer, obt_meter_recall(&session->meter, hello->link_rate));
}

static bool welcome_send(struct obs_session *session)
{
	struct obp_message *message = session->welcome;
	struct obp_welcome *welcome = &message->welcome;
	struct ob_buf frame;
	bool sent = false;

	message->type = OBP_MSG_WELCOME;
	snprintf(welcome->version, sizeof welcome->version, "%s", OB_VERSION);
	snprintf(welcome->driver, sizeof welcome->driver, "%s", session->lib.name);
	welcome->route = session->route;
	memcpy(welcome->secret, session->secret, sizeof welcome->secret);
	welcome->times = true;
	welcome->free_memory = true;
	welcome->opcodes = OBP_LINES;
	message->shm = obt_shm_taken(&session->data);
	welcome->cache = session->cache.dir >= 0 ? session->cache.limit : 0;
	welcome->driver_version = session->lib.version;
	welcome->codecs = session->conn.codecs;
	welcome->stripes = obs_stripes_offer(session);
	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX);
	if (obp_message_encode(message, &frame)) {
		struct iovec iov = { frame.data, frame.size };

		sent = obt_stream_send_all(&session->data, &iov, 1,
			       ob_clock_ns() + SEND_MS * OB_MS) == OB_ERR_NONE;
	}
	ob_buf_fini(&frame);
	return sent;
}

/*
 * After the welcome the client may join with a second connection, and a message there may end the
 * session. The loop then sends on this connection, so it must wait (for the lock) until the
 * handshake is settled.
 */
static bool welcome_settle(struct obs_session *session)
{
	bool sent;

	pthread_mutex_lock(&session->replies.lock);
	/*
	 * Release: when the loop sees this it also sees what the handshake has settled. Before the
	 * welcome is sent, since that contains the secret for joins.
	 */
	atomic_store_explicit(&session->welcomed, true, memory_order_release);
	sent = welcome_send(session);
	if (sent) {
		obt_shm_settle(&session->data, session->welcome->shm);
		session->replies.retransmit.large_max = (uint32_t)ob_min(
			obs_limits_now.outstanding / 2, (uint64_t)OBS_RETRANSMIT_LARGE_MAX);
	}
	pthread_mutex_unlock(&session->replies.lock);
	return sent;
}

/* Closes the sandbox, now that the client is known. False: the client was refused. */
static bool sandbox_close(struct obs_session *session)
{
	const struct obs_sandbox_plan *plan = &session->options->sandbox;
	struct ob_cause cause;
	size_t told;
	bool closed;

	obs_cache_enter(&session->cache, session->identity.who);
	closed = !obs_sandbox_session(
		plan, &session->cache, &obs_limits_now, obs_session_driver_name(session), &cause);
	obs_sandbox_describe(session->welcome->welcome.sandbox);
	told = strlen(session->welcome->welcome.sandbox);
	if (closed && strstr(session->welcome->welcome.sandbox, "missing"))
		ob_warn("session %016llx: the worker's sandbox is incomplete: %s",
			(unsigned long long)session->id, session->welcome->welcome.sandbox);
	if (!closed) {
		ob_error("%s", cause.text); /* for the operator; the client gets less detail */
		turn_away(session, OB_ERR_REFUSED,
			"the server cannot confine its worker (sandbox); tell its operator");
	}
	if (session->admission[0])
		snprintf(session->welcome->welcome.sandbox + told,
			sizeof session->welcome->welcome.sandbox - told, "; of admission: %s",
			session->admission);
	return closed;
}

/*
 * Buffers for calls and replies are bounded, and an allocation in the middle of a copy must not be
 * refused: reserve all of them now.
 */
static void transport_reserve(void)
{
	_Static_assert(OBS_OUTSTANDING_MAX +
				(OBS_STRIPE_SLOTS_MAX + OBS_STAGING_WRITES) *
					(uint64_t)OBP_CHUNK_MAX +
				OBP_PART_PIECES_MAX * (uint64_t)OBP_PART_PIECE + OBS_SCRATCH_BYTES +
				OBS_RETRANSMIT_BYTES <=
			OBS_HOST_MEMORY_MIN,
		"the smallest budget holds it");

	obs_hold_add(OBS_HOLD_TRANSPORT,
		obs_limits_now.outstanding +
			(2 * obs_limits_now.stripes + OBS_STAGING_WRITES) *
				(uint64_t)OBP_CHUNK_MAX +
			OBP_PART_PIECES_MAX * (uint64_t)OBP_PART_PIECE + OBS_SCRATCH_BYTES +
			OBS_RETRANSMIT_BYTES);
}

void obs_session_name(struct obs_session *session, const struct obs_handoff *first)
{
	session->id = first->id;
	session->route = first->route;
	memcpy(session->secret, first->secret, sizeof session->secret);
	session->identity = first->identity;
	session->place = first->place;
	memcpy(session->admission, first->text, sizeof session->admission);
	session->admission[sizeof session->admission - 1] = '\0';
	session->channel = OBS_HANDOFF_FD;
}

static struct obs_session *limited; /* the session that the limits apply to */

static void limited_end(const char *why)
{
	obs_session_fatal(limited, OB_ERR_LIMIT, "%s", why);
}

/* False: the client was turned away. */
static bool hello_read(
	struct obs_session *session, const void *hello, size_t size, struct obp_message *ret)
{
	if (obp_message_decode(hello, size, ret) != OB_ERR_NONE || ret->type != OBP_MSG_HELLO) {
		turn_away(session, OB_ERR_PROTOCOL, "the client's first message is not a hello");
		return false;
	}
	ob_info("session %016llx: %s (process %llu, client %s)", (unsigned long long)session->id,
		ret->hello.program, (unsigned long long)ret->hello.pid, ret->hello.version);
	return true;
}

bool obs_session_greet(struct obs_session *session, const void *hello, size_t size)
{
	uint64_t deadline = ob_clock_ns() + session->options->hello_timeout_s * OB_SECOND;
	struct obp_message *message = calloc(1, sizeof *message);
	struct ob_cause cause;
	bool greeted = false;

	pthread_mutex_lock(&session->replies.lock);
	session->replies.stream = session->data;
	pthread_mutex_unlock(&session->replies.lock);
	if (!message)
		goto out;
	if (!hello_read(session, hello, size, message))
		goto out;
	if (obt_shm_take(&session->data, message->shm, &cause)) {
		turn_away(session, OB_ERR_REFUSED, cause.text);
		goto out;
	}
	session->since_ns = ob_clock_ns();
	obs_limits_allow(&obs_limits_now, &session->identity.allow);
	if (!obs_place_settle(session)) {
		turn_away(session, OB_ERR_NO_MEMORY, "the worker cannot take the ticket's devices");
		goto out;
	}
	/* The ticket's priority is the session's unless the program asks for less. */
	if (session->place.reserved && !message->hello.want_priority)
		message->hello.want_priority = obs_limits_now.priority + 1;
	obs_link_watch(session, &message->hello);
	if (!sandbox_close(session))
		goto out;
	obs_quota_hello(&session->lib.table, &session->welcome->welcome, &message->hello,
		session->options->limits.priority);
	if (session->warm_context) /* it may get a part of its device */
		obs_context_ready(session, session->warm_context);
	limited = session;
	obs_throttle_open(limited_end);
	atomic_store(&session->idle_s, obs_limits_now.idle_s);
	obs_staging_limit(&session->staging, obs_limits_now.outstanding);
	transport_reserve();
	addresses_settle(session, &message->hello);
	codecs_settle(session, &message->hello);
	obs_replies_settle(&session->replies, message->hello.ring);
	obs_held_settle(session, message->hello.ring);
	if (!obs_link_agree(session, &message->hello) || !welcome_settle(session))
		goto out;
	if (session->memory.vmm && !session->welcome->welcome.range_ok) {
		obp_message_fini(message);
		if (!message_await(session, OBP_MSG_RANGE, deadline, message))
			goto out;
		if (!message->value) {
			obs_memory_abandon(&session->memory);
			no_vmm(session);
		}
	}
	/* Scope 'look' only gets the welcome. */
	session->conn.accept =
		session->identity.scope == OBT_SCOPE_USE ? OBP_ACCEPT_CALLS : OBP_ACCEPT_CONTROL;
	greeted = true;
out:
	if (message)
		obp_message_fini(message);
	free(message);
	if (!greeted)
		obs_session_linger(session->data.fd);
	return greeted;
}
