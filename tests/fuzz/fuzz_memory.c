/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The server's side of a stream through shared memory. The client passes what the input chooses:
 * memory of any size with any seals, other kinds of descriptors, several of them, with or after any
 * byte. Afterwards it writes into the memory, its counters first, truncates it if it can, and sends
 * on the socket. No signal may occur, no byte outside the memory may be accessed, and no descriptor
 * may stay open.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"
#include "transport/shm_inside.h"

#define STEPS_MAX 64u

static uint64_t a_number(void)
{
	uint64_t n = 0;

	for (unsigned i = fuzz_take(9); i; i--)
		n = n << 8 | fuzz_take(256);
	return n;
}

/* Makes the descriptor that the client sends as memory. */
static int descriptor_make(void)
{
	static const int seals[] = { F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
		F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE, 0 };
	static const off_t sizes[] = { OBT_SHM_BYTES, OBT_SHM_BYTES, OBT_SHM_BYTES,
		OBT_SHM_BYTES - 1, 0, 4096, 1ll << 40 };
	unsigned kind = fuzz_take(8);
	int fd, ends[2];

	if (kind == 7)
		return open(fuzz_take(2) ? "/dev/zero" : "/", O_RDONLY | O_CLOEXEC);
	if (kind == 6 && pipe2(ends, O_CLOEXEC) == 0) {
		close(ends[1]);
		return ends[0];
	}
	fd = memfd_create("fuzz", MFD_CLOEXEC | (fuzz_take(8) == 7 ? 0u : MFD_ALLOW_SEALING));
	if (fd >= 0 && ftruncate(fd, sizes[fuzz_take(ob_count(sizes))]) == 0)
		fcntl(fd, F_ADD_SEALS, seals[fuzz_take(ob_count(seals))]);
	return fd;
}

static void client_send(int fd, const int *fds, int n)
{
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	uint8_t bytes[64];
	struct iovec iov = { bytes, 1u + fuzz_take(sizeof bytes) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	fuzz_take_bytes(bytes, iov.iov_len);
	if (n) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)n * sizeof(int));
	}
	sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void server_reads(struct obt_stream *stream)
{
	uint8_t bytes[4096];

	stream->ops->recv(stream, bytes, 1u + fuzz_take(255) * 16u, false);
}

static void server_writes(struct obt_stream *stream)
{
	static uint8_t bytes[65536];
	struct iovec iov[2] = { { .iov_base = bytes }, { .iov_base = bytes + 8 } };

	iov[0].iov_len = fuzz_take(255) * 64u;
	iov[1].iov_len = 1u + fuzz_take(255);
	stream->ops->send(stream, iov, 2, false);
}

static void client_step(int fd, int memory, uint8_t *map)
{
	uint64_t value;
	size_t at;

	switch (fuzz_take(6)) {
	case 0:
		client_send(fd, NULL, 0);
		break;
	case 1:
		value = (uint64_t)ftruncate(memory, (off_t)fuzz_take(3) * 4096);
		(void)value;
		break;
	case 2: /* its counters */
		value = a_number();
		at = fuzz_take(8) * 128u;
		at += fuzz_take(2) * 8u;
		if (map)
			memcpy(map + at, &value, sizeof value);
		break;
	case 3:
		at = a_number() % (OBT_SHM_BYTES - 256);
		value = fuzz_take(256);
		if (map)
			memset(map + at, (int)value, 256);
		break;
	case 4: /* as a correct client does */
		value = fuzz_take(255) * 16u;
		if (map)
			memcpy(map, &value, sizeof value);
		break;
	default:
		shutdown(fd, SHUT_WR);
		break;
	}
}

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned before;
	struct obt_stream stream = { .fd = -1 };
	struct ob_cause cause = { .code = OB_ERR_NONE };
	uint8_t *map = MAP_FAILED;
	int ends[2], fds[4], n;

	fuzz_input_start(data, size);
	ob_log_set_level(OB_LOG_ERROR);
	before = descriptors();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return 0;
	obt_stream_adopt(&stream, ends[0]);
	obt_shm_expect(&stream);
	n = (int)fuzz_take(8) == 7 ? (int)fuzz_take(5) : 1;
	for (int i = 0; i < n; i++)
		fds[i] = descriptor_make();
	client_send(ends[1], fds, n);
	if (fuzz_take(4) == 3)
		client_send(ends[1], fds, n);
	server_reads(&stream);
	if (fuzz_take(4) == 3)
		server_reads(&stream);
	if (n)
		map = mmap(NULL, OBT_SHM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	if (!obt_shm_take(&stream, fuzz_take(8) == 7 ? fuzz_take(4) : OBT_SHM_VERSION, &cause)) {
		bool on = obt_shm_taken(&stream);

		obt_shm_settle(&stream, obt_shm_taken(&stream));
		for (unsigned i = 0; i < STEPS_MAX && !fuzz_used_up(); i++) {
			/*
			 * This program would fault beyond the end of memory that is too short:
			 * write only to memory that the server accepted.
			 */
			client_step(ends[1], n ? fds[0] : -1, on && map != MAP_FAILED ? map : NULL);
			if (fuzz_take(2))
				server_reads(&stream);
			else
				server_writes(&stream);
			obt_stream_arm(&stream);
			obt_shm_unread(&stream);
		}
	} else if (!cause.text[0]) {
		abort(); /* a refusal must have a reason */
	}
	obt_stream_close(&stream);
	if (map != MAP_FAILED)
		munmap(map, OBT_SHM_BYTES);
	for (int i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	close(ends[1]);
	if (descriptors() != before)
		abort();
	return 0;
}
