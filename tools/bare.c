/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/bare.h"

#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/opt.h"

#define MESSAGE_BYTES 64
#define SPIN_NS       1000000u /* far above any round trip on one machine */
/* size of the child's buffer, as large as a server's staging buffer */
#define CHUNK_BYTES   (1u << 20)

#define SHARED_BYTES (256u << 20) /* the largest copy that is measured */

enum { ECHO, TAKE, GIVE, TAKE_SERIES, GIVE_SERIES };

struct message {
	uint32_t what, n; /* n: exchanges of a series */
	uint64_t size;
	uint64_t piece; /* of a series: see obx_bare_series */
	char rest[MESSAGE_BYTES - 24];
};

_Static_assert(sizeof(struct message) == MESSAGE_BYTES, "the size that is quoted");

/* A counter in shared memory, incremented for each message. */
struct obx_bare_number {
	_Alignas(128) _Atomic uint32_t value;
	_Alignas(128) _Atomic uint32_t asleep; /* 1: the waiter sleeps */
};

struct obx_bare_memory {
	struct obx_bare_number asked, answered;
	_Alignas(128) struct message question;
	_Alignas(128) struct message answer;
	_Alignas(4096) char bulk[SHARED_BYTES];
};

/*
 * Spins for at most SPIN_NS: an end that keeps spinning while the other side is measured would take
 * a core from it.
 */
static bool receive_all(int fd, void *data, size_t size, bool spin)
{
	uint64_t until = spin ? ob_clock_ns() + SPIN_NS : 0;
	char *p = data;

	while (size) {
		ssize_t n = recv(fd, p, size, until && ob_clock_ns() < until ? MSG_DONTWAIT : 0);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		if (n < 0)
			continue;
		p += n;
		size -= (size_t)n;
	}
	return true;
}

static bool send_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = send(fd, p, size, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return false;
		if (n < 0)
			continue;
		p += n;
		size -= (size_t)n;
	}
	return true;
}

/* One way of an exchange, with a copy of each piece between `whole` and a buffer. */
static bool child_pieces(int fd, const struct message *m, char *whole, char *buffer, bool spin)
{
	bool ok = true;

	for (uint64_t at = 0; ok && at < m->size; at += m->piece) {
		size_t n = (size_t)ob_min(m->size - at, m->piece);

		if (m->what == TAKE_SERIES) {
			ok = receive_all(fd, buffer, n, spin);
			memcpy(whole + at, buffer, n);
		} else {
			memcpy(buffer, whole + at, n);
			ok = send_all(fd, buffer, n);
		}
	}
	return ok;
}

static bool child_way(int fd, const struct message *m, char *whole, char *buffer, bool spin)
{
	if (m->piece)
		return child_pieces(fd, m, whole, buffer, spin);
	return m->what == TAKE_SERIES ? receive_all(fd, whole, m->size, spin)
				      : send_all(fd, whole, m->size);
}

static bool child_series(int fd, const struct message *m, bool spin)
{
	char *whole = malloc(m->size), *buffer = malloc(m->piece + 1), one = 1;
	bool ok = whole && buffer;

	if (ok) {
		memset(whole, 1, m->size);
		memset(buffer, 1, m->piece);
	}
	for (uint32_t i = 0; ok && i < m->n; i++)
		ok = m->what == TAKE_SERIES
			? child_way(fd, m, whole, buffer, spin) && send_all(fd, &one, 1)
			: receive_all(fd, &one, 1, spin) && child_way(fd, m, whole, buffer, spin);
	free(buffer);
	free(whole);
	return ok;
}

static void child_main(int fd, bool spin)
{
	char *chunk = malloc(CHUNK_BYTES);
	struct message m;

	memset(chunk, 1, CHUNK_BYTES);
	while (receive_all(fd, &m, sizeof m, spin)) {
		uint64_t left = m.size;
		bool ok = true;

		if (m.what == TAKE_SERIES || m.what == GIVE_SERIES) {
			if (!child_series(fd, &m, spin))
				break;
			continue;
		}

		if (m.what == ECHO)
			ok = send_all(fd, &m, sizeof m);
		for (; ok && m.what != ECHO && left; left -= ob_min(left, (uint64_t)CHUNK_BYTES)) {
			size_t n = (size_t)ob_min(left, (uint64_t)CHUNK_BYTES);

			ok = m.what == TAKE ? receive_all(fd, chunk, n, false)
					    : send_all(fd, chunk, n);
		}
		if (ok && m.what == TAKE)
			ok = send_all(fd, chunk, 1);
		if (!ok)
			break;
	}
	_exit(0);
}

/* Two connected TCP sockets over loopback. */
static bool tcp_pair(int fds[2])
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof addr;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	bool ok;

	fds[0] = fds[1] = -1;
	ok = listener >= 0 && bind(listener, (struct sockaddr *)&addr, sizeof addr) == 0 &&
		listen(listener, 1) == 0 &&
		getsockname(listener, (struct sockaddr *)&addr, &length) == 0;
	if (ok) {
		fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ok = fds[0] >= 0 && connect(fds[0], (struct sockaddr *)&addr, length) == 0;
	}
	if (ok) {
		fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		ok = fds[1] >= 0;
	}
	for (int i = 0; ok && i < 2; i++)
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (listener >= 0)
		close(listener);
	return ok;
}

/* ---- shared memory ---- */

