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

#include "base/cause.h"
#include "base/fd.h"
#include "transport/url.h"

struct obt_stream;

struct obt_ops {
	const char *name;
	/*
	 * Send or receive as many bytes as possible now (block false) or at least one (block true,
	 * at most the receive time-out). > 0: bytes; 0: the peer closed (recv); -1: errno EAGAIN
	 * when nothing is possible now, any other errno when the stream is broken.
	 */
	ssize_t (*send)(struct obt_stream *stream, const struct iovec *iov, int n, bool block);
	ssize_t (*recv)(struct obt_stream *stream, void *data, size_t size, bool block);
	void (*close)(struct obt_stream *stream);
	/*
	 * Implementations of the obt_stream_ functions of the same names. NULL: as for a plain
	 * socket.
	 */
	int (*wait)(struct obt_stream *stream, short events, uint64_t deadline);
	bool (*pending)(const struct obt_stream *stream);
	bool (*arm)(const struct obt_stream *stream);
	const struct ob_cause *(*cause)(const struct obt_stream *stream);
	void (*set_recv_timeout)(struct obt_stream *stream, unsigned ms);
};

struct obt_tls;
struct obt_shm;

struct obt_stream {
	const struct obt_ops *ops;
	/*
	 * may be polled when obt_stream_arm returns false; -1 once closed. The receiving owner uses
	 * obt_stream_wait instead
	 */
	int fd;
	/* identifies the file behind fd, to detect that the number was reused */
	struct ob_file file;
	struct obt_tls *tls; /* NULL: in clear */
	struct obt_shm *shm; /* NULL: never through shared memory */
};

extern const struct obt_ops obt_socket_ops; /* tcp and unix */

/* Takes over a connected socket and sets its options (TCP_NODELAY, buffers). */
void obt_stream_adopt(struct obt_stream *stream, int fd);
void obt_stream_close(struct obt_stream *stream);
/*
 * Shuts both directions down, which wakes threads that are blocked in the socket. Like close, does
 * nothing when the descriptor is no longer ours.
 */
void obt_stream_shutdown(struct obt_stream *stream);
/*
 * Makes one system call. False: the program that we run in has closed the descriptor; its number is
 * free, or another file's.
 */
bool obt_stream_ours(const struct obt_stream *stream);
/*
 * True if the network or the peer can cause this errno of a send or a receive. All others are
 * faults of this process or system.
 */
bool obt_error_of_link(int error);
/*
 * In the child after a fork: drops the parent's connection without sending a byte or taking a lock.
 */
void obt_stream_forget(struct obt_stream *stream);
/* True if bytes can be received although poll() on the socket may not report any. */
bool obt_stream_pending(const struct obt_stream *stream);
/*
 * The same for a thread that is about to poll fd and is not the receiving owner: after false, fd
 * becomes readable as soon as there are bytes.
 */
bool obt_stream_arm(const struct obt_stream *stream);
/*
 * Waits for POLLIN, POLLOUT or both until the deadline. Returns what is possible now, where an end
 * counts as both; 0: time-out; -1: errno.
 */
int obt_stream_wait(struct obt_stream *stream, short events, uint64_t deadline);
/* What broke the stream, if it knows more than errno; else NULL. Valid as long as the stream. */
const struct ob_cause *obt_stream_cause(const struct obt_stream *stream);
/* After this long a blocking recv returns with EAGAIN. */
void obt_stream_set_recv_timeout(struct obt_stream *stream, unsigned ms);

/* Sends or receives everything before the deadline. OB_ERR_CLOSED, OB_ERR_TIMEOUT, OB_ERR_IO. */
enum ob_err obt_stream_send_all(
	struct obt_stream *stream, struct iovec *iov, int n, uint64_t deadline);
enum ob_err obt_stream_recv_all(
	struct obt_stream *stream, void *data, size_t size, uint64_t deadline);
/* Removes `done` bytes from the front; returns the first entry that has bytes left, or n. */
int obt_iov_advance(struct iovec *iov, int n, size_t done);

#endif
