/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#define THROW_AWAY_MAX (1u << 20) /* bytes read and dropped while the peer reads the last answer */
#define REFUSAL_ROOM   4096u

static void on_event(uv_poll_t *poll, int status, int events);

/* ---- the end ---- */

static void link_freed(uv_handle_t *handle)
{
	struct obl_link *link = handle->data;
	struct obl_links *links = link->links;

	if (link->stream.ops)
		obt_stream_close(&link->stream);
	else
		close(link->fd);
	free(link);
	if (links->freed)
		links->freed(links->user);
}

/* The receiver of messages is told once. */
static void announce_end(struct obl_link *link)
{
	if (link->state == OBL_LINK_PREFACE || link->state == OBL_LINK_MESSAGES)
		link->links->ended(link->links->user, link);
}

static void body_drop(struct obl_link *link)
{
	if (link->body)
		explicit_bzero(link->body, link->head.size); /* may have held a token */
	free(link->body);
	link->body = NULL;
}

static void link_close(struct obl_link *link)
{
	struct obl_links *links = link->links;

	if (link->state == OBL_LINK_CLOSED)
		return;
	announce_end(link);
	link->state = OBL_LINK_CLOSED;
	*(link->previous ? &link->previous->next : &links->first) = link->next;
	if (link->next)
		link->next->previous = link->previous;
	links->n--;
	links->out -= link->out.size;
	ob_buf_fini(&link->out);
	body_drop(link);
	obl_address_leave(&links->addresses, link->address, ob_clock_ns());
	uv_close((uv_handle_t *)&link->poll, link_freed);
}

static void poll_for(struct obl_link *link, int events)
{
	if (link->state == OBL_LINK_CLOSED || events == link->events)
		return;
	link->events = events;
	if (events)
		uv_poll_start(&link->poll, events, on_event);
	else
		uv_poll_stop(&link->poll);
}

static void linger(struct obl_link *link)
{
	link->state = OBL_LINK_LINGERING;
	link->deadline = ob_clock_ns() + OBL_LINK_LINGER_MS * OB_MS;
	shutdown(link->fd, SHUT_WR);
	poll_for(link, UV_READABLE);
}

/* Closing with unread bytes would reset the connection and could destroy the answer. */
static void throw_away(struct obl_link *link)
{
	char bytes[4096];
	ssize_t n = recv(link->fd, bytes, sizeof bytes, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && (link->thrown_away += (size_t)n) < THROW_AWAY_MAX)
		return;
	link_close(link);
}

/* ---- sending ---- */

/* False: the connection is broken. */
static bool flush(struct obl_link *link)
{
	size_t sent = 0;

	while (sent < link->out.size) {
		struct iovec iov = { link->out.data + sent, link->out.size - sent };
		ssize_t n = link->stream.ops->send(&link->stream, &iov, 1, false);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (n <= 0)
			break;
		sent += (size_t)n;
	}
	if (sent) {
		ob_buf_consume(&link->out, sent);
		link->links->out -= sent;
		link->send_deadline = ob_clock_ns() + OBL_LINK_SEND_MS * OB_MS;
	}
	if (link->out.size)
		poll_for(link, link->events | UV_WRITABLE);
	else if (link->state == OBL_LINK_FLUSHING)
		linger(link);
	else
		poll_for(link, link->events & ~UV_WRITABLE);
	return true;
}

/*
 * Nothing more can be sent. What waits is dropped at once, because the link itself ends with the
 * next sweep.
 */
static void link_break(struct obl_link *link, const char *why)
{
	ob_info("balancer: %s %s", link->address->text, why);
	link->broken = true;
	link->links->out -= link->out.size;
	ob_buf_fini(&link->out);
	ob_buf_init(&link->out, OBL_LINK_OUT_MAX);
}

/* Peers that do not read must not take the room of those that do. */
static void room_make(struct obl_links *links)
{
	while (links->out > OBL_LINKS_OUT_MAX) {
		struct obl_link *most = links->first;

		for (struct obl_link *link = links->first; link; link = link->next)
			if (link->out.size > most->out.size)
				most = link;
		link_break(most, "does not read what it asked for, and others need the room");
	}
}

