/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * liboutboard-buffers.so: read, write and their relatives with managed or mapped memory. The pages of
 * such memory that are on the device are protected, and a system call fails with EFAULT there, while
 * an access of the program is served by libcuda.so.1. This library, which `outboard run` preloads,
 * replaces the functions of the C library: if the buffer lies in such memory, the call gets another
 * buffer, and the bytes are copied by this thread, whose accesses are served.
 *
 * libcuda.so.1 tells which pages these are (outboard_buffers_mark). A program that has none pays one
 * test for a call. It is a library of its own, because a program that links libcuda.so.1 must not get
 * these functions from it. OUTBOARD_BUFFERS=0 leaves it out. It needs libc only. Any thread;
 * async-signal-safe where the replaced function is; cancellation happens in that function.
 */
#undef _FILE_OFFSET_BITS /* which would give pread the name pread64 */
#include "client-shim/files/buffers.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the pages ---- */

#define PAGE_BITS  12u
#define LEAF_BITS  30u /* addresses of one leaf */
#define ADDR_BITS  47u
#define LEAF_WORDS (1u << (LEAF_BITS - PAGE_BITS - 6))

struct leaf {
	_Atomic uint64_t words[LEAF_WORDS]; /* one bit for each page */
};

/* By address. A leaf is made when it is needed and never freed. */
static struct leaf *_Atomic leaves[1u << (ADDR_BITS - LEAF_BITS)];
_Atomic size_t buffers_marks;

static bool marked(uint64_t addr)
{
	const struct leaf *leaf;
	uint64_t page;

	if (addr >> ADDR_BITS)
		return false;
	leaf = atomic_load_explicit(&leaves[addr >> LEAF_BITS], memory_order_acquire);
	page = addr >> PAGE_BITS;
	return leaf && leaf->words[page / 64 % LEAF_WORDS] >> page % 64 & 1;
}

/* No ordinary memory lies between two marked ranges of one buffer. */
bool buffers_within(const void *p, size_t size)
{
	return size && (marked((uintptr_t)p) || marked((uintptr_t)p + (size - 1)));
}

static struct leaf *leaf_get(uint64_t addr)
{
	struct leaf *_Atomic *at = &leaves[addr >> LEAF_BITS];
	struct leaf *leaf = atomic_load_explicit(at, memory_order_acquire);