/* Spins for at most SPIN_NS, as the function for sockets does. */
static void number_await(struct obx_bare_number *number, uint32_t n, bool spin)
{
	uint64_t until = spin ? ob_clock_ns() + SPIN_NS : 0;

	while (atomic_load_explicit(&number->value, memory_order_acquire) != n) {
		ob_clock_relax();
		if (until && ob_clock_ns() < until)
			continue;
		atomic_store(&number->asleep, 1);
		syscall(SYS_futex, &number->value, FUTEX_WAIT, n - 1, NULL, NULL, 0);
		atomic_store(&number->asleep, 0);
	}
}

static void number_post(struct obx_bare_number *number, uint32_t n)
{
	atomic_store(&number->value, n);
	if (atomic_load(&number->asleep))
		syscall(SYS_futex, &number->value, FUTEX_WAKE, 1, NULL, NULL, 0);
}

_Noreturn static void memory_child(struct obx_bare_memory *memory, bool spin)
{
	struct message m;

	for (uint32_t n = 1;; n++) {
		number_await(&memory->asked, n, spin);
		m = memory->question;
		memory->answer = m;
		number_post(&memory->answered, n);
	}
}

static bool memory_open(struct obx_bare *bare, bool spin)
{
	void *p = mmap(NULL, sizeof *bare->memory, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	*bare = (struct obx_bare){ .fd = -1, .memory = p, .spin = spin };
	/* Touch the pages first: a session's memory has been written to before, too. */
	memset(bare->memory->bulk, 1, sizeof bare->memory->bulk);
	bare->child = fork();
	if (bare->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memory_child(bare->memory, spin);
	}
	return bare->child > 0;
}

static uint64_t memory_ping(struct obx_bare_memory *memory, bool spin)
{
	struct message m = { .what = ECHO };
	uint32_t n = atomic_load_explicit(&memory->asked.value, memory_order_relaxed) + 1;
	uint64_t began = ob_clock_ns();

	memory->question = m;
	number_post(&memory->asked, n);
	number_await(&memory->answered, n, spin);
	m = memory->answer;
	return ob_clock_ns() - began;
}

static uint64_t memory_copy(void *to, const void *from, size_t size)
{
	uint64_t began = ob_clock_ns();

	memcpy(to, from, ob_min(size, (size_t)SHARED_BYTES));
	return ob_clock_ns() - began;
}

/* ---- */

bool obx_bare_open(struct obx_bare *bare, const struct obt_url *url, bool spin)
{
	int fds[2] = { -1, -1 };

	if (url->shm && ob_opt_on(OB_OPT_SHM))
		return memory_open(bare, spin);
	if (url->scheme == OBT_UNIX ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0
				    : !tcp_pair(fds))
		return false;
	*bare = (struct obx_bare){ .fd = fds[0], .spin = spin };
	bare->child = fork();
	if (bare->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		child_main(fds[1], spin);
	}
	close(fds[1]);
	return bare->child > 0;
}

void obx_bare_close(struct obx_bare *bare)
{
	if (bare->child > 0) {
		kill(bare->child, SIGKILL);
		waitpid(bare->child, NULL, 0);
	}
	if (bare->memory)
		munmap(bare->memory, sizeof *bare->memory);
	else
		close(bare->fd);
}

uint64_t obx_bare_ping(struct obx_bare *bare)
{
	struct message m = { .what = ECHO };
	uint64_t began = ob_clock_ns();

	if (bare->memory)
		return memory_ping(bare->memory, bare->spin);
	if (!send_all(bare->fd, &m, sizeof m) || !receive_all(bare->fd, &m, sizeof m, bare->spin))
		abort();
	return ob_clock_ns() - began;
}

uint64_t obx_bare_send(struct obx_bare *bare, const void *data, size_t size)
{
	struct message m = { .what = TAKE, .size = size };
	uint64_t began = ob_clock_ns();
	char done;

	if (bare->memory)
		return memory_copy(bare->memory->bulk, data, size);
	if (!send_all(bare->fd, &m, sizeof m) || !send_all(bare->fd, data, size) ||
		!receive_all(bare->fd, &done, 1, false))
		abort();
	return ob_clock_ns() - began;
}

uint64_t obx_bare_receive(struct obx_bare *bare, void *data, size_t size)
{
	struct message m = { .what = GIVE, .size = size };
	uint64_t began = ob_clock_ns();

	if (bare->memory)
		return memory_copy(data, bare->memory->bulk, size);
	if (!send_all(bare->fd, &m, sizeof m) || !receive_all(bare->fd, data, size, false))
		abort();
	return ob_clock_ns() - began;
}

void obx_bare_series(struct obx_bare *bare, bool down, size_t size, uint32_t n, size_t piece)
{
	struct message m = {
		.what = down ? GIVE_SERIES : TAKE_SERIES, .n = n, .size = size, .piece = piece
	};

	if (bare->memory || !send_all(bare->fd, &m, sizeof m))
		abort();
}

uint64_t obx_bare_next(struct obx_bare *bare, bool down, void *data, size_t size)
{
	uint64_t began = ob_clock_ns();
	char one = 1;
	bool ok;

	if (down)
		ok = send_all(bare->fd, &one, 1) && receive_all(bare->fd, data, size, bare->spin);
	else
		ok = send_all(bare->fd, data, size) && receive_all(bare->fd, &one, 1, bare->spin);
	if (!ok)
		abort();
	return ob_clock_ns() - began;
}
