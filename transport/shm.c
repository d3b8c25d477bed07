/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "protocol/format.h"
#include "transport/shm_inside.h"

#define SEALS         (F_SEAL_SHRINK | F_SEAL_GROW)
/* a wait for bytes without a time-out checks the socket at this interval */
#define SLICE_MS      1000
#define ROOM_SLICE_MS 20 /* the same for a wait for room, which is not woken by the socket's end */
#define SPIN_NS       20000
#define CREDIT_MAX    8
/* without credit, one of this many waits spins, to measure whether spinning helps now */
#define SPIN_RETRY    16u

/* ---- making and unmaking ---- */

static struct obt_shm *shm_new(bool server)
{
	struct obt_shm *shm = aligned_alloc(_Alignof(struct obt_shm), sizeof *shm);

	if (!shm)
		return NULL;
	memset(shm, 0, sizeof *shm);
	shm->server = server;
	shm->memfd = -1;
	return shm;
}

static void memfd_drop(struct obt_shm *shm)
{
	if (shm->memfd >= 0)
		close(shm->memfd);
	shm->memfd = -1;
}

static void shm_close(struct obt_stream *stream)
{
	struct obt_shm *shm = stream->shm;

	if (stream->fd >= 0)
		close(stream->fd);
	memfd_drop(shm);
	if (shm->map)
		munmap(shm->map, OBT_SHM_BYTES);
	free(shm);
	stream->shm = NULL;
	stream->fd = -1;
}

static bool map(struct obt_shm *shm)
{
	struct obt_shm_memory *memory =
		mmap(NULL, OBT_SHM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, shm->memfd, 0);
	int out = shm->server ? OBT_SHM_TO_CLIENT : OBT_SHM_TO_SERVER, in = !out;
	uint8_t *data;

	if (memory == MAP_FAILED)
		return false;
	data = (uint8_t *)memory + OBT_SHM_CONTROL_BYTES;
	/*
	 * A forked child has no part in its parent's session and must not keep its memory mapped.
	 */
	madvise(memory, OBT_SHM_BYTES, MADV_DONTFORK);
	shm->map = memory;
	obt_ring_writer_init(&shm->out, &memory->rings[out],
		data + (size_t)out * OBT_SHM_RING_BYTES, OBT_SHM_RING_BYTES);
	obt_ring_reader_init(&shm->in, &memory->rings[in], data + (size_t)in * OBT_SHM_RING_BYTES,
		OBT_SHM_RING_BYTES);
	return true;
}

enum ob_err obt_shm_attach(struct obt_stream *stream, int memfd, bool server)
{
	struct obt_shm *shm = shm_new(server);

	if (!shm)
		return OB_ERR_NO_MEMORY;
	shm->memfd = memfd;
	if (!map(shm)) {
		shm->memfd = -1;
		free(shm);
		return OB_ERR_NO_MEMORY;
	}
	stream->ops = &obt_shm_ops;
	stream->shm = shm;
	return OB_ERR_NONE;
}

/* ---- the client's side of the handshake ---- */

enum ob_err obt_shm_offer(struct obt_stream *stream, struct ob_cause *ret_cause)
{
	int memfd = memfd_create("outboard", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	enum ob_err err;

	if (memfd < 0)
		return ob_cause_set(ret_cause, OB_ERR_UNSUPPORTED, "%s",
			errno == ENOSYS ? "this kernel has no memfd_create" : strerror(errno));
	if (ftruncate(memfd, (off_t)OBT_SHM_BYTES) != 0 ||
		fcntl(memfd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) != 0 ||
		obt_shm_attach(stream, memfd, false) != OB_ERR_NONE) {
		err = ob_cause_set(ret_cause, OB_ERR_UNSUPPORTED, "%s", strerror(errno));
		close(memfd);
		return err;
	}
	stream->shm->preface = sizeof(struct obp_preface);
	return OB_ERR_NONE;
}

uint32_t obt_shm_offered(const struct obt_stream *stream)
{
	return stream->shm && !stream->shm->server && stream->shm->map ? OBT_SHM_VERSION : 0;
}

/*
 * The memory is sent with the first bytes behind the preface: admission reads these and passes the
 * memory on to the worker.
 */
static ssize_t offer_send(struct obt_stream *stream, const struct iovec *iov, int n)
{
	struct obt_shm *shm = stream->shm;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec first = iov[0];
	struct msghdr msg = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n };
	ssize_t done;

