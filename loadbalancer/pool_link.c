/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/pool_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/terminal.h"
#include "protocol/control.h"
#include "protocol/format.h"
#include "transport/connect.h"
#include "transport/failure.h"
#include "transport/tls.h"

/* ---- the list ---- */

static bool has_port(const char *text)
{
	const char *host = strstr(text, "://"), *bracket = strrchr(text, ']');

	return !host || strchr(bracket ? bracket : host + 3, ':') != NULL;
}

static enum ob_err balancer_parse(struct obl_balancer *balancer, struct ob_cause *ret_cause)
{
	struct ob_cause cause;
	enum ob_err err = obt_url_parse(balancer->text, &balancer->url, &cause);

	if (err)
		return ob_cause_set(ret_cause, err, "'%.200s': %s", balancer->text, cause.text);
	if (balancer->url.shm)
		return ob_cause_set(ret_cause, OB_ERR_URL,
			"'%.200s': a balancer has no shared memory; write unix:/path",
			balancer->text);
	if (balancer->url.scheme != OBT_UNIX && !has_port(balancer->text))
		snprintf(balancer->url.port, sizeof balancer->url.port, "%u", OBP_POOL_PORT);
	return OB_ERR_NONE;
}

enum ob_err obl_balancers_parse(
	const char *text, struct obl_balancers *ret, struct ob_cause *ret_cause)
{
	ret->n = 0;
	while (*text) {
		size_t length = strcspn(text, ",");
		struct obl_balancer *next = &ret->list[ret->n];
		enum ob_err err;

		if (ret->n == OBL_BALANCERS_MAX || length > OBT_URL_MAX)
			return ob_cause_set(ret_cause, OB_ERR_URL,
				"the list is too long: %u addresses of %u bytes at most",
				OBL_BALANCERS_MAX, OBT_URL_MAX);
		memcpy(next->text, text, length);
		next->text[length] = '\0';
		err = balancer_parse(next, ret_cause);
		if (err)
			return err;
		ret->n++;
		text += length + (text[length] == ',');
	}
	if (!ret->n)
		return ob_cause_set(ret_cause, OB_ERR_URL,
			"it names no balancer; write tls://host:%u, or several with commas "
			"between them",
			OBP_POOL_PORT);
	return OB_ERR_NONE;
}

void obl_balancers_shuffle(struct obl_balancers *balancers)
{
	uint8_t random[OBL_BALANCERS_MAX] = { 0 };

	/* without random bytes the order stays */
	if (getrandom(random, sizeof random, GRND_NONBLOCK) != sizeof random)
		return;
	for (uint32_t i = balancers->n; i > 1; i--) {
		uint32_t other = random[i - 1] % i;
		struct obl_balancer last = balancers->list[i - 1];

		balancers->list[i - 1] = balancers->list[other];
		balancers->list[other] = last;
	}
}

/* ---- the connection ---- */

/* Records a failure with the balancer's address before it. */
static enum ob_err failed(const struct obl_pool_link *link, enum ob_err err,
	const struct ob_cause *cause, struct ob_cause *ret_cause)
{
	const struct ob_cause *known = obt_stream_cause(&link->stream);
	struct ob_cause why = { .code = err };

	if (cause && cause->code == err)
		why = *cause;
	else if (known && known->code == err)
		why = *known;
	ob_cause_set(ret_cause, err, "%.200s: %s", link->balancer->text,
		err == OB_ERR_CONNECT || !why.text[0] ? obt_failure_brief(&why) : why.text);
	if (ret_cause)
		ret_cause->text[ob_text_clean(ret_cause->text, strlen(ret_cause->text))] = '\0';
	return err;
}

static enum ob_err preface_send(struct obt_stream *stream, uint64_t deadline)
{
	struct obp_preface preface = {
		.magic = OBP_MAGIC, .version = OBP_VERSION, .intent = OBP_INTENT_POOL
	};
	struct iovec iov = { &preface, sizeof preface };