bool obl_link_send(struct obl_link *link, const struct obp_pool_message *message)
{
	struct obl_links *links = link->links;
	size_t before = link->out.size;
	bool fits;

	if (link->state != OBL_LINK_MESSAGES || !link->stream.ops || link->broken)
		return false;
	fits = obp_pool_encode(message, &link->out);
	links->out += link->out.size - before;
	if (!fits)
		link_break(link, "does not read what it asked for");
	room_make(links);
	if (!link->broken && before == 0) {
		link->send_deadline = ob_clock_ns() + OBL_LINK_SEND_MS * OB_MS;
		link->drain_deadline = ob_clock_ns() + OBL_LINK_DRAIN_MS * OB_MS;
		link->broken = !flush(link);
	}
	return !link->broken;
}

void obl_link_refuse(
	struct obl_link *link, enum obp_pool_refusal code, uint64_t retry_ms, const char *text)
{
	static struct obp_pool_message message; /* large */

	message.type = OBP_POOL_REFUSED;
	message.u.refused.code = code;
	message.u.refused.retry_ms = retry_ms;
	snprintf(message.u.refused.text, sizeof message.u.refused.text, "%s", text);
	obl_link_send(link, &message);
}

void obl_link_end(struct obl_link *link)
{
	if (link->state != OBL_LINK_MESSAGES && link->state != OBL_LINK_PREFACE)
		return;
	announce_end(link);
	link->state = OBL_LINK_FLUSHING;
	link->deadline = ob_clock_ns() + OBL_LINK_SEND_MS * OB_MS;
	if (link->out.size && !link->broken)
		poll_for(link, UV_WRITABLE);
	else
		linger(link);
}

/* Refuses a peer that is not one of ours, in clear, as servers do. */
static void refuse_plainly(struct obl_link *link, enum ob_err code, const char *text)
{
	static struct obp_message message; /* large */
	struct ob_buf frame;

	message.type = OBP_MSG_REFUSED;
	message.code = (uint32_t)code;
	snprintf(message.text, sizeof message.text, "%s", text);
	ob_buf_init(&frame, sizeof(struct obp_frame) + REFUSAL_ROOM);
	if (obp_message_encode(&message, &frame)) {
		ssize_t sent = send(link->fd, frame.data, frame.size, MSG_DONTWAIT | MSG_NOSIGNAL);

		(void)sent; /* a peer that does not read loses the message */
	}
	ob_buf_fini(&frame);
	ob_info("balancer: %s refused: %s", link->address->text, text);
	obl_link_end(link);
}

static void refuse_wrong(struct obl_link *link, const char *text)
{
	ob_info("balancer: %s closed: %s", link->address->text, text);
	obl_link_refuse(link, OBP_POOL_INVALID, 0, text);
	obl_link_end(link);
}

/* ---- receiving ---- */

/* NULL: the header is good. */
static const char *head_wrong(const struct obl_link *link)
{
	const struct obp_frame *frame = &link->head;
	size_t most = link->member ? OBP_CONTROL_MAX : OBL_LINK_FRAME_MAX;

	if (frame->magic != OBP_MAGIC)
		return "no valid frame: is the address tls:// on one side and tcp:// on the other?";
	if (frame->version != OBP_FRAME_VERSION)
		return "unsupported frame version: the versions of the two programs differ";
	if (frame->type != OBP_FRAME_CONTROL || frame->flags || frame->reserved)
		return "a frame that is no message for a balancer";
	if (frame->raw_size == 0 || frame->raw_size > most || frame->size % 8 ||
		frame->raw_size > frame->size || frame->size - frame->raw_size > 7)
		return "a message that is too long, or its header is invalid";
	return NULL;
}