	if (shm->preface) {
		first.iov_len = ob_min(first.iov_len, (size_t)shm->preface);
		msg.msg_iov = &first;
		msg.msg_iovlen = 1;
	} else {
		struct cmsghdr *cmsg;

		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof control.bytes;
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &shm->memfd, sizeof(int));
	}
	do
		done = sendmsg(stream->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (done < 0 && errno == EINTR);
	if (done > 0 && !shm->preface)
		memfd_drop(shm);
	else if (done > 0)
		shm->preface -= (unsigned)done;
	return done;
}

/* ---- the server's ---- */

void obt_shm_expect(struct obt_stream *stream)
{
	int domain = 0;
	socklen_t length = sizeof domain;

	if (!ob_opt_on(OB_OPT_SHM) ||
		getsockopt(stream->fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 ||
		domain != AF_UNIX)
		return;
	stream->shm = shm_new(true);
	/* if out of memory, the client's memory is dropped, and the client gets an error */
	if (stream->shm)
		stream->ops = &obt_shm_ops;
}

int obt_shm_steal(struct obt_stream *stream)
{
	int memfd = stream->shm ? stream->shm->memfd : -1;

	if (stream->shm)
		stream->shm->memfd = -1;
	return memfd;
}

void obt_shm_put(struct obt_stream *stream, int memfd)
{
	if (memfd < 0)
		return;
	if (stream->shm && stream->shm->memfd < 0)
		stream->shm->memfd = memfd;
	else
		close(memfd);
}

/* Keeps the first received descriptor, closes the others. */
static void descriptors_take(struct obt_shm *shm, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
			int fd;

			memcpy(&fd, (char *)c + at, sizeof fd);
			if (shm->memfd < 0 && !shm->map)
				shm->memfd = fd;
			else
				close(fd);
		}
	}
}

static ssize_t expect_recv(struct obt_stream *stream, void *data, size_t size, bool block)
{
	struct iovec iov = { data, size };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes };
	ssize_t done;

	do
		done = recvmsg(stream->fd, &msg, MSG_CMSG_CLOEXEC | (block ? 0 : MSG_DONTWAIT));
	while (done < 0 && errno == EINTR);
	if (done >= 0)
		descriptors_take(stream->shm, &msg);
	return done;
}

/*
 * Checks that it is ordinary memory of the right size that can never shrink; otherwise touching it
 * could end this process. Huge pages are refused: they may be unavailable when touched.
 */
static const char *memory_wrong(int memfd)
{
	struct statfs fs;
	struct stat st;
	int seals = fcntl(memfd, F_GET_SEALS);

	if (seals < 0 || fstat(memfd, &st) != 0 || !S_ISREG(st.st_mode) ||
		fstatfs(memfd, &fs) != 0 || fs.f_type != TMPFS_MAGIC)
		return "what came with the hello is not shared memory (memfd)";
	if ((seals & SEALS) != SEALS)
		return "the shared memory is not sealed against a change of its size";
	if (st.st_size != (off_t)OBT_SHM_BYTES)
		return "the shared memory has the wrong size";
	return NULL;
}

enum ob_err obt_shm_take(struct obt_stream *stream, uint32_t version, struct ob_cause *ret_cause)
{
	struct obt_shm *shm = stream->shm;
	const char *wrong;

	if (version != OBT_SHM_VERSION || !ob_opt_on(OB_OPT_SHM))
		return OB_ERR_NONE;
	if (!shm || shm->memfd < 0)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"no shared memory came with the hello: the socket is forwarded from "
			"another machine, or this one is out of descriptors. "
			"Name the server as unix:PATH");
	wrong = memory_wrong(shm->memfd);
	if (!wrong && !map(shm))
		wrong = "the shared memory cannot be mapped";
	memfd_drop(shm);
	return wrong ? ob_cause_set(ret_cause, OB_ERR_LIMIT, "%s", wrong) : OB_ERR_NONE;
}