	if (leaf)
		return leaf;
	leaf = mmap(NULL, sizeof *leaf, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (leaf == MAP_FAILED)
		return NULL;
	atomic_store_explicit(at, leaf, memory_order_release);
	return leaf;
}

/*
 * The range, in whole pages, becomes or ceases to be memory whose pages may be protected. Ranges do not
 * overlap. The caller holds a lock. Without memory for the map the pages count as ordinary ones.
 */
EXPORT void outboard_buffers_mark(uint64_t base, uint64_t size, bool on);
EXPORT void outboard_buffers_mark(uint64_t base, uint64_t size, bool on)
{
	uint64_t page = base >> PAGE_BITS, end = (base + size) >> PAGE_BITS, next;

	for (; page < end && !(page >> (ADDR_BITS - PAGE_BITS)); page = next) {
		struct leaf *leaf = leaf_get(page << PAGE_BITS);
		uint64_t bits = UINT64_MAX << page % 64;

		next = (page | 63) + 1;
		if (next > end)
			bits &= UINT64_MAX >> (next - end);
		if (leaf && on)
			atomic_fetch_or(&leaf->words[page / 64 % LEAF_WORDS], bits);
		else if (leaf)
			atomic_fetch_and(&leaf->words[page / 64 % LEAF_WORDS], ~bits);
	}
	if (on)
		atomic_fetch_add(&buffers_marks, 1);
	else
		atomic_fetch_sub(&buffers_marks, 1);
}

/* ---- the functions that are replaced ---- */

/* Not found: a function that fails. */
static ssize_t missing(void)
{
	errno = ENOSYS;
	return -1;
}

void *buffers_next(_Atomic uintptr_t *next, const char *name)
{
	uintptr_t found = atomic_load_explicit(next, memory_order_relaxed);

	if (UNLIKELY(!found)) {
		found = (uintptr_t)dlsym(RTLD_NEXT, name);
		if (!found)
			found = (uintptr_t)missing;
		atomic_store_explicit(next, found, memory_order_relaxed);
	}
	return (void *)found; /* NOLINT(performance-no-int-to-ptr) */
}

/* ---- one buffer ---- */

/* A call with everything but its buffer. */
struct call {
	/* done: bytes transferred by earlier pieces */
	ssize_t (*run)(const struct call *call, void *buf, size_t size, size_t done);
	bool out; /* the buffer is read */
	int fd, flags;
	off_t at;
	const struct sockaddr *to;
	struct sockaddr *from;
	socklen_t *from_size, to_size;
};

void bounce_free(void *user)
{
	const struct bounce *bounce = user;

	if (bounce->locked)
		funlockfile(bounce->locked);
	munmap(bounce->bytes, bounce->size);
}

bool bounce_make(struct bounce *ret, size_t size, FILE *locked)
{
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*ret = (struct bounce){ bytes, size, locked };
	if (bytes == MAP_FAILED)
		return false;
	if (locked)
		flockfile(locked);
	return true;
}

/* Whether bytes that are written in several calls arrive as those of one call do. */
static bool is_stream(int fd)
{
	socklen_t size = sizeof(int);
	int type = 0;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 ? type == SOCK_STREAM
								      : errno == ENOTSOCK;
}

/*
 * Whether a call may be several ones, of which the program sees the sum. A call that reads must not
 * wait for more than has arrived; one that writes waits until all is written, or writes less. In one
 * piece, a program that writes a large buffer little by little would pay for all of it each time.
 */
static bool can_split(int fd, size_t size, bool out)
{
	int saved = errno;
	bool can = size <= BUFFERS_PIECE || lseek(fd, 0, SEEK_CUR) >= 0 || (out && is_stream(fd));

	errno = saved;
	return can;
}

static ssize_t transfer(
	const struct call *call, char *buf, size_t size, bool pieces, const struct bounce *bounce)
{
	size_t done = 0, want;
	ssize_t got;

	size = size < BUFFERS_MOST ? size : BUFFERS_MOST;
	do {
		want = size - done < bounce->size ? size - done : bounce->size;
		/* With MSG_TRUNC a stream drops the bytes, and the buffer stays as it is. */
		if (call->out || call->flags & MSG_TRUNC)
			memcpy(bounce->bytes, buf + done, want);
		got = call->run(call, bounce->bytes, want, done);
		/* With MSG_TRUNC it may be more than there was room for. */
		if (got > 0 && !call->out)
			memcpy(buf + done, bounce->bytes, (size_t)got < want ? (size_t)got : want);
		if (got > 0)
			done += (size_t)got;
	} while (pieces && got > 0 && (size_t)got == want && done < size);
	return done ? (ssize_t)done : got;
}

/* Executes the call with a buffer of ours. pieces: of can_split. */
static ssize_t carry(const struct call *call, void *buf, size_t size, bool pieces)
{
	size_t most = pieces ? BUFFERS_PIECE : BUFFERS_MOST;
	struct bounce bounce;
	ssize_t result;

	if (!bounce_make(&bounce, size < most ? size : most, NULL))
		return call->run(call, buf, size, 0);
	pthread_cleanup_push(bounce_free, &bounce);
	result = transfer(call, buf, size, pieces, &bounce);
	pthread_cleanup_pop(1);
	return result;
}

/* clang-format off */
NEXT(ssize_t, read, (int fd, void *buf, size_t size))
NEXT(ssize_t, write, (int fd, const void *buf, size_t size))
NEXT(ssize_t, pread, (int fd, void *buf, size_t size, off_t at))
NEXT(ssize_t, pread64, (int fd, void *buf, size_t size, off64_t at))
NEXT(ssize_t, pwrite, (int fd, const void *buf, size_t size, off_t at))
NEXT(ssize_t, pwrite64, (int fd, const void *buf, size_t size, off64_t at))
NEXT(ssize_t, recv, (int fd, void *buf, size_t size, int flags))
NEXT(ssize_t, send, (int fd, const void *buf, size_t size, int flags))
NEXT(ssize_t, recvfrom, (int fd, void *buf, size_t size, int flags, struct sockaddr *from,
	socklen_t *from_size))
NEXT(ssize_t, sendto, (int fd, const void *buf, size_t size, int flags,
	const struct sockaddr *to, socklen_t to_size))
NEXT(ssize_t, __read_chk, (int fd, void *buf, size_t size, size_t room))
NEXT(ssize_t, __pread_chk, (int fd, void *buf, size_t size, off_t at, size_t room))
NEXT(ssize_t, __pread64_chk, (int fd, void *buf, size_t size, off64_t at, size_t room))
NEXT(ssize_t, __recv_chk, (int fd, void *buf, size_t size, size_t room, int flags))
NEXT(ssize_t, __recvfrom_chk, (int fd, void *buf, size_t size, size_t room, int flags,
	struct sockaddr *from, socklen_t *from_size))
/* clang-format on */

static ssize_t run_read(const struct call *call, void *buf, size_t size, size_t done)
{
	(void)done;
	return next_read()(call->fd, buf, size);
}

static ssize_t run_write(const struct call *call, void *buf, size_t size, size_t done)
{
	(void)done;
	return next_write()(call->fd, buf, size);
}

static ssize_t run_pread(const struct call *call, void *buf, size_t size, size_t done)
{
	return next_pread64()(call->fd, buf, size, call->at + (off_t)done);
}

static ssize_t run_pwrite(const struct call *call, void *buf, size_t size, size_t done)
{
	return next_pwrite64()(call->fd, buf, size, call->at + (off_t)done);
}

static ssize_t run_recv(const struct call *call, void *buf, size_t size, size_t done)
{
	(void)done;
	return next_recvfrom()(call->fd, buf, size, call->flags, call->from, call->from_size);
}

static ssize_t run_send(const struct call *call, void *buf, size_t size, size_t done)
{
	(void)done;
	return next_sendto()(call->fd, buf, size, call->flags, call->to, call->to_size);
}

static ssize_t carry_read(int fd, void *buf, size_t size)
{
	return carry(
		&(struct call){ .run = run_read, .fd = fd }, buf, size, can_split(fd, size, false));
}

static ssize_t carry_pread(int fd, void *buf, size_t size, off_t at)
{
	return carry(&(struct call){ .run = run_pread, .fd = fd, .at = at }, buf, size, true);
}

static ssize_t carry_out(const struct call *call, const void *buf, size_t size, bool pieces)
{
	return carry(
		call, (void *)(uintptr_t)buf, size, pieces); /* NOLINT(performance-no-int-to-ptr) */
}

static ssize_t carry_pwrite(int fd, const void *buf, size_t size, off_t at)
{
	return carry_out(&(struct call){ .run = run_pwrite, .out = true, .fd = fd, .at = at }, buf,
		size, true);
}

static ssize_t carry_recv(
	int fd, void *buf, size_t size, int flags, struct sockaddr *from, socklen_t *from_size)
{
	return carry(&(struct call){ .run = run_recv,
			     .fd = fd,
			     .flags = flags,
			     .from = from,
			     .from_size = from_size },
		buf, size, false);
}

static ssize_t carry_send(int fd, const void *buf, size_t size, int flags,
	const struct sockaddr *to, socklen_t to_size)
{
	return carry_out(&(struct call){ .run = run_send,
				 .out = true,
				 .fd = fd,
				 .flags = flags,
				 .to = to,
				 .to_size = to_size },
		buf, size, !(flags & MSG_OOB) && can_split(fd, size, true));
}

ssize_t read(int fd, void *buf, size_t size)
{
	return concerns(buf, size) ? carry_read(fd, buf, size) : next_read()(fd, buf, size);
}

ssize_t write(int fd, const void *buf, size_t size)
{
	return concerns(buf, size)
		? carry_out(&(struct call){ .run = run_write, .out = true, .fd = fd }, buf, size,
			  can_split(fd, size, true))
		: next_write()(fd, buf, size);
}

ssize_t pread(int fd, void *buf, size_t size, off_t at)
{
	return concerns(buf, size) ? carry_pread(fd, buf, size, at)
				   : next_pread()(fd, buf, size, at);
}

ssize_t pread64(int fd, void *buf, size_t size, off64_t at)
{
	return concerns(buf, size) ? carry_pread(fd, buf, size, at)
				   : next_pread64()(fd, buf, size, at);
}

ssize_t pwrite(int fd, const void *buf, size_t size, off_t at)
{
	return concerns(buf, size) ? carry_pwrite(fd, buf, size, at)
				   : next_pwrite()(fd, buf, size, at);
}

ssize_t pwrite64(int fd, const void *buf, size_t size, off64_t at)
{
	return concerns(buf, size) ? carry_pwrite(fd, buf, size, at)
				   : next_pwrite64()(fd, buf, size, at);
}

ssize_t recv(int fd, void *buf, size_t size, int flags)
{
	return concerns(buf, size) ? carry_recv(fd, buf, size, flags, NULL, NULL)
				   : next_recv()(fd, buf, size, flags);
}

ssize_t send(int fd, const void *buf, size_t size, int flags)
{
	return concerns(buf, size) ? carry_send(fd, buf, size, flags, NULL, 0)
				   : next_send()(fd, buf, size, flags);
}

ssize_t recvfrom(
	int fd, void *buf, size_t size, int flags, struct sockaddr *from, socklen_t *from_size)
{
	return concerns(buf, size) ? carry_recv(fd, buf, size, flags, from, from_size)
				   : next_recvfrom()(fd, buf, size, flags, from, from_size);
}

ssize_t sendto(int fd, const void *buf, size_t size, int flags, const struct sockaddr *to,
	socklen_t to_size)
{
	return concerns(buf, size) ? carry_send(fd, buf, size, flags, to, to_size)
				   : next_sendto()(fd, buf, size, flags, to, to_size);
}

/* What programs call that are built with _FORTIFY_SOURCE. The C library ends them if size > room. */
ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
	return size <= room && concerns(buf, size) ? carry_read(fd, buf, size)
						   : next___read_chk()(fd, buf, size, room);
}

ssize_t __pread_chk(int fd, void *buf, size_t size, off_t at, size_t room)
{
	return size <= room && concerns(buf, size) ? carry_pread(fd, buf, size, at)
						   : next___pread_chk()(fd, buf, size, at, room);
}

ssize_t __pread64_chk(int fd, void *buf, size_t size, off64_t at, size_t room)
{
	return size <= room && concerns(buf, size) ? carry_pread(fd, buf, size, at)
						   : next___pread64_chk()(fd, buf, size, at, room);
}

ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags)
{
	return size <= room && concerns(buf, size) ? carry_recv(fd, buf, size, flags, NULL, NULL)
						   : next___recv_chk()(fd, buf, size, room, flags);
}

ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
	struct sockaddr *from, socklen_t *from_size)
{
	return size <= room && concerns(buf, size)
		? carry_recv(fd, buf, size, flags, from, from_size)
		: next___recvfrom_chk()(fd, buf, size, room, flags, from, from_size);
}
