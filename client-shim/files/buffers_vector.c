/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* liboutboard-buffers.so: calls with several buffers. */
#undef _FILE_OFFSET_BITS
#include "client-shim/files/buffers.h"

#include <limits.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define VECTOR_MAX 1024 /* IOV_MAX of Linux */

/* A call with everything but its vector. */
struct vector_call {
	ssize_t (*run)(const struct vector_call *call, const struct iovec *iov, int n);
	bool out; /* the buffers are read */
	int fd, flags;
	off_t at;
	struct msghdr *message;
};

static bool vector_concerns(const struct iovec *iov, int n)
{
	if (!UNLIKELY(atomic_load_explicit(&buffers_marks, memory_order_relaxed) > 0) ||
		n > VECTOR_MAX)
		return false;
	for (int i = 0; i < n; i++)
		if (buffers_within(iov[i].iov_base, iov[i].iov_len))
			return true;
	return false;
}

/*
 * Bytes of the buffers that are replaced, as many as a call can transfer. *n: the buffers that it
 * needs. 0: the system refuses the call.
 */
static size_t vector_bytes(const struct iovec *iov, int *n)
{
	size_t bytes = 0;

	for (int i = 0; i < *n; i++) {
		if (iov[i].iov_len > SSIZE_MAX)
			return 0;
		if (!buffers_within(iov[i].iov_base, iov[i].iov_len))
			continue;
		if (iov[i].iov_len > BUFFERS_MOST - bytes) {
			*n = i + 1;
			return BUFFERS_MOST;
		}
		bytes += iov[i].iov_len;
	}
	return bytes;
}

/* Copies up to `size` bytes of the replaced buffers out of ours. */
static void scatter(const struct iovec *iov, const struct iovec *ours, int n, size_t size)
{
	for (int i = 0; i < n && size; i++) {
		size_t part = size < ours[i].iov_len ? size : ours[i].iov_len;

		if (iov[i].iov_base != ours[i].iov_base)
			memcpy(iov[i].iov_base, ours[i].iov_base, part);
		size -= part;
	}
}

/* Our vector lies before its buffers. */
static ssize_t transfer(
	const struct vector_call *call, const struct iovec *iov, int n, const struct bounce *bounce)
{
	struct iovec *ours = bounce->bytes;
	char *at = (char *)(ours + n), *end = (char *)bounce->bytes + bounce->size;
	ssize_t got;

	for (int i = 0; i < n; i++) {
		ours[i] = iov[i];
		if (!buffers_within(iov[i].iov_base, iov[i].iov_len))
			continue;
		ours[i].iov_base = at;
		if (ours[i].iov_len > (size_t)(end - at))
			ours[i].iov_len = (size_t)(end - at);
		/* With MSG_TRUNC a stream drops the bytes, and the buffer stays as it is. */
		if (call->out || call->flags & MSG_TRUNC)
			memcpy(at, iov[i].iov_base, ours[i].iov_len);
		at += ours[i].iov_len;
	}
	got = call->run(call, ours, n);
	if (got > 0 && !call->out)
		scatter(iov, ours, n, (size_t)got);
	return got;
}

/* bytes: of vector_bytes. */
static ssize_t carry_bytes(
	const struct vector_call *call, const struct iovec *iov, int n, size_t bytes)
{
	struct bounce bounce;
	ssize_t result;

	if (!bounce_make(&bounce, (size_t)n * sizeof *iov + bytes, NULL))
		return call->run(call, iov, n);
	pthread_cleanup_push(bounce_free, &bounce);
	result = transfer(call, iov, n, &bounce);
	pthread_cleanup_pop(1);
	return result;
}

static ssize_t carry(const struct vector_call *call, const struct iovec *iov, int n)
{
	int used = n;
	size_t bytes = vector_bytes(iov, &used);

	return bytes ? carry_bytes(call, iov, used, bytes) : call->run(call, iov, n);
}

/* clang-format off */
NEXT(ssize_t, readv, (int fd, const struct iovec *iov, int n))
NEXT(ssize_t, writev, (int fd, const struct iovec *iov, int n))
NEXT(ssize_t, preadv, (int fd, const struct iovec *iov, int n, off_t at))
NEXT(ssize_t, preadv64, (int fd, const struct iovec *iov, int n, off64_t at))
NEXT(ssize_t, pwritev, (int fd, const struct iovec *iov, int n, off_t at))
NEXT(ssize_t, pwritev64, (int fd, const struct iovec *iov, int n, off64_t at))
NEXT(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags))
NEXT(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags))
/* clang-format on */

