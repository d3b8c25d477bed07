/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/handoff.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int obs_handoff_pair(int ret_fds[2])
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return -1;
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) {
		close(fds[0]);
		close(fds[1]);
		return -1;
	}
	ret_fds[0] = fds[0];
	ret_fds[1] = fds[1];
	return 0;
}

int obs_handoff_send(int channel, const struct obs_handoff *message, int fd)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)message, .iov_len = sizeof *message };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *cmsg;

		header.msg_control = control.bytes;
		header.msg_controllen = sizeof control.bytes;
		cmsg = CMSG_FIRSTHDR(&header);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof fd);
	}
	do
		n = sendmsg(channel, &header, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof *message ? 0 : -1;
}

int obs_handoff_recv(int channel, struct obs_handoff *ret, int *ret_fd)
{
	struct iovec iov = { .iov_base = ret, .iov_len = sizeof *ret };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes };
	int fd = -1;
	ssize_t n;

	do
		n = recvmsg(channel, &header, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n == 0 || errno == ECONNRESET ? 0 : -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(&fd, CMSG_DATA(c), sizeof fd);
	if (n != (ssize_t)sizeof *ret) {
		if (fd >= 0)
			close(fd);
		errno = EPROTO;
		return -1;
	}
	ret->text[sizeof ret->text - 1] = '\0';
	*ret_fd = fd;
	return 1;
}
