/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/fuzz/fuzz_peer.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/terminal.h"
#include "tests/fuzz/fuzz_input.h"

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

uint64_t fuzz_number(void)
{
	unsigned kind = fuzz_take(4), bit = fuzz_take(64);

	if (kind < 2)
		return fuzz_take(256);
	return kind == 2 ? 1ull << bit : UINT64_MAX >> bit;
}

unsigned fuzz_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

void fuzz_pair(int type, int ret_fds[2])
{
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ret_fds) != 0 ||
		fcntl(ret_fds[1], F_SETFL, O_NONBLOCK) != 0)
		fail("a pair of sockets");
}

int fuzz_listen(struct sockaddr_in *ret_here)
{
	socklen_t length = sizeof *ret_here;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret_here = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)ret_here, sizeof *ret_here) || listen(fd, 8) ||
		getsockname(fd, (struct sockaddr *)ret_here, &length))
		fail("a listener");
	return fd;
}

int fuzz_connect(const struct sockaddr_in *here)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), n;
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	if (fd < 0 ||
		(connect(fd, (const struct sockaddr *)here, sizeof *here) != 0 &&
			errno != EINPROGRESS))
		fail("a connection");
	do
		n = poll(&pfd, 1, -1);
	while (n < 0 && errno == EINTR);
	if (pfd.revents != POLLOUT)
		fail("a connection");
	return fd;
}

void fuzz_reset(int *fd)
{
	const struct linger at_once = { .l_onoff = 1 };

	if (*fd < 0)
		return;
	setsockopt(*fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(*fd);
	*fd = -1;
}

int fuzz_descriptor(int *ret_other)
{
	int ends[2];

	*ret_other = -1;
	switch (fuzz_take(12)) {
	default:
		fuzz_pair(SOCK_STREAM, ends);
		*ret_other = ends[1];
		return ends[0];
	case 6:
		fuzz_pair(SOCK_DGRAM, ends);
		*ret_other = ends[1];
		return ends[0];
	case 7:
		return memfd_create("fuzz", MFD_CLOEXEC);
	case 8:
		if (pipe2(ends, O_CLOEXEC) != 0)
			return -1;
		close(ends[1]);
		return ends[0];
	case 9:
		return open("/dev/zero", O_RDWR | O_CLOEXEC);
	case 10:
		return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case 11:
		return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	}
}

static struct cmsghdr *fds_put(struct cmsghdr *c, const int *fds, unsigned n)
{
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	return (struct cmsghdr *)((char *)c + CMSG_SPACE(n * sizeof(int)));
}

void fuzz_send(int fd, const void *bytes, size_t size, const int *fds, unsigned n, bool twice)
{
	union {
		char bytes[2 * CMSG_SPACE(FUZZ_SENT_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)bytes, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	unsigned first = twice ? n / 2 : n;
	struct cmsghdr *next = &control.align;

	if (first)
		next = fds_put(next, fds, first);
	if (n > first)
		next = fds_put(next, fds + first, n - first);
	if (n) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = (size_t)((char *)next - control.bytes);
	}
	sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void fuzz_drain(int fd)
{
	char bytes[4096];

	while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

void fuzz_spoil(void *data, size_t size)
{
	for (unsigned n = fuzz_take(6); n; n--)
		fuzz_take_change(data, size, 256);
}

void fuzz_text(char *text, size_t size)
{
	size_t n = fuzz_take(32);

	if (fuzz_take(4) == 3)
		memset(text, (int)(1 + fuzz_take(255)), size);
	else
		fuzz_take_bytes(text, ob_min(n, size));
}

void fuzz_text_check(const char *text, size_t size)
{
	char copy[4096];
	size_t n = strnlen(text, size);

	if (n == size || n > sizeof copy)
		abort();
	memcpy(copy, text, n);
	if (ob_text_clean(copy, n) != n || memcmp(copy, text, n) != 0)
		abort();
}
