/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"

/* send buffer asked for on a unix socket; TCP's own tuning is better left alone */
#define SOCKET_BUFFER (4 << 20)

static ssize_t socket_send(struct obt_stream *stream, const struct iovec *iov, int n, bool block)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)n };
	ssize_t done;

	do
		done = sendmsg(stream->fd, &msg, MSG_NOSIGNAL | (block ? 0 : MSG_DONTWAIT));
	while (done < 0 && errno == EINTR);
	return done;
}

static ssize_t socket_recv(struct obt_stream *stream, void *data, size_t size, bool block)
{
	ssize_t done;

	do
		done = recv(stream->fd, data, size, block ? 0 : MSG_DONTWAIT);
	while (done < 0 && errno == EINTR);
	return done;
}

static void socket_close(struct obt_stream *stream)
{
	if (stream->fd >= 0)
		close(stream->fd);
	stream->fd = -1;
}

/* Detects within a minute that a peer's machine is gone, also when nothing is sent. */
static void keep_alive(int fd)
{
	const int on = 1, idle_s = 30, every_s = 10, times = 3;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

void obt_stream_adopt(struct obt_stream *stream, int fd)
{
	int one = 1, size = SOCKET_BUFFER, domain = 0;
	socklen_t length = sizeof domain;

	stream->ops = &obt_socket_ops;
	stream->fd = fd;
	stream->file = ob_fd_file(fd);
	stream->tls = NULL;
	stream->shm = NULL;
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX) {
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	} else {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		keep_alive(fd);
	}
}

bool obt_stream_ours(const struct obt_stream *stream)
{
	return ob_fd_is(stream->fd, &stream->file);
}

void obt_stream_shutdown(struct obt_stream *stream)
{
	if (stream->fd >= 0 && obt_stream_ours(stream))
		shutdown(stream->fd, SHUT_RDWR);
}

bool obt_error_of_link(int error)
{
	switch (error) {
	case EPIPE:
	case ECONNRESET:
	case ECONNABORTED:
	case ECONNREFUSED:
	case ENOTCONN:
	case ESHUTDOWN:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case EHOSTDOWN:
	case ENETUNREACH:
	case ENETDOWN:
	case ENETRESET:
	case EPROTO: /* invalid data inside TLS or in shared memory */
	case EIO:
	case EPERM: /* a packet filter on this machine */
	case EACCES:
	case ENOBUFS:
	case 0: /* TLS: a fault of the peer, without an errno */
		return true;
	default:
		return false;
	}
}

void obt_stream_close(struct obt_stream *stream)
{
	if (stream->fd >= 0 && !obt_stream_ours(stream))
		stream->fd = -1;
	if (stream->ops)
		stream->ops->close(stream);
	stream->ops = NULL;
	stream->fd = -1;
}

void obt_stream_forget(struct obt_stream *stream)
{
	if (stream->ops && stream->fd >= 0 && obt_stream_ours(stream))
		close(stream->fd);
	*stream = (struct obt_stream){ .fd = -1 };
}

/* ---- dispatch to the kind of stream ---- */

static void socket_set_recv_timeout(struct obt_stream *stream, unsigned ms)
{
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000 };

	setsockopt(stream->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
}

void obt_stream_set_recv_timeout(struct obt_stream *stream, unsigned ms)
{
	if (stream->ops && stream->ops->set_recv_timeout)
		stream->ops->set_recv_timeout(stream, ms);
	else
		socket_set_recv_timeout(stream, ms);
}

bool obt_stream_pending(const struct obt_stream *stream)
{
	return stream->ops && stream->ops->pending && stream->ops->pending(stream);
}

bool obt_stream_arm(const struct obt_stream *stream)
{
	return stream->ops && stream->ops->arm ? stream->ops->arm(stream)
					       : obt_stream_pending(stream);
}

const struct ob_cause *obt_stream_cause(const struct obt_stream *stream)
{
	return stream->ops && stream->ops->cause ? stream->ops->cause(stream) : NULL;
}

static int socket_wait(struct obt_stream *stream, short events, uint64_t deadline)
{
	struct pollfd pfd = { .fd = stream->fd, .events = events };
	int n;

	if (events & POLLIN && obt_stream_pending(stream))
		return POLLIN;
	do
		n = poll(&pfd, 1, ob_clock_poll_ms(deadline));
	while (n < 0 && errno == EINTR);
	if (n > 0 && pfd.revents & ~(POLLIN | POLLOUT))
		return events;
	return n > 0 ? pfd.revents : n;
}

int obt_stream_wait(struct obt_stream *stream, short events, uint64_t deadline)
{
	return stream->ops && stream->ops->wait ? stream->ops->wait(stream, events, deadline)
						: socket_wait(stream, events, deadline);
}

const struct obt_ops obt_socket_ops = { .name = "socket",
	.send = socket_send,
	.recv = socket_recv,
	.close = socket_close,
	.wait = socket_wait,
	.set_recv_timeout = socket_set_recv_timeout };

/* ---- complete buffers ---- */

int obt_iov_advance(struct iovec *iov, int n, size_t done)
{
	int i = 0;

	for (; i < n && done >= iov[i].iov_len; i++) {
		done -= iov[i].iov_len;
		iov[i].iov_len = 0;
	}
	if (i < n) {
		iov[i].iov_base = (char *)iov[i].iov_base + done;
		iov[i].iov_len -= done;
	}
	return i;
}

static enum ob_err wait_for(struct obt_stream *stream, short events, uint64_t deadline)
{
	int n = obt_stream_wait(stream, events, deadline);

	if (n < 0)
		return OB_ERR_IO;
	return n ? OB_ERR_NONE : OB_ERR_TIMEOUT;
}

enum ob_err obt_stream_send_all(
	struct obt_stream *stream, struct iovec *iov, int n, uint64_t deadline)
{
	int i = obt_iov_advance(iov, n, 0);
	enum ob_err err;

	while (i < n) {
		ssize_t done = stream->ops->send(stream, iov + i, n - i, false);

		if (done < 0 && errno != EAGAIN)
			return errno == EPIPE || errno == ECONNRESET ? OB_ERR_CLOSED : OB_ERR_IO;
		if (done < 0) {
			err = wait_for(stream, POLLOUT, deadline);
			if (err)
				return err;
			continue;
		}
		i += obt_iov_advance(iov + i, n - i, (size_t)done);
	}
	return OB_ERR_NONE;
}

enum ob_err obt_stream_recv_all(
	struct obt_stream *stream, void *data, size_t size, uint64_t deadline)
{
	char *p = data;
	enum ob_err err;

	while (size) {
		ssize_t done = stream->ops->recv(stream, p, size, false);

		if (done == 0)
			return OB_ERR_CLOSED;
		if (done < 0 && errno != EAGAIN)
			return errno == ECONNRESET ? OB_ERR_CLOSED : OB_ERR_IO;
		if (done < 0) {
			err = wait_for(stream, POLLIN, deadline);
			if (err)
				return err;
			continue;
		}
		p += done;
		size -= (size_t)done;
	}
	return OB_ERR_NONE;
}