static void message_whole(struct obl_link *link)
{
	static struct obp_pool_message message; /* large; one at a time */
	enum ob_err err = obp_pool_decode(link->body, link->head.raw_size, &message);

	link->credit--;
	link->got = 0;
	link->deadline =
		ob_clock_ns() + (link->member ? OBL_LINK_MEMBER_MS : OBL_LINK_IDLE_MS) * OB_MS;
	if (err) {
		body_drop(link);
		refuse_wrong(link, "a message that cannot be decoded");
		return;
	}
	link->links->message(link->links->user, link, &message);
	obp_pool_fini(&message);
	explicit_bzero(&message.u, sizeof message.u);
	body_drop(link);
}

/* Handles a receive that returned no bytes. */
static void nothing_came(struct obl_link *link, ssize_t n)
{
	const struct ob_cause *cause = obt_stream_cause(&link->stream);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0 && cause)
		ob_info("balancer: %s: %s", link->address->text, cause->text);
	link_close(link);
}

/* Refills what the peer may send. True: a message may be read. */
static bool may_read(struct obl_link *link, uint64_t now)
{
	uint64_t rate = link->member ? OBL_LINK_MEMBER_RATE : OBL_LINK_RATE;
	uint64_t burst = link->member ? OBL_LINK_MEMBER_RATE : OBL_LINK_BURST;
	uint64_t more = (now - link->credit_ns) * rate / OB_SECOND;

	if (more) {
		link->credit = (uint32_t)ob_min(burst, link->credit + more);
		link->credit_ns = now;
	}
	return link->credit > 0;
}

static void read_messages(struct obl_link *link)
{
	while (link->state == OBL_LINK_MESSAGES) {
		const char *wrong;
		size_t size = link->body ? link->head.size : sizeof link->head;
		uint8_t *into = link->body ? link->body : (uint8_t *)&link->head;
		ssize_t n;

		if (!may_read(link, ob_clock_ns())) {
			poll_for(link, link->events & ~UV_READABLE); /* until the sweep */
			return;
		}
		n = link->stream.ops->recv(
			&link->stream, into + link->got, size - link->got, false);
		if (n <= 0) {
			nothing_came(link, n);
			return;
		}
		if (link->got == 0 && !link->body)
			link->deadline =
				ob_min(link->deadline, ob_clock_ns() + OBL_LINK_FIRST_MS * OB_MS);
		link->got += (size_t)n;
		if (link->got < size)
			continue;
		if (link->body) {
			message_whole(link);
			continue;
		}
		if ((wrong = head_wrong(link))) {
			refuse_wrong(link, wrong);
			return;
		}
		link->got = 0;
		link->body = malloc(link->head.size);
		if (!link->body)
			link_close(link);
	}
}

/* ---- the preface ---- */

static void introduced(struct obl_link *link)
{
	struct obp_preface preface;
	char text[128];

	memcpy(&preface, link->preface, sizeof preface);
	if (preface.version != OBP_VERSION) {
		snprintf(text, sizeof text,
			"this balancer speaks protocol version %u, the other side version %u",
			OBP_VERSION, preface.version);
		refuse_plainly(link, OB_ERR_VERSION, text);
		return;
	}
	if (preface.intent != OBP_INTENT_POOL) {
		refuse_plainly(link, OB_ERR_PROTOCOL,
			"this is a balancer, not a server: use --pool (OUTBOARD_POOL) with this "
			"address instead of --server");
		return;
	}
	if (preface.reserved || preface.route) {
		refuse_plainly(link, OB_ERR_PROTOCOL,
			"the preface has unknown bits: the versions of the two programs differ");
		return;
	}
	if (!obl_address_take(link->address, ob_clock_ns())) {
		refuse_plainly(link, OB_ERR_LIMIT,
			"too many new connections from this address; try again in a second");
		return;
	}
	if (!link->secure)
		obt_stream_adopt(&link->stream, link->fd);
	else if (obt_tls_accept(link->links->tls, link->fd, &link->stream)) {
		link_close(link);
		return;
	}
	link->state = OBL_LINK_MESSAGES;
	link->got = 0;
	read_messages(link);
}