uint32_t obt_shm_taken(const struct obt_stream *stream)
{
	return stream->shm && stream->shm->server && stream->shm->map ? OBT_SHM_VERSION : 0;
}

void obt_shm_settle(struct obt_stream *stream, uint32_t version)
{
	struct obt_shm *shm = stream->shm;

	if (!shm)
		return;
	memfd_drop(shm);
	shm->settled = true;
	if (version == OBT_SHM_VERSION && shm->map) {
		atomic_store(&shm->on, true);
	} else if (shm->map) {
		munmap(shm->map, OBT_SHM_BYTES);
		shm->map = NULL;
	}
}

bool obt_shm_on(const struct obt_stream *stream)
{
	return stream->shm && atomic_load_explicit(&stream->shm->on, memory_order_relaxed);
}

/* ---- waiting ---- */

static void look_at_socket(struct obt_shm *shm, int fd, bool drain)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char bytes[64];
	ssize_t n;

	if (drain) {
		n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			atomic_store(&shm->ended, true);
	} else if (poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLHUP | POLLERR | POLLNVAL)) {
		atomic_store(&shm->ended, true);
	}
}

static short ready(struct obt_shm *shm, short events)
{
	if (atomic_load(&shm->ended))
		return events;
	return (short)((events & POLLIN && obt_ring_readable(&shm->in) ? POLLIN : 0) |
		(events & POLLOUT && obt_ring_writable(&shm->out) ? POLLOUT : 0));
}

static bool spin_pays(struct obt_shm_spin *spin)
{
	return ob_opt_on(OB_OPT_SPIN) && (spin->credit > 0 || spin->turns++ % SPIN_RETRY == 0);
}

static short spin_for(struct obt_shm *shm, short events, uint64_t deadline)
{
	struct obt_shm_spin *spin = events & POLLOUT ? &shm->out_spin : &shm->in_spin;
	uint64_t until;
	short result = 0;

	if (!spin_pays(spin))
		return 0;
	until = ob_min(ob_clock_ns() + SPIN_NS, deadline);
	while (!(result = ready(shm, events)) && ob_clock_ns() < until)
		for (int i = 0; i < 8; i++)
			ob_clock_relax();
	spin->credit = result ? CREDIT_MAX : ob_max(spin->credit - 1, 0);
	return result;
}

static void futex_sleep(_Atomic uint32_t *word, uint32_t value, int ms)
{
	struct timespec ts = { .tv_nsec = (long)ms * (long)OB_MS };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &ts, NULL, 0);
}

static int slice(uint64_t deadline, int most_ms)
{
	int ms = ob_clock_poll_ms(deadline);

	return ms < 0 ? most_ms : ob_min(ms, most_ms);
}

/*
 * With POLLIN the caller is the stream's reader, who may read the socket: it sleeps in poll(). A
 * caller that only wants room sleeps on its asleep word as a futex.
 */
static void sleep_once(struct obt_stream *stream, short events, uint64_t deadline)
{
	struct obt_shm *shm = stream->shm;
	struct pollfd pfd = { .fd = stream->fd, .events = POLLIN };
	_Atomic uint32_t *room = &shm->out.shared->writer_asleep,
			 *bytes = &shm->in.shared->reader_asleep;

	if (events & POLLOUT)
		atomic_store(room, events & POLLIN ? OBT_ASLEEP_SOCKET : OBT_ASLEEP_FUTEX);
	if (events & POLLIN)
		atomic_store(bytes, OBT_ASLEEP_SOCKET);
	if (!ready(shm, events)) {
		if (!(events & POLLIN)) {
			futex_sleep(room, OBT_ASLEEP_FUTEX, slice(deadline, ROOM_SLICE_MS));
			look_at_socket(shm, stream->fd, false);
		} else if (poll(&pfd, 1, slice(deadline, SLICE_MS)) > 0) {
			look_at_socket(shm, stream->fd, true);
		}
	}
	if (events & POLLOUT)
		atomic_store(room, OBT_AWAKE);
	if (events & POLLIN)
		atomic_store(bytes, OBT_AWAKE);
}

