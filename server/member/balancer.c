/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/member/balancer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "transport/connect.h"
#include "transport/path.h"
#include "transport/tls.h"

/* Whether the address says a port: the last colon is behind the host. */
static bool names_port(const char *text)
{
	const char *host = strstr(text, "://"), *colon = strrchr(text, ':');
	const char *bracket = strrchr(text, ']');

	return host && colon && colon > host && (!bracket || colon > bracket);
}

enum ob_err obs_balancer_address(const char *text, struct obt_url *ret, struct ob_cause *ret_cause)
{
	enum ob_err err = obt_url_parse(text, ret, ret_cause);

	if (!err && ret->scheme != OBT_UNIX && !names_port(text))
		snprintf(ret->port, sizeof ret->port, "%d", OBP_POOL_PORT);
	return err;
}

/* What broke the stream, for the log. */
static enum ob_err broken(const struct obs_balancer *balancer, enum ob_err err, const char *when,
	struct ob_cause *ret_cause)
{
	const struct ob_cause *known = obt_stream_cause(&balancer->stream);

	if (known && known->text[0])
		return ob_cause_set(ret_cause, err, "%s", known->text);
	return ob_cause_set(ret_cause, err, "%s %s", when,
		err == OB_ERR_TIMEOUT          ? "took too long"
			: err == OB_ERR_CLOSED ? "ended: the balancer closed the connection"
					       : "failed");
}

static enum ob_err frame_send(
	struct obs_balancer *balancer, const struct obp_pool_message *message, uint64_t deadline)
{
	enum ob_err err = OB_ERR_NO_MEMORY;
	struct ob_buf frame;

	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX + 8);
	if (obp_pool_encode(message, &frame)) {
		struct iovec iov = { frame.data, frame.size };

		err = obt_stream_send_all(&balancer->stream, &iov, 1, deadline);
	}
	ob_buf_fini(&frame);
	return err;
}

/* The preface in clear, then TLS on tls:// addresses. */
static enum ob_err preface_send(struct obs_balancer *balancer, uint64_t deadline)
{
	struct obp_preface preface = {
		.magic = OBP_MAGIC, .version = OBP_VERSION, .intent = OBP_INTENT_POOL
	};
	struct iovec iov = { &preface, sizeof preface };

	return balancer->stream.tls
		? obt_tls_start(&balancer->stream, &preface, sizeof preface, deadline)
		: obt_stream_send_all(&balancer->stream, &iov, 1, deadline);
}

static enum ob_err message_await(
	struct obs_balancer *balancer, struct obp_pool_message *ret, uint64_t deadline)
{
	enum ob_err err;

	while ((err = obs_balancer_receive(balancer, ret)) == OB_ERR_NOT_FOUND)
		if (obt_stream_wait(&balancer->stream, POLLIN, deadline) <= 0)
			return OB_ERR_TIMEOUT;
	return err;
}

/* The balancer's answer to REGISTER. */
static enum ob_err answer_take(const struct obp_pool_message *answer,
	struct obp_pool_registered *ret, struct ob_cause *ret_cause)
{
	if (answer->type == OBP_POOL_REFUSED)
		return ob_cause_set(ret_cause, OB_ERR_REFUSED,
			"the balancer refuses this server: %.700s", answer->u.refused.text);
	if (answer->type != OBP_POOL_REGISTERED)
		return ob_cause_set(ret_cause, OB_ERR_PROTOCOL,
			"the balancer answered with message type %u: balancer and server versions "
			"may differ",
			answer->type);
	*ret = answer->u.registered;
	return OB_ERR_NONE;
}

static enum ob_err introduce(struct obs_balancer *balancer, const struct obp_pool_register *join,
	struct obp_pool_registered *ret, struct ob_cause *ret_cause)
{
	uint64_t deadline = ob_clock_ns() + OBS_BALANCER_CONNECT_MS * OB_MS;
	static struct obp_pool_message message;
	enum ob_err err;

	if (join->token[0] && !balancer->stream.tls && !obt_path_local(&balancer->stream))
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"it is another machine and not tls://: the token of --pool-token-file is "
			"not "
			"sent there in clear");
	err = preface_send(balancer, deadline);
	if (err)
		return broken(balancer, err, "the handshake", ret_cause);
	message = (struct obp_pool_message){ .type = OBP_POOL_REGISTER, .u.join = *join };
	err = frame_send(balancer, &message, deadline);
	explicit_bzero(&message, sizeof message);
	/* a balancer that refuses may have closed already; its reason can still be read */
	if (!err || err == OB_ERR_CLOSED)
		err = message_await(balancer, &message, deadline);
	if (err)
		return broken(balancer, err, "the registration", ret_cause);
	err = answer_take(&message, ret, ret_cause);
	obp_pool_fini(&message);
	return err;
}

enum ob_err obs_balancer_open(struct obs_balancer *balancer, const struct obt_url *url,
	const struct obp_pool_register *join, struct obp_pool_registered *ret,
	struct ob_cause *ret_cause)
{
	unsigned dead_ms = OBS_BALANCER_DEAD_MS;
	enum ob_err err = obt_stream_connect(
		url, ob_clock_ns() + OBS_BALANCER_CONNECT_MS * OB_MS, &balancer->stream, ret_cause);

	if (err) {
		balancer->stream.fd = -1;
		if (!ret_cause->text[0] && ret_cause->system)
			ob_cause_set(ret_cause, err, "%s", strerror(ret_cause->system));
		return err;
	}
	balancer->in.got = 0;
	if (url->scheme != OBT_UNIX)
		setsockopt(balancer->stream.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms,
			sizeof dead_ms);
	err = introduce(balancer, join, ret, ret_cause);
	if (err)
		obs_balancer_close(balancer);
	return err;
}

void obs_balancer_close(struct obs_balancer *balancer)
{
	if (balancer->stream.fd >= 0)
		obt_stream_close(&balancer->stream);
	balancer->stream.fd = -1;
}

enum ob_err obs_balancer_send(struct obs_balancer *balancer, const struct obp_pool_message *message)
{
	return frame_send(balancer, message, ob_clock_ns() + OBS_BALANCER_SEND_MS * OB_MS);
}

static bool head_valid(const struct obp_frame *head)
{
	return head->magic == OBP_MAGIC && head->version == OBP_FRAME_VERSION &&
		head->type == OBP_FRAME_CONTROL && head->size <= OBP_CONTROL_MAX &&
		head->size % 8 == 0 && head->raw_size <= head->size;
}

enum ob_err obs_balancer_receive(struct obs_balancer *balancer, struct obp_pool_message *ret)
{
	struct obs_balancer_in *in = &balancer->in;
	const size_t head = sizeof in->head;

	for (;;) {
		bool body = in->got >= head;
		uint8_t *to = body ? in->map + (in->got - head) : (uint8_t *)&in->head + in->got;
		size_t want = (body ? head + in->head.size : head) - in->got;
		ssize_t n;

		if (body && want == 0) {
			in->got = 0;
			return obp_pool_decode(in->map, in->head.raw_size, ret);
		}
		n = balancer->stream.ops->recv(&balancer->stream, to, want, false);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return OB_ERR_NOT_FOUND;
		if (n <= 0)
			return OB_ERR_CLOSED;
		in->got += (size_t)n;
		if (in->got == head && !head_valid(&in->head))
			return OB_ERR_PROTOCOL;
	}
}
