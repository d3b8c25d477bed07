/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A supervisor with compromised children: it must not trust texts and flags of their messages, nor
 * their shared stats pages.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "server/common/handoff.h"
#include "server/supervisor/pool.h"
#include "server/supervisor/status.h"
#include "tests/test.h"

#define HEAD offsetof(struct obs_handoff, body)

struct channel {
	int ours, child;
};

static void channel_open(struct channel *c)
{
	int fds[2];

	CHECK_INT(obs_handoff_pair(fds), 0);
	*c = (struct channel){ fds[0], fds[1] };
}

static void channel_close(struct channel *c)
{
	close(c->ours);
	close(c->child);
}

/* A compromised child controls every byte. */
static void child_sends(const struct channel *c, const struct obs_handoff *message)
{
	CHECK_INT(send(c->child, message, HEAD, 0), HEAD);
}

static struct obs_handoff message, got;

TEST(texts_are_ended_and_clean)
{
	int fds[OBS_HANDOFF_FDS];
	struct channel c;
	uint8_t byte = 0x7f;

	channel_open(&c);
	memset(&message, 0, sizeof message);
	memset(message.text, 'x', sizeof message.text);
	memcpy(message.text, "\x1b]0;title\x07\xff", 11);
	memset(message.program, 0x9b, sizeof message.program);
	memset(message.identity.who, '\n', sizeof message.identity.who);
	memset(message.identity.from, 0xff, sizeof message.identity.from);
	memset(message.identity.address, 1, sizeof message.identity.address);
	memcpy(&message.identity.proved, &byte, 1);
	memcpy(&message.identity.local, &byte, 1);
	child_sends(&c, &message);
	CHECK_INT(obs_handoff_recv(c.ours, &got, fds), 1);
	CHECK_INT(strlen(got.text), sizeof got.text - 1);
	CHECK(strncmp(got.text, "?]0;title??x", 12) == 0);
	CHECK_INT(strspn(got.program, "?"), sizeof got.program - 1);
	CHECK_INT(strspn(got.identity.who, "?"), sizeof got.identity.who - 1);
	CHECK_INT(strspn(got.identity.from, "?"), sizeof got.identity.from - 1);
	CHECK_INT(strspn(got.identity.address, "?"), sizeof got.identity.address - 1);
	/* A flag is normalised to 1. */
	memcpy(&byte, &got.identity.proved, 1);
	CHECK_INT(byte, 1);
	memcpy(&byte, &got.identity.local, 1);
	CHECK_INT(byte, 1);
	channel_close(&c);
}

/* Truncating the shared page would kill the supervisor by SIGBUS when it reads it. */
TEST(a_board_cannot_be_made_shorter)
{
	int fd = -1;
	struct obs_stats_page *page = obs_stats_page_new(&fd);

	CHECK(page != NULL);
	CHECK_INT(ftruncate(fd, 0), -1);
	CHECK_INT(errno, EPERM);
	CHECK_INT(ftruncate(fd, 1 << 20), -1);
	close(fd);
	obs_stats_page_free(page);
}

TEST(what_a_board_says_is_bounded_and_clean)
{
	static struct obs_super super;
	static struct obs_options options;
	static struct obs_proc proc;
	struct obp_load load;
	int fd = -1;

	proc = (struct obs_proc){
		.super = &super, .state = OBS_PROC_BUSY, .page = obs_stats_page_new(&fd)
	};
	CHECK(proc.page != NULL);
	close(fd);
	super.options = &options;
	super.procs = &proc;
	memset((void *)proc.page, 0xff, sizeof *proc.page);
	obs_status_worker_ready(&proc);
	obs_status_fill(&super, OBP_LOAD_WANT_SESSIONS, NULL, &load);
	CHECK_INT(load.n_devices, OBP_DEVICE_MAX);
	CHECK_INT(load.n_sessions, 1);
	CHECK_INT(strspn(load.devices[0].name, "?"), sizeof load.devices[0].name - 1);
	CHECK_INT(strspn(load.listed[0].program, "?"), sizeof load.listed[0].program - 1);
	CHECK_INT(load.listed[0].priority, 2);
	CHECK_INT(load.listed[0].share, OBP_SHARE_ALL);
	CHECK_INT(load.listed[0].throttle, OBP_THROTTLE_COUNT - 1);
	CHECK_INT(load.listed[0].share_by, OBP_SHARE_BY_COUNT - 1);
	CHECK_INT(load.devices[0].share_by, (1u << OBP_SHARE_BY_COUNT) - 1);
	CHECK_INT(load.devices[0].ptx_only, 1);
	obp_load_fini(&load);
	/* what is above its maximum is no fact, but the server samples the use itself; what has none is at it */
	obs_status_fill(&super, OBP_LOAD_WANT_FACTS, NULL, &load);
	CHECK_INT(load.n_sessions, 0);
	for (unsigned i = 0; i < OBP_FACT_COUNT; i++)
		CHECK_INT(load.devices[1].facts.known >> i & 1,
			i == OBP_FACT_USE_GPU || obp_fact_max(i) == UINT64_MAX);
	CHECK_INT(load.devices[1].facts.value[OBP_FACT_USE_GPU], 0);
	obs_stats_page_free(proc.page);
}