/*
 * Waits for POLLIN, POLLOUT or both until the deadline. Returns what is possible; 0: time-out. The
 * socket's end counts as both.
 */
static short ring_wait(struct obt_stream *stream, short events, uint64_t deadline)
{
	struct obt_shm *shm = stream->shm;
	short result = ready(shm, events);

	if (!result)
		result = spin_for(shm, events, deadline);
	while (!result) {
		sleep_once(stream, events, deadline);
		result = ready(shm, events);
		if (!result && ob_clock_ns() >= deadline)
			break;
	}
	return result;
}

static int shm_wait(struct obt_stream *stream, short events, uint64_t deadline)
{
	return obt_shm_on(stream) ? ring_wait(stream, events, deadline)
				  : obt_socket_ops.wait(stream, events, deadline);
}

static void shm_set_recv_timeout(struct obt_stream *stream, unsigned ms)
{
	stream->shm->recv_timeout_ms = ms;
	obt_socket_ops.set_recv_timeout(stream, ms);
}

bool obt_shm_unread(const struct obt_stream *stream)
{
	return obt_shm_on(stream) && obt_ring_unread(stream->shm->in.shared);
}

static bool shm_arm(const struct obt_stream *stream)
{
	if (!obt_shm_on(stream))
		return false;
	atomic_store(&stream->shm->in.shared->reader_asleep, OBT_ASLEEP_SOCKET);
	return obt_shm_unread(stream);
}

/* ---- moving bytes ---- */

/*
 * Turns the result of a ring operation into the stream's, with errno if the other side violated the
 * protocol.
 */
static ssize_t judged(struct obt_stream *stream, ssize_t n)
{
	if (ob_unlikely(n < 0)) {
		if (!atomic_exchange(&stream->shm->ended, true))
			ob_warn("shared memory: the peer has written impossible ring positions; "
				"the connection is closed");
		errno = EPROTO;
	}
	return n;
}

static ssize_t shm_send(struct obt_stream *stream, const struct iovec *iov, int n, bool block)
{
	struct obt_shm *shm = stream->shm;
	ssize_t done;

	if (ob_unlikely(!atomic_load_explicit(&shm->on, memory_order_acquire)))
		return shm->memfd >= 0 && !shm->server ? offer_send(stream, iov, n)
						       : obt_socket_ops.send(stream, iov, n, block);
	do {
		if (ob_unlikely(atomic_load_explicit(&shm->ended, memory_order_relaxed))) {
			errno = EPIPE;
			return -1;
		}
		done = obt_ring_write(&shm->out, iov, n, stream->fd);
	} while (done == 0 && block && ring_wait(stream, POLLOUT, OB_NEVER));
	if (done == 0) {
		errno = EAGAIN;
		return -1;
	}
	return judged(stream, done);
}

static ssize_t shm_recv(struct obt_stream *stream, void *data, size_t size, bool block)
{
	struct obt_shm *shm = stream->shm;
	uint64_t deadline = 0;
	ssize_t done;
	bool ended;

	if (ob_unlikely(!atomic_load_explicit(&shm->on, memory_order_acquire)))
		return shm->server && !shm->settled
			? expect_recv(stream, data, size, block)
			: obt_socket_ops.recv(stream, data, size, block);
	for (;;) {
		/* Read this first: what was written before the end is then in the ring. */
		ended = atomic_load(&shm->ended);
		done = obt_ring_read(&shm->in, data, size, stream->fd);
		if (ob_likely(done != 0))
			return judged(stream, done);
		if (ended)
			return 0;
		if (!block)
			break;
		if (!deadline)
			deadline = ob_clock_ns() +
				(shm->recv_timeout_ms ? shm->recv_timeout_ms : SLICE_MS) * OB_MS;
		if (!ring_wait(stream, POLLIN, deadline))
			break;
	}
	errno = EAGAIN;
	return -1;
}

const struct obt_ops obt_shm_ops = { .name = "shm",
	.send = shm_send,
	.recv = shm_recv,
	.close = shm_close,
	.wait = shm_wait,
	.pending = obt_shm_unread,
	.arm = shm_arm,
	.set_recv_timeout = shm_set_recv_timeout };
