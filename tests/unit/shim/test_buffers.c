/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* System calls whose buffers are marked: what one call of the system does with sizes and flags. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client-shim/files/buffers.h"
#include "tests/test.h"

#define LARGE      ((size_t)1 << 30)
#define ENORMOUS   ((size_t)3 << 30)
#define FAULTS_MAX 20000 /* pages: those of a few pieces; LARGE has 262144 */

/* For libcuda.so.1. */
void outboard_buffers_mark(uint64_t base, uint64_t size, bool on);

static char *marked_new(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	outboard_buffers_mark((uintptr_t)p, size, true);
	return p;
}

static void marked_end(char *p, size_t size)
{
	outboard_buffers_mark((uintptr_t)p, size, false);
	munmap(p, size);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* A call that can write only a little does not copy the whole buffer. */
TEST(a_short_write_does_not_copy_all)
{
	char *p = marked_new(LARGE);
	int fds[2];
	long before;
	ssize_t got;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
	before = faults();
	got = write(fds[0], p, LARGE);
	CHECK(got > 0 && (size_t)got < LARGE);
	got = send(fds[0], p, LARGE, 0);
	CHECK(got == -1 && errno == EAGAIN);
	CHECK(faults() - before < FAULTS_MAX);
	close(fds[0]);
	close(fds[1]);
	marked_end(p, LARGE);
}

/* A message is never split. */
TEST(a_message_is_not_split)
{
	char *p = marked_new(LARGE), byte;
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds) == 0);
	CHECK(write(fds[0], p, 2 * BUFFERS_PIECE) == -1 && errno == EMSGSIZE);
	CHECK(recv(fds[1], &byte, 1, 0) == -1 && errno == EAGAIN);
	close(fds[0]);
	close(fds[1]);
	marked_end(p, LARGE);
}

/* Sizes above what the system transfers at once. */
TEST(more_than_the_system_transfers)
{
	char *p = marked_new(ENORMOUS);
	struct iovec iov[2] = { { p, ENORMOUS }, { p, 8 } };
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	CHECK(write(fds[0], "abcdef", 6) == 6);
	CHECK(recv(fds[1], p, ENORMOUS, MSG_PEEK) == 6 && memcmp(p, "abcdef", 6) == 0);
	CHECK(read(fds[1], p, 3) == 3 && readv(fds[1], iov, 2) == 3 && memcmp(p, "def", 3) == 0);
	CHECK(write(fds[0], "ghi", 3) == 3);
	CHECK(recvmsg(fds[1], &message, 0) == 3 && memcmp(p, "ghi", 3) == 0);
	CHECK(message.msg_iov == iov && message.msg_iovlen == 2);
	iov[0].iov_len = SIZE_MAX;
	CHECK(readv(fds[1], iov, 2) == -1 && errno == EINVAL);
	close(fds[0]);
	close(fds[1]);
	marked_end(p, ENORMOUS);
}

/* The bytes of a datagram that is too long are lost; those in the buffer are right. */
TEST(a_truncated_datagram)
{
	char *p = marked_new(BUFFERS_PIECE);
	int fds[2];

	memset(p, 'x', 8);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
	CHECK(send(fds[0], "abcdef", 6, 0) == 6);
	CHECK(recv(fds[1], p, 4, MSG_TRUNC) == 6 && memcmp(p, "abcdxxxx", 8) == 0);
	close(fds[0]);
	close(fds[1]);
	marked_end(p, BUFFERS_PIECE);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