	return stream->tls ? obt_tls_start(stream, &preface, sizeof preface, deadline)
			   : obt_stream_send_all(stream, &iov, 1, deadline);
}

enum ob_err obl_pool_link_open(struct obl_pool_link *link, const struct obl_balancer *balancer,
	uint64_t deadline, struct ob_cause *ret_cause)
{
	struct ob_cause cause = { .code = OB_ERR_NONE };
	enum ob_err err;

	memset(link, 0, sizeof *link);
	link->balancer = balancer;
	link->stream.fd = -1;
	err = obt_stream_connect(&balancer->url, deadline, &link->stream, &cause);
	if (err)
		return failed(link, err, &cause, ret_cause);
	if (obt_token_show(&link->stream, link->token))
		err = ob_cause_set(&cause, OB_ERR_DENIED,
			"it is another machine and not tls://, so OUTBOARD_TOKEN is not sent there "
			"in clear");
	if (!err)
		err = preface_send(&link->stream, deadline);
	/* the refusal of a server that answers in clear can still be received */
	if (!err || (err == OB_ERR_CLOSED && link->stream.tls))
		return OB_ERR_NONE;
	failed(link, err, &cause, ret_cause);
	obl_pool_link_close(link);
	return err;
}

void obl_pool_link_close(struct obl_pool_link *link)
{
	if (link->map)
		obp_pool_fini(&link->message);
	free(ob_steal(link->map));
	if (link->stream.fd >= 0)
		obt_stream_close(&link->stream);
	link->stream.fd = -1;
	explicit_bzero(link->token, sizeof link->token);
}

enum ob_err obl_pool_link_send(struct obl_pool_link *link, const struct obp_pool_message *message,
	uint64_t deadline, struct ob_cause *ret_cause)
{
	enum ob_err err = OB_ERR_NO_MEMORY;
	struct ob_buf frame;

	/* the handshake was answered in clear: only a refusal can follow */
	if (link->stream.tls && !obt_tls_started(&link->stream))
		return OB_ERR_NONE;
	ob_buf_init(&frame, 2 * OBP_CONTROL_MAX);
	if (obp_pool_encode(message, &frame)) {
		struct iovec iov = { frame.data, frame.size };

		err = obt_stream_send_all(&link->stream, &iov, 1, deadline);
	}
	/* it may hold a token */
	if (frame.data)
		explicit_bzero(frame.data, frame.size);
	ob_buf_fini(&frame);
	/* what the other side said before it closed can still be received */
	return err && err != OB_ERR_CLOSED ? failed(link, err, NULL, ret_cause) : OB_ERR_NONE;
}

/* How long a message is waited for. */
struct patience {
	uint64_t deadline;                /* NEVER: until its first byte is there */
	uint64_t timeout_ns;              /* from then on */
	bool (*cancelled)(void *context); /* NULL: never */
	void *context;
};

#define NEVER UINT64_MAX

/* Nothing can be received now. OB_ERR_NONE: try again. */
static enum ob_err wait_some(struct obt_stream *stream, const struct patience *patience)
{
	uint64_t now = ob_clock_ns(), until = patience->deadline;

	if (patience->cancelled) {
		if (patience->cancelled(patience->context))
			return OB_ERR_CANCELLED;
		until = ob_min(until, now + OBL_POOL_LOOK_NS);
	}
	if (now >= patience->deadline)
		return OB_ERR_TIMEOUT;
	return obt_stream_wait(stream, POLLIN, until) < 0 ? OB_ERR_IO : OB_ERR_NONE;
}

/*
 * Receives everything. A socket that is readable may have no byte of a message, but TLS's own
 * messages, as a ticket for a later session: so the deadline begins with the first byte itself.
 */
static enum ob_err bytes_receive(
	struct obt_stream *stream, void *data, size_t size, struct patience *patience)
{
	char *p = data;
	enum ob_err err;