static void read_preface(struct obl_link *link)
{
	const uint32_t magic = OBP_MAGIC;
	ssize_t n = recv(link->fd, link->preface + link->got, sizeof link->preface - link->got,
		MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		link_close(link);
		return;
	}
	link->got += (size_t)n;
	if (memcmp(link->preface, &magic, ob_min(link->got, sizeof magic)) != 0)
		refuse_plainly(link, OB_ERR_MAGIC,
			"this is an Outboard balancer; the other side does not speak its protocol");
	else if (link->got == sizeof link->preface)
		introduced(link);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct obl_link *link = poll->data;

	(void)status;
	if (link->state == OBL_LINK_LINGERING) {
		throw_away(link);
		return;
	}
	if ((events & UV_WRITABLE) && !flush(link)) {
		link_close(link);
		return;
	}
	if (!(events & UV_READABLE))
		return;
	if (link->state == OBL_LINK_PREFACE)
		read_preface(link);
	else if (link->state == OBL_LINK_MESSAGES)
		read_messages(link);
}

/* ---- coming and going ---- */

/* A peer whose machine has died is noticed although nothing is sent to it. */
static void keep_alive(int fd)
{
	int on = 1, idle_s = 10, every_s = 5, times = 3, unsent_ms = 20000;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unsent_ms, sizeof unsent_ms);
}

struct obl_link *obl_link_new(struct obl_links *links, int fd, bool secure)
{
	struct obl_link *link = calloc(1, sizeof *link);
	uint64_t now = ob_clock_ns();

	if (link)
		link->address = obl_address_enter(&links->addresses, fd);
	if (!link || !link->address || uv_poll_init(links->loop, &link->poll, fd) != 0) {
		if (link && link->address)
			obl_address_leave(&links->addresses, link->address, now);
		free(link);
		close(fd);
		return NULL;
	}
	if (!link->address->unix_socket)
		keep_alive(fd);
	link->links = links;
	link->fd = fd;
	link->secure = secure;
	link->poll.data = link;
	link->deadline = now + OBL_LINK_FIRST_MS * OB_MS;
	link->credit = OBL_LINK_BURST;
	link->credit_ns = now;
	ob_buf_init(&link->out, OBL_LINK_OUT_MAX);
	link->next = links->first;
	if (links->first)
		links->first->previous = link;
	links->first = link;
	links->n++;
	poll_for(link, UV_READABLE);
	return link;
}

void obl_link_trust(struct obl_link *link)
{
	link->member = true;
	link->deadline = ob_clock_ns() + OBL_LINK_MEMBER_MS * OB_MS;
}

void obl_link_rest(struct obl_link *link)
{
	link->patient = false;
	link->deadline = ob_clock_ns() + OBL_LINK_IDLE_MS * OB_MS;
}

void obl_link_evict(struct obl_link *link)
{
	link_close(link);
}

static bool late(const struct obl_link *link, uint64_t now)
{
	if (link->broken ||
		(link->out.size && (now >= link->send_deadline || now >= link->drain_deadline)))
		return true;
	if (link->state == OBL_LINK_MESSAGES && link->patient && !link->body && link->got == 0)
		return false;
	return now >= link->deadline;
}

void obl_links_sweep(struct obl_links *links, uint64_t now_ns)
{
	struct obl_link *next;

	for (struct obl_link *link = links->first; link; link = next) {
		next = link->next;
		if (late(link, now_ns)) {
			link_close(link);
		} else if (link->state == OBL_LINK_MESSAGES && !(link->events & UV_READABLE)) {
			poll_for(link, link->events | UV_READABLE);
			read_messages(link);
		}
	}
	obl_addresses_sweep(&links->addresses, now_ns);
}

void obl_links_end_all(struct obl_links *links)
{
	struct obl_link *next;

	for (struct obl_link *link = links->first; link; link = next) {
		next = link->next;
		obl_link_end(link);
	}
}
