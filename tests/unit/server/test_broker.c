/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What sessions export to one another: who gets it, who does not, and what requests may contain. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/supervisor/broker.h"
#include "tests/test.h"

static struct obs_broker broker;
static const struct obs_identity alice = { .who = "token 01 alice", .proved = true },
				 bob = { .who = "token 02 bob", .proved = true },
				 pretender = { .who = "token 01 alice" };

enum { A = 1, FRIEND, B }; /* sessions: two of alice, one of bob */

static int memory_file(void)
{
	int fd = memfd_create("exported", MFD_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

/* A list of this many bytes, with these seals. */
static int list_file(off_t size, int seals)
{
	int fd = memfd_create("list", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0);
	CHECK_INT(ftruncate(fd, size), 0);
	CHECK_INT(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

#define SEALED (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static uint32_t request(
	uint64_t session, const struct obs_identity *who, struct obs_ipc *ipc, int fd, int *ret_fd)
{
	int none;

	CHECK(obs_broker_request(&broker, session, who, ipc, &fd, ret_fd ? ret_fd : &none));
	if (fd >= 0)
		close(fd); /* not kept */
	return ipc->status;
}

static struct obs_ipc put(uint64_t session, const struct obs_identity *who, uint32_t kind, int fd)
{
	struct obs_ipc ipc = { .op = OBS_IPC_PUT, .kind = kind, .device = 3, .size = 4096 };

	memset(ipc.data, 0x5a, sizeof ipc.data);
	CHECK_INT(request(session, who, &ipc, fd, NULL), OBS_IPC_OK);
	return ipc;
}

static uint32_t get(uint64_t session, const struct obs_identity *who, uint32_t kind,
	const uint64_t id[2], struct obs_ipc *ret, int *ret_fd)
{
	*ret = (struct obs_ipc){ .op = OBS_IPC_GET, .kind = kind, .id = { id[0], id[1] } };
	return request(session, who, ret, -1, ret_fd);
}

TEST(found_by_its_tenant)
{
	int fd = memory_file(), got = -1;
	struct obs_ipc put_ipc = put(A, &alice, OBS_IPC_MEMORY, fd), ipc;

	CHECK(put_ipc.id[0] | put_ipc.id[1]);
	CHECK_INT(get(FRIEND, &alice, OBS_IPC_MEMORY, put_ipc.id, &ipc, &got), OBS_IPC_OK);
	CHECK_INT(got, fd);
	CHECK_INT(ipc.device, 3);
	CHECK_INT(ipc.size, 4096);
	CHECK_INT(ipc.own, 0);
	CHECK_INT(ipc.data[63], 0x5a);
	CHECK_INT(get(A, &alice, OBS_IPC_MEMORY, put_ipc.id, &ipc, &got), OBS_IPC_OK);
	CHECK_INT(ipc.own, 1);
	obs_broker_forget(&broker, A);
	CHECK_INT(fcntl(fd, F_GETFD), -1); /* the broker has closed it */
	CHECK_INT(get(FRIEND, &alice, OBS_IPC_MEMORY, put_ipc.id, &ipc, &got), OBS_IPC_NONE);
	CHECK_INT(broker.n, 0);
}

/* Nobody else learns even that it exists: the answer is that to a wrong id. */
TEST(hidden_from_others)
{
	struct obs_ipc event = put(A, &alice, OBS_IPC_EVENT, -1), theirs, invented;
	const uint64_t wrong[2] = { event.id[0] ^ 1, event.id[1] };
	int got = -1;

	CHECK_INT(get(B, &bob, OBS_IPC_EVENT, event.id, &theirs, &got), OBS_IPC_NONE);
	CHECK_INT(get(B, &bob, OBS_IPC_EVENT, wrong, &invented, &got), OBS_IPC_NONE);
	invented.id[0] = theirs.id[0];
	CHECK(memcmp(&theirs, &invented, sizeof theirs) == 0);
	CHECK_INT(get(B, &pretender, OBS_IPC_EVENT, event.id, &theirs, &got), OBS_IPC_NONE);
	CHECK_INT(get(FRIEND, &alice, OBS_IPC_EVENT, wrong, &invented, &got), OBS_IPC_NONE);
	CHECK_INT(get(FRIEND, &alice, OBS_IPC_POOL, event.id, &invented, &got), OBS_IPC_NONE);
	CHECK_INT(got, -1);
	obs_broker_forget(&broker, A);
}

/* Only its session takes an object back. */
TEST(taken_back)
{
	struct obs_ipc pool = put(A, &alice, OBS_IPC_POOL, -1), ipc;
	struct obs_ipc drop = { .op = OBS_IPC_DROP, .id = { pool.id[0], pool.id[1] } };
	int fd = -1, got = -1;

	CHECK(!obs_broker_request(&broker, FRIEND, &alice, &drop, &fd, &got));
	CHECK(!obs_broker_request(&broker, B, &bob, &drop, &fd, &got));
	CHECK_INT(get(FRIEND, &alice, OBS_IPC_POOL, pool.id, &ipc, &got), OBS_IPC_OK);
	CHECK(!obs_broker_request(&broker, A, &alice, &drop, &fd, &got));
	CHECK_INT(get(FRIEND, &alice, OBS_IPC_POOL, pool.id, &ipc, &got), OBS_IPC_NONE);
	CHECK(!obs_broker_request(&broker, A, &alice, &drop, &fd, &got));
	CHECK_INT(broker.n, 0);
}

static uint32_t put_status(uint32_t kind, uint64_t size, int fd)
{
	struct obs_ipc ipc = { .op = OBS_IPC_PUT, .kind = kind, .size = size };

	return request(A, &alice, &ipc, fd, NULL);
}

TEST(malformed)
{
	struct obs_ipc ipc = { .op = 77 };
	int pair[2];

	CHECK_INT(request(A, &alice, &ipc, memory_file(), NULL), OBS_IPC_REFUSED);
	CHECK_INT(put_status(0, 4096, memory_file()), OBS_IPC_REFUSED);
	CHECK_INT(put_status(OBS_IPC_KINDS, 4096, memory_file()), OBS_IPC_REFUSED);
	CHECK_INT(put_status(UINT32_MAX, 4096, -1), OBS_IPC_REFUSED);
	CHECK_INT(put_status(OBS_IPC_MEMORY, 4096, -1), OBS_IPC_REFUSED);
	CHECK_INT(put_status(OBS_IPC_MEMORY, 0, memory_file()), OBS_IPC_REFUSED);
	CHECK_INT(put_status(OBS_IPC_RANGE, 4096, -1), OBS_IPC_REFUSED);
	CHECK_INT(put_status(OBS_IPC_POOL, 0, memory_file()), OBS_IPC_REFUSED);
	/* Closing a socket, a pipe or a folder could block, or keep something else alive. */
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	CHECK_INT(put_status(OBS_IPC_MEMORY, 4096, pair[0]), OBS_IPC_REFUSED);
	CHECK_INT(put_status(OBS_IPC_EVENT, 0, pair[1]), OBS_IPC_REFUSED);
	CHECK_INT(pipe2(pair, O_CLOEXEC), 0);
	CHECK_INT(put_status(OBS_IPC_MEMORY, 4096, pair[0]), OBS_IPC_REFUSED);
	CHECK_INT(put_status(OBS_IPC_RANGE, 4096, pair[1]), OBS_IPC_REFUSED);
	CHECK_INT(
		put_status(OBS_IPC_MEMORY, 4096, open("/", O_RDONLY | O_CLOEXEC)), OBS_IPC_REFUSED);
	CHECK_INT(broker.n, 0);
}

/* The most, and one more, of a session, of a tenant and of all. */
TEST(limited)
{
	static struct obs_identity others[3];
	uint64_t session = 100;

	for (unsigned i = 0; i < OBS_BROKER_SESSION; i++)
		put(A, &alice, OBS_IPC_EVENT, -1);
	CHECK_INT(put_status(OBS_IPC_EVENT, 0, -1), OBS_IPC_LIMIT);
	for (unsigned i = OBS_BROKER_SESSION; i < OBS_BROKER_TENANT; i++)
		put(session + i / 1000, &alice, OBS_IPC_EVENT, -1);
	CHECK_INT(request(7, &alice, &(struct obs_ipc){ .op = OBS_IPC_PUT, .kind = OBS_IPC_EVENT },
			  -1, NULL),
		OBS_IPC_LIMIT);
	broker.most = OBS_BROKER_TENANT + 2;
	for (unsigned i = 0; i < 3; i++)
		snprintf(others[i].who, sizeof others[i].who, "token %u", i);
	put(8, &others[0], OBS_IPC_EVENT, -1);
	put(9, &others[1], OBS_IPC_EVENT, -1);
	CHECK_INT(request(10, &others[2],
			  &(struct obs_ipc){ .op = OBS_IPC_PUT, .kind = OBS_IPC_EVENT }, -1, NULL),
		OBS_IPC_LIMIT);
	obs_broker_forget(&broker, A);
	put(10, &others[2], OBS_IPC_EVENT, -1);
	for (session = 0; session < 200; session++)
		obs_broker_forget(&broker, session);
	CHECK_INT(broker.n, 0);
	broker.most = 0;
}

/* A list is one that its worker can no longer change, of a bounded size. */
TEST(lists)
{
	const off_t most = (off_t)(OBS_IPC_PARTS_MAX * sizeof(struct obs_ipc_part));
	int fd = list_file(100, F_SEAL_SHRINK);

	CHECK_INT(put_status(OBS_IPC_RANGE, 4096, memory_file()), OBS_IPC_REFUSED);
	CHECK_INT(put_status(OBS_IPC_RANGE, 4096, list_file(0, SEALED)), OBS_IPC_REFUSED);
	CHECK_INT(put_status(OBS_IPC_RANGE, 4096, list_file(100, F_SEAL_SHRINK | F_SEAL_GROW)),
		OBS_IPC_REFUSED);
	CHECK_INT(put_status(OBS_IPC_RANGE, 4096, list_file(most + 1, SEALED)), OBS_IPC_REFUSED);
	/* Pages behind the end. */
	CHECK_INT(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1 << 20), 0);
	CHECK_INT(fcntl(fd, F_ADD_SEALS, SEALED), 0);
	CHECK_INT(put_status(OBS_IPC_RANGE, 4096, fd), OBS_IPC_REFUSED);
	CHECK_INT(broker.n, 0);
	put(A, &alice, OBS_IPC_RANGE, list_file(1, SEALED));
	put(A, &alice, OBS_IPC_RANGE, list_file(most, SEALED));
	CHECK_INT(broker.n, 2);
	obs_broker_forget(&broker, A);
}

/* The bytes of all lists, in whole pages: of a session and of a tenant. */
TEST(lists_limited)
{
	const off_t large = (off_t)(OBS_IPC_PARTS_MAX * sizeof(struct obs_ipc_part));
	const unsigned fit = OBS_BROKER_LISTS_SESSION / (unsigned)large;
	unsigned session = 100, n = 0;
	uint32_t status = OBS_IPC_OK;

	for (unsigned i = 0; i < fit; i++)
		put(A, &alice, OBS_IPC_RANGE, list_file(large, SEALED));
	CHECK_INT(put_status(OBS_IPC_RANGE, 4096, list_file(large, SEALED)), OBS_IPC_LIMIT);
	put(A, &alice, OBS_IPC_EVENT, -1);
	for (; status == OBS_IPC_OK && n < OBS_BROKER_TENANT; n++) {
		struct obs_ipc ipc = { .op = OBS_IPC_PUT, .kind = OBS_IPC_RANGE, .size = 1 };

		status = request(session + n / fit, &alice, &ipc, list_file(large, SEALED), NULL);
	}
	CHECK_INT(status, OBS_IPC_LIMIT);
	CHECK_INT(fit + n - 1, OBS_BROKER_LISTS_TENANT / (unsigned)large);
	put(B, &bob, OBS_IPC_RANGE, list_file(large, SEALED));
	obs_broker_forget(&broker, A);
	obs_broker_forget(&broker, B);
	for (; session < 200; session++)
		obs_broker_forget(&broker, session);
	CHECK_INT(broker.n, 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
