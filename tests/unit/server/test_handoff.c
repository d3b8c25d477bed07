/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Messages between the supervisor and its children, one of which may be compromised. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/handoff.h"
#include "tests/test.h"

static struct obs_handoff sent, got;
static int ends[2], file;

static void begin(void)
{
	CHECK_INT(obs_handoff_pair(ends), 0);
	CHECK_INT(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(file >= 0);
	memset(&sent, 0, sizeof sent);
}

static void end(void)
{
	close(ends[0]);
	close(ends[1]);
	close(file);
}

/* Sends any bytes, with more descriptors than a message has. */
static void send_raw(const void *data, size_t size)
{
	int fds[OBS_HANDOFF_FDS + 3];
	union {
		char bytes[CMSG_SPACE(sizeof fds)];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)data, size };
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header);

	for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
		fds[i] = file;
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof fds);
	memcpy(CMSG_DATA(cmsg), fds, sizeof fds);
	CHECK_INT(sendmsg(ends[1], &header, 0), (ssize_t)size);
}

/*
 * The descriptors that came with the message must not stay open: the harness counts them at the end
 * of the test.
 */
static void refused(size_t size, int result, int error)
{
	int fds[OBS_HANDOFF_FDS];

	send_raw(&sent, size);
	errno = 0;
	CHECK_INT(obs_handoff_recv(ends[0], &got, fds), result);
	CHECK_INT(errno, error);
	CHECK(fds[0] == -1 && fds[1] == -1 && fds[2] == -1);
}

TEST(a_message_comes_whole_and_with_its_descriptors)
{
	int fds[OBS_HANDOFF_FDS];

	begin();
	sent.type = OBS_HANDOFF_NEW;
	sent.size = OBS_HANDOFF_BODY;
	memset(sent.body, 7, sizeof sent.body);
	memset(sent.text, 'x', sizeof sent.text);
	CHECK_INT(
		obs_handoff_send(ends[1], &sent, (const int[OBS_HANDOFF_FDS]){ file, -1, -1 }), 0);
	CHECK_INT(obs_handoff_recv(ends[0], &got, fds), 1);
	CHECK(fds[0] >= 0 && fds[1] == -1);
	CHECK_INT(got.size, OBS_HANDOFF_BODY);
	CHECK_INT(memcmp(got.body, sent.body, sizeof sent.body), 0);
	CHECK_INT(strlen(got.text), sizeof got.text - 1);
	obs_handoff_close(fds);
	errno = 0;
	CHECK_INT(obs_handoff_recv(ends[0], &got, fds), -1);
	CHECK_INT(errno, EAGAIN);
	end();
}

TEST(what_is_no_message_leaves_no_descriptor)
{
	begin();
	refused(0, 0, 0);
	refused(1, -1, EPROTO);
	refused(offsetof(struct obs_handoff, body) - 1, -1, EPROTO);
	refused(offsetof(struct obs_handoff, body) + 1, -1, EPROTO);
	sent.size = OBS_HANDOFF_BODY + 1;
	refused(sizeof sent, -1, EPROTO);
	sent.size = UINT32_MAX;
	refused(sizeof sent, -1, EPROTO);
	end();
}

TEST(descriptors_beyond_those_of_a_message_are_not_taken)
{
	int fds[OBS_HANDOFF_FDS];

	begin();
	sent.size = 0;
	send_raw(&sent, offsetof(struct obs_handoff, body));
	CHECK_INT(obs_handoff_recv(ends[0], &got, fds), 1);
	CHECK(fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0);
	obs_handoff_close(fds);
	end(); /* the harness counts what is left open */
}

TEST(the_end_is_seen)
{
	int fds[OBS_HANDOFF_FDS];

	begin();
	close(ends[1]);
	ends[1] = -1;
	CHECK_INT(obs_handoff_recv(ends[0], &got, fds), 0);
	end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