	while (size) {
		ssize_t n = stream->ops->recv(stream, p, size, false);

		if (n == 0)
			return OB_ERR_CLOSED;
		if (n < 0 && errno != EAGAIN)
			return errno == ECONNRESET ? OB_ERR_CLOSED : OB_ERR_IO;
		if (n < 0) {
			err = wait_some(stream, patience);
			if (err)
				return err;
			continue;
		}
		if (patience->deadline == NEVER)
			patience->deadline = ob_clock_ns() + patience->timeout_ns;
		p += n;
		size -= (size_t)n;
	}
	return OB_ERR_NONE;
}

/* Receives one frame of control; *ret_map is the caller's. */
static enum ob_err frame_receive(
	struct obt_stream *stream, struct patience *patience, uint8_t **ret_map, size_t *ret_size)
{
	OB_CLEANUP(ob_freep) uint8_t *map = NULL;
	struct obp_frame frame;
	enum ob_err err = bytes_receive(stream, &frame, sizeof frame, patience);

	if (err)
		return err;
	if (frame.magic != OBP_MAGIC)
		return OB_ERR_MAGIC;
	if (frame.version != OBP_FRAME_VERSION)
		return OB_ERR_VERSION;
	if (frame.type != OBP_FRAME_CONTROL || frame.size > OBP_CONTROL_MAX || frame.size % 8 ||
		frame.raw_size > frame.size)
		return OB_ERR_PROTOCOL;
	map = malloc(frame.size + 1);
	if (!map)
		return OB_ERR_NO_MEMORY;
	err = bytes_receive(stream, map, frame.size, patience);
	if (err)
		return err;
	*ret_map = ob_steal(map);
	*ret_size = frame.raw_size;
	return OB_ERR_NONE;
}

/* A server that is no balancer refuses with a control message of its own. */
static enum ob_err other_answer(
	const uint8_t *map, size_t size, enum ob_err err, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) struct obp_message *message = calloc(1, sizeof *message);

	if (!message || obp_message_decode(map, size, message))
		return err;
	if (message->type == OBP_MSG_REFUSED && strstr(message->text, "unknown intent"))
		err = ob_cause_set(ret_cause, OB_ERR_REFUSED,
			"it is a server, not a balancer; use --server for a server");
	else if (message->type == OBP_MSG_REFUSED)
		err = ob_cause_set(ret_cause, OB_ERR_REFUSED, "it refuses: %s", message->text);
	obp_message_fini(message);
	return err;
}

static enum ob_err receive(
	struct obl_pool_link *link, struct patience *patience, struct ob_cause *ret_cause)
{
	struct ob_cause cause = { .code = OB_ERR_NONE };
	size_t size = 0;
	enum ob_err err;

	if (link->map)
		obp_pool_fini(&link->message);
	free(ob_steal(link->map));
	err = frame_receive(&link->stream, patience, &link->map, &size);
	if (err == OB_ERR_CANCELLED)
		return err;
	if (err)
		return failed(link, err, NULL, ret_cause);
	err = obp_pool_decode(link->map, size, &link->message);
	/* in clear on a tls:// address: only a refusal of the other kind may come */
	if (!err && link->stream.tls && !obt_tls_started(&link->stream)) {
		obp_pool_fini(&link->message);
		err = ob_cause_set(&cause, OB_ERR_TLS, "it answered without TLS");
	}
	if (!err)
		return OB_ERR_NONE;
	if (err == OB_ERR_PROTOCOL)
		err = other_answer(link->map, size, err, &cause);
	free(ob_steal(link->map));
	return failed(link, err, &cause, ret_cause);
}

enum ob_err obl_pool_link_receive(
	struct obl_pool_link *link, uint64_t deadline, struct ob_cause *ret_cause)
{
	struct patience patience = { .deadline = deadline };

	return receive(link, &patience, ret_cause);
}

enum ob_err obl_pool_link_await(struct obl_pool_link *link, uint64_t timeout_ns,
	bool (*cancelled)(void *context), void *context, struct ob_cause *ret_cause)
{
	struct patience patience = { NEVER, timeout_ns, cancelled, context };

	return receive(link, &patience, ret_cause);
}