/* Who asks, and whose session it is. */
TEST(sessions_are_told_to_their_own_machine)
{
	static const struct {
		struct obs_asker asker;
		const char *client;
		bool local, proved, shares;
	} cases[] = {
		{ { "127.0.0.1:5", true }, "user 1000", true, false, true },
		{ { "user 0", true }, "127.0.0.1:4", true, true, true },
		{ { "127.0.0.1:5", true }, "10.0.0.7:4", false, false, false },
		{ { "10.0.0.7:5", false }, "10.0.0.7:41234", false, false, true },
		{ { "10.0.0.7:5", false }, "10.0.0.7:41234", false, true, false },
		{ { "10.0.0.7:5", false }, "10.0.0.77:5", false, false, false },
		{ { "10.0.0.77:5", false }, "10.0.0.7:5", false, false, false },
		{ { "10.0.0.7:5", false }, "127.0.0.1:5", true, false, false },
		{ { "[2001:db8::1]:5", false }, "[2001:db8::1]:6", false, false, true },
		{ { "?", false }, "?", false, false, false },
	};

	for (size_t i = 0; i < ob_count(cases); i++) {
		struct obs_proc proc = { .identity = { .local = cases[i].local,
						 .proved = cases[i].proved } };

		snprintf(proc.client, sizeof proc.client, "%s", cases[i].client);
		CHECK_INT(obs_asker_shares(&cases[i].asker, &proc), cases[i].shares);
	}
}

/* ---- shared objects of sessions with tickets ---- */

static struct obs_super sharing;
static struct channel channels[3];
static struct obs_proc sharers[3];

/* Three sessions of one tenant: two with tickets for devices 2, 0 and for 1, one without. */
static void sharers_begin(void)
{
	static const struct obs_place places[3] = {
		{ .reserved = 1, .n_devices = 2, .devices = { 2, 0 } },
		{ .reserved = 1, .n_devices = 1, .devices = { 1 } },
	};

	for (uint32_t i = 0; i < 3; i++) {
		channel_open(&channels[i]);
		sharers[i] = (struct obs_proc){ .super = &sharing,
			.state = OBS_PROC_BUSY,
			.fd = channels[i].ours,
			.id = i + 1,
			.identity = { .who = "tenant alice", .proved = true },
			.place = places[i] };
	}
}

/* What the supervisor answers to session i. */
static struct obs_ipc share(uint32_t i, const struct obs_ipc *request)
{
	int fds[OBS_HANDOFF_FDS];
	struct obs_ipc answer;

	message = (struct obs_handoff){ .type = OBS_HANDOFF_IPC, .size = sizeof *request };
	memcpy(message.body, request, sizeof *request);
	obs_pool_take(&sharers[i], &message, (int[OBS_HANDOFF_FDS]){ -1, -1, -1 });
	CHECK_INT(obs_handoff_recv(channels[i].child, &got, fds), 1);
	memcpy(&answer, got.body, sizeof answer);
	return answer;
}

TEST(shared_objects_stay_on_the_devices_of_a_ticket)
{
	struct obs_ipc put = { .op = OBS_IPC_PUT, .kind = OBS_IPC_POOL }, answer, get;

	sharers_begin();
	put.device = 2; /* a device of the server, not of the session */
	CHECK_INT(share(0, &put).status, OBS_IPC_REFUSED);
	put.device = UINT32_MAX;
	CHECK_INT(share(0, &put).status, OBS_IPC_REFUSED);
	put.device = 0; /* the server's device 2 */
	answer = share(0, &put);
	CHECK_INT(answer.status, OBS_IPC_OK);
	get = (struct obs_ipc){
		.op = OBS_IPC_GET, .kind = OBS_IPC_POOL, .id = { answer.id[0], answer.id[1] }
	};
	answer = share(0, &get);
	CHECK(answer.status == OBS_IPC_OK && answer.device == 0 && answer.own);
	answer = share(1, &get); /* its device is not the session's */
	CHECK(answer.status == OBS_IPC_NONE && answer.id[0] == 0 && answer.device == 0);
	answer = share(2, &get);
	CHECK(answer.status == OBS_IPC_OK && answer.device == 2);
	for (uint64_t i = 0; i < 3; i++) {
		obs_broker_forget(&sharing.broker, i + 1);
		channel_close(&channels[i]);
	}
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
