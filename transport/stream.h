/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A byte stream between client and server behind one table of functions. A stream has one owner for
 * sending and one for receiving at a time; the two may be different threads. Descriptors are
 * close-on-exec.
 */
#ifndef OBT_STREAM_H
#define OBT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/fd.h"
#include "transport/url.h"

struct obt_stream;

struct obt_ops {
	const char *name;
	/*
	 * As many bytes as fit now (block false) or at least one (block true, at most the receive
	 * time-out). > 0 bytes; 0 the peer closed (recv); -1 with errno EAGAIN when nothing moves
	 * now, any other errno when the stream is broken.
	 */
	ssize_t (*send)(struct obt_stream *stream, const struct iovec *iov, int n, bool block);
	ssize_t (*recv)(struct obt_stream *stream, void *data, size_t size, bool block);
	void (*close)(struct obt_stream *stream);
	/* The obt_stream_ functions of these names. NULL: as on a plain socket. */
	int (*wait)(struct obt_stream *stream, short events, uint64_t deadline);
	bool (*pending)(const struct obt_stream *stream);
	bool (*arm)(const struct obt_stream *stream);
	const char *(*why)(const struct obt_stream *stream);
	void (*set_recv_timeout)(struct obt_stream *stream, unsigned ms);
};

struct obt_tls;
struct obt_shm;

struct obt_stream {
	const struct obt_ops *ops;
	/*
	 * to poll, when obt_stream_arm says no; -1 once closed. Its owner waits with
	 * obt_stream_wait
	 */
	int fd;
	struct ob_file file; /* what fd stood for when it was ours */
	struct obt_tls *tls; /* NULL: in clear */
	struct obt_shm *shm; /* NULL: never through shared memory */
};

extern const struct obt_ops obt_socket_ops; /* tcp and unix */

/* Takes over a connected socket and sets what the protocol wants of it (TCP_NODELAY, buffers). */
void obt_stream_adopt(struct obt_stream *stream, int fd);
void obt_stream_close(struct obt_stream *stream);
/*
 * Ends both directions: whoever sleeps in the socket wakes. Nothing when the descriptor is not ours
 * any more, like close.
 */
void obt_stream_shutdown(struct obt_stream *stream);
/*
 * One system call. False: the program around us closed the descriptor; its number is free, or
 * another file's.
 */
bool obt_stream_ours(const struct obt_stream *stream);
/*
 * Can the network or the peer cause this errno of a send or a receive? Others are faults of this
 * process, or of its system.
 */
bool obt_error_of_link(int error);
/*
 * After a fork, in the child: lets go of the parent's connection without a byte and without a lock.
 */
void obt_stream_forget(struct obt_stream *stream);
/* Bytes can be received although the socket may have none. */
bool obt_stream_pending(const struct obt_stream *stream);
/*
 * The same for who is about to poll fd and is not the receiving owner: when it says no, fd becomes
 * readable as soon as there is something.
 */
bool obt_stream_arm(const struct obt_stream *stream);
/*
 * Waits for POLLIN, POLLOUT or both until the deadline. What there is now, an end counting as both;
 * 0: time is over; -1: errno.
 */
int obt_stream_wait(struct obt_stream *stream, short events, uint64_t deadline);
/* What went wrong in words, when more is known than the error's own; NULL: nothing more. */
const char *obt_stream_why(const struct obt_stream *stream);
/* A blocking recv returns with EAGAIN after this long. */
void obt_stream_set_recv_timeout(struct obt_stream *stream, unsigned ms);

/* All of it, before the deadline. OB_ERR_CLOSED, OB_ERR_TIMEOUT, OB_ERR_IO. */
enum ob_err obt_stream_send_all(
	struct obt_stream *stream, struct iovec *iov, int n, uint64_t deadline);
enum ob_err obt_stream_recv_all(
	struct obt_stream *stream, void *data, size_t size, uint64_t deadline);
/* Drops `done` bytes from the front; returns the first entry that has bytes left, or n. */
int obt_iov_advance(struct iovec *iov, int n, size_t done);

#endif