static ssize_t run_readv(const struct vector_call *call, const struct iovec *iov, int n)
{
	return next_readv()(call->fd, iov, n);
}

static ssize_t run_writev(const struct vector_call *call, const struct iovec *iov, int n)
{
	return next_writev()(call->fd, iov, n);
}

static ssize_t run_preadv(const struct vector_call *call, const struct iovec *iov, int n)
{
	return next_preadv64()(call->fd, iov, n, call->at);
}

static ssize_t run_pwritev(const struct vector_call *call, const struct iovec *iov, int n)
{
	return next_pwritev64()(call->fd, iov, n, call->at);
}

/* The system writes to the other members of the program's message. */
static ssize_t run_recvmsg(const struct vector_call *call, const struct iovec *iov, int n)
{
	struct msghdr message = *call->message;
	ssize_t got;

	message.msg_iov = (struct iovec *)(uintptr_t)iov; /* NOLINT(performance-no-int-to-ptr) */
	message.msg_iovlen = (size_t)n;
	got = next_recvmsg()(call->fd, &message, call->flags);
	message.msg_iov = call->message->msg_iov;
	message.msg_iovlen = call->message->msg_iovlen;
	*call->message = message;
	return got;
}

static ssize_t run_sendmsg(const struct vector_call *call, const struct iovec *iov, int n)
{
	struct msghdr message = *call->message;

	message.msg_iov = (struct iovec *)(uintptr_t)iov; /* NOLINT(performance-no-int-to-ptr) */
	message.msg_iovlen = (size_t)n;
	return next_sendmsg()(call->fd, &message, call->flags);
}

ssize_t readv(int fd, const struct iovec *iov, int n)
{
	return vector_concerns(iov, n)
		? carry(&(struct vector_call){ .run = run_readv, .fd = fd }, iov, n)
		: next_readv()(fd, iov, n);
}

ssize_t writev(int fd, const struct iovec *iov, int n)
{
	return vector_concerns(iov, n)
		? carry(&(struct vector_call){ .run = run_writev, .out = true, .fd = fd }, iov, n)
		: next_writev()(fd, iov, n);
}

static ssize_t carry_preadv(int fd, const struct iovec *iov, int n, off_t at)
{
	return carry(&(struct vector_call){ .run = run_preadv, .fd = fd, .at = at }, iov, n);
}

static ssize_t carry_pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
	return carry(&(struct vector_call){ .run = run_pwritev, .out = true, .fd = fd, .at = at },
		iov, n);
}

ssize_t preadv(int fd, const struct iovec *iov, int n, off_t at)
{
	return vector_concerns(iov, n) ? carry_preadv(fd, iov, n, at)
				       : next_preadv()(fd, iov, n, at);
}

ssize_t preadv64(int fd, const struct iovec *iov, int n, off64_t at)
{
	return vector_concerns(iov, n) ? carry_preadv(fd, iov, n, at)
				       : next_preadv64()(fd, iov, n, at);
}

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
	return vector_concerns(iov, n) ? carry_pwritev(fd, iov, n, at)
				       : next_pwritev()(fd, iov, n, at);
}

ssize_t pwritev64(int fd, const struct iovec *iov, int n, off64_t at)
{
	return vector_concerns(iov, n) ? carry_pwritev(fd, iov, n, at)
				       : next_pwritev64()(fd, iov, n, at);
}

static bool message_concerns(const struct msghdr *message)
{
	return UNLIKELY(atomic_load_explicit(&buffers_marks, memory_order_relaxed) > 0) &&
		message && message->msg_iovlen <= VECTOR_MAX &&
		vector_concerns(message->msg_iov, (int)message->msg_iovlen);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	return message_concerns(message) ? carry(&(struct vector_call){ .run = run_recvmsg,
							 .fd = fd,
							 .flags = flags,
							 .message = message },
						   message->msg_iov, (int)message->msg_iovlen)
					 : next_recvmsg()(fd, message, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	struct msghdr copy;

	if (!message_concerns(message))
		return next_sendmsg()(fd, message, flags);
	copy = *message;
	return carry(&(struct vector_call){ .run = run_sendmsg,
			     .out = true,
			     .fd = fd,
			     .flags = flags,
			     .message = &copy },
		copy.msg_iov, (int)copy.msg_iovlen);
}
