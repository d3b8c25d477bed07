/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Processes are started and end, and none is left behind. */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/opt.h"
#include "tests/unit/server/peer.h"

static void await_gone(pid_t pid)
{
	UNTIL(!process_alive(pid));
}

TEST(a_killed_worker_closes_its_session_and_no_other)
{
	struct server server;
	struct peer first, second;
	pid_t before[8], after[8];
	int n;

	server_start(&server, (const char *const[]){ "--warm", "0", NULL });
	peer_session(&first, &server);
	server_await_children(&server, 1);
	n = server_children(&server, before, 8);
	peer_session(&second, &server);
	server_await_children(&server, 2);
	CHECK_INT(n, 1);
	CHECK_INT(server_children(&server, after, 8), 2);
	kill(before[0], SIGKILL);
	CHECK(peer_ended(&first));
	CHECK_INT(peer_ping(&second, 0), 0);
	peer_close(&first);
	peer_session(&first, &server);
	CHECK_INT(peer_ping(&first, 0), 0);
	peer_close(&first);
	peer_close(&second);
	CHECK_INT(server_stop(&server), 0);
}

/*
 * The admission process holds no state of sessions: after its end sessions continue, joins and new
 * sessions work as before.
 */
TEST(a_killed_admission_process_is_replaced)
{
	struct server server;
	struct peer session, control, other;
	pid_t first;

	server_start(&server, NULL);
	peer_session(&session, &server);
	for (int i = 0; i < 3; i++) {
		first = server_admission(&server);
		kill(first, SIGKILL);
		await_gone(first);
		CHECK_INT(peer_ping(&session, 0), 0);
		peer_session(&other, &server);
		CHECK_INT(peer_ping(&other, 0), 0);
		peer_close(&other);
		CHECK(server_admission(&server) != first);
	}
	CHECK(peer_join(&control, &server, session.got.welcome.route, session.got.welcome.secret,
		OBP_JOIN_CONTROL, 0, 1));
	CHECK_INT(control.got.type, OBP_MSG_JOINED);
	peer_close(&control);
	peer_close(&session);
	CHECK_INT(server_stop(&server), 0);
}

/* More sessions than messages about them would fit into a socket's buffer. */
TEST(a_new_admission_process_knows_every_session)
{
	enum { SESSIONS = 120 };
	static struct peer sessions[SESSIONS];
	struct server server;
	struct peer control;
	pid_t first;

	server_start(&server,
		(const char *const[]){
			"--max-sessions", "121", "--refill", "8", "--upload-cache", "0", NULL });
	for (int i = 0; i < SESSIONS; i++)
		peer_session(&sessions[i], &server);
	first = server_admission(&server);
	kill(first, SIGKILL);
	await_gone(first);
	for (int i = 0; i < SESSIONS; i += SESSIONS - 1) {
		CHECK(peer_join(&control, &server, sessions[i].got.welcome.route,
			sessions[i].got.welcome.secret, OBP_JOIN_CONTROL, 0, 1));
		CHECK_INT(control.got.type, OBP_MSG_JOINED);
		peer_close(&control);
	}
	for (int i = 0; i < SESSIONS; i++)
		peer_close(&sessions[i]);
	CHECK_INT(server_stop(&server), 0);
}

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	CHECK_INT(clock_getcpuclockid(pid, &clock), 0);
	CHECK_INT(clock_gettime(clock, &used), 0);
	return (uint64_t)used.tv_sec * OB_SECOND + (uint64_t)used.tv_nsec;
}

/* A client that connects meanwhile waits, and the process must not poll in a busy loop. */
TEST(admission_without_descriptors_waits_for_one)
{
	struct rlimit none, enough;
	struct server server;
	struct peer peer, other;
	uint64_t used, began;
	pid_t admission;

	/* Another process can change only the limits of a process of the same user. */
	server_start(&server, (const char *const[]){ "--sandbox", "off", NULL });
	peer_session(&other, &server);
	admission = server_admission(&server);
	CHECK_INT(prlimit(admission, RLIMIT_NOFILE, NULL, &enough), 0);
	none = (struct rlimit){ 3, enough.rlim_max };
	CHECK_INT(prlimit(admission, RLIMIT_NOFILE, &none, NULL), 0);
	peer_connect(&peer, &server);
	peer_hello(&peer, 0);
	let_pass(100000, "the client is looked at meanwhile; later only lets the test see less");
	used = cpu_ns(admission);
	began = ob_clock_ns();
	let_pass(500000, "processor time of a period is what is measured");
	/* On a machine that is too busy this tests nothing but does not fail. */
	CHECK(cpu_ns(admission) - used < (ob_clock_ns() - began) / 5);
	CHECK_INT(peer_ping(&other, 0), 0);
	CHECK_INT(prlimit(admission, RLIMIT_NOFILE, &enough, NULL), 0);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.type, OBP_MSG_WELCOME);
	peer_close(&peer);
	peer_close(&other);
	CHECK_INT(server_stop(&server), 0);
}

/* Any number of connections that sent only a preface take no worker and no place. */
TEST(a_place_is_spent_on_a_hello_only)
{
	struct server server;
	struct peer silent[40], peer;

	server_start(&server, (const char *const[]){ "--max-sessions", "2", NULL });
	for (int i = 0; i < 40; i++) {
		peer_connect(&silent[i], &server);
		peer_preface(&silent[i], OBP_INTENT_NEW, 0);
	}
	peer_session(&peer, &server);
	CHECK_INT(peer_ping(&peer, 0), 0);
	server_await_children(&server, ob_opt_on(OB_OPT_WARM) ? 2 : 1);
	for (int i = 0; i < 40; i++)
		peer_close(&silent[i]);
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

TEST(an_address_has_as_many_sessions_as_it_may)
{
	struct server server;
	struct peer first, second, third;

	server_start(
		&server, (const char *const[]){ "--count-local", "--address-sessions", "2", NULL });
	peer_session(&first, &server);
	peer_session(&second, &server);
	peer_connect(&third, &server);
	peer_hello(&third, 0);
	CHECK(peer_control(&third));
	CHECK_INT(third.got.type, OBP_MSG_REFUSED);
	CHECK_INT(third.got.code, OB_ERR_LIMIT);
	CHECK(strstr(third.got.text, "--address-sessions"));
	CHECK_INT(peer_ping(&first, 0), 0);
	peer_close(&third);
	peer_close(&second);
	peer_close(&first);
	CHECK_INT(server_stop(&server), 0);
}

TEST(an_address_begins_sessions_as_fast_as_it_may)
{
	struct server server;
	struct peer peer, owner, control;
	int refused = 0;

	server_start(
		&server, (const char *const[]){ "--count-local", "--address-rate", "1", NULL });
	peer_session(&owner, &server);
	/* Four are allowed at once, then one a second. */
	for (int i = 0; i < 12; i++) {
		peer_connect(&peer, &server);
		peer_hello(&peer, 0);
		CHECK(peer_control(&peer));
		refused += peer.got.type == OBP_MSG_REFUSED;
		CHECK(peer.got.type == OBP_MSG_WELCOME ||
			(peer.got.code == OB_ERR_LIMIT && strstr(peer.got.text, "--address-rate")));
		peer_close(&peer);
	}
	CHECK(refused > 0);
	/* A join is not a new session: it is not limited. */
	CHECK(peer_join(&control, &server, owner.got.welcome.route, owner.got.welcome.secret,
		OBP_JOIN_CONTROL, 0, 1));
	CHECK_INT(control.got.type, OBP_MSG_JOINED);
	peer_close(&control);
	peer_close(&owner);
	CHECK_INT(server_stop(&server), 0);
}

TEST(a_worker_ends_at_once_when_its_client_leaves)
{
	struct server server;
	struct peer peer;
	pid_t pids[8];

	server_start(&server, (const char *const[]){ "--warm", "0", NULL });
	peer_session(&peer, &server);
	CHECK_INT(server_children(&server, pids, 8), 1);
	peer_close(&peer);
	await_gone(pids[0]);
	CHECK_INT(server_stop(&server), 0);
}

TEST(a_warm_worker_is_kept_ready)
{
	struct server server;
	struct peer peer;

	if (!ob_opt_on(OB_OPT_WARM))
		TEST_SKIP("warm workers are off");
	server_start(&server, (const char *const[]){ "--warm", "3", NULL });
	server_await_children(&server, 3);
	peer_session(&peer, &server);
	server_await_children(&server, 4);
	peer_close(&peer);
	server_await_children(&server, 3);
	CHECK_INT(server_stop(&server), 0);
}

TEST(warm_workers_come_back_one_at_a_time_when_asked_to)
{
	struct server server;
	struct peer peers[3];

	if (!ob_opt_on(OB_OPT_WARM))
		TEST_SKIP("warm workers are off");
	server_start(&server,
		(const char *const[]){
			"--warm", "5", "--refill", "1", "--max-sessions", "6", NULL });
	server_await_children(&server, 5);
	for (int i = 0; i < 3; i++)
		peer_session(&peers[i], &server);
	/* Three of at most six workers are in use: three are kept warm. */
	server_await_children(&server, 6);
	let_pass(100000,
		"a seventh would come with the refill timer; a machine that is slow makes this no "
		"stricter");
	server_await_children(&server, 6);
	for (int i = 0; i < 3; i++)
		peer_close(&peers[i]);
	server_await_children(&server, 5);
	CHECK_INT(server_stop(&server), 0);
}

TEST(a_dead_warm_worker_is_replaced)
{
	struct server server;
	struct peer peer;
	pid_t pids[8];

	if (!ob_opt_on(OB_OPT_WARM))
		TEST_SKIP("warm workers are off");
	server_start(&server, NULL);
	server_await_children(&server, 1);
	CHECK_INT(server_children(&server, pids, 8), 1);
	kill(pids[0], SIGKILL);
	await_gone(pids[0]);
	peer_session(&peer, &server);
	CHECK_INT(peer_ping(&peer, 0), 0);
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

/* False: the server refused and closed the connection. */
static bool welcomed(struct peer *peer, const struct server *server)
{
	peer_connect(peer, server);
	peer_hello(peer, 0);
	if (peer_control(peer) && peer->got.type == OBP_MSG_WELCOME)
		return true;
	peer_close(peer);
	return false;
}

TEST(sessions_above_the_maximum_are_refused)
{
	struct server server;
	struct peer first, second, third;

	server_start(&server, (const char *const[]){ "--max-sessions", "2", NULL });
	peer_session(&first, &server);
	peer_session(&second, &server);
	peer_connect(&third, &server);
	peer_hello(&third, 0);
	CHECK(peer_control(&third));
	CHECK_INT(third.got.type, OBP_MSG_REFUSED);
	CHECK_INT(third.got.code, OB_ERR_REFUSED);
	peer_close(&third);
	peer_close(&first);
	/* The place becomes free as soon as the worker has ended. */
	UNTIL(welcomed(&first, &server));
	peer_close(&first);
	peer_close(&second);
	CHECK_INT(server_stop(&server), 0);
}

TEST(term_drains)
{
	struct server server;
	struct peer running, late;
	struct stat st;
	char path[96];

	server_start(&server, NULL);
	snprintf(path, sizeof path, "%s", server.path);
	peer_session(&running, &server);
	kill(server.pid, SIGTERM);
	server_await_log(&server, "shutting down");
	CHECK_INT(peer_ping(&running, 0), 0);
	peer_connect(&late, &server);
	peer_hello(&late, 0);
	CHECK(peer_control(&late));
	CHECK_INT(late.got.type, OBP_MSG_REFUSED);
	peer_close(&late);
	CHECK_INT(peer_ping(&running, 0), 0);
	peer_close(&running);
	CHECK_INT(server_wait(&server, 60000), 0);
	CHECK(stat(path, &st) != 0);
}

TEST(a_second_term_ends_sessions)
{
	struct server server;
	struct peer running;

	server_start(&server, NULL);
	peer_session(&running, &server);
	kill(server.pid, SIGTERM);
	server_await_log(&server, "shutting down");
	CHECK_INT(peer_ping(&running, 0), 0);
	kill(server.pid, SIGTERM);
	CHECK(peer_ended(&running));
	CHECK_INT(server_wait(&server, 60000), 0);
	peer_close(&running);
}

TEST(the_drain_has_an_end)
{
	struct server server;
	struct peer running;

	server_start(&server, (const char *const[]){ "--drain-timeout", "1", NULL });
	peer_session(&running, &server);
	kill(server.pid, SIGTERM);
	CHECK(peer_ended(&running));
	CHECK_INT(server_wait(&server, 60000), 0);
	peer_close(&running);
}

TEST(a_killed_supervisor_leaves_no_worker)
{
	struct server server;
	struct peer running;
	pid_t pids[8];
	int n;

	server_start(&server, NULL);
	peer_session(&running, &server);
	server_await_children(&server, ob_opt_on(OB_OPT_WARM) ? 2 : 1);
	n = server_children(&server, pids, 8);
	kill(server.pid, SIGKILL);
	for (int i = 0; i < n; i++)
		await_gone(pids[i]);
	CHECK(peer_ended(&running));
	peer_close(&running);
	CHECK_INT(server_wait(&server, 60000), 128 + SIGKILL);
}

TEST(a_driver_that_cannot_be_used_is_named)
{
	char path[128] = "/tmp/outboard-driver-XXXXXX", command[1024];
	struct server server;
	struct peer peer;

	/*
	 * The driver disappears while the server runs: a server that cannot use its driver does not
	 * start.
	 */
	CHECK(mkdtemp(path) && getenv("OUTBOARD_FAKE_DRIVER"));
	snprintf(path + strlen(path), sizeof path - strlen(path), "/gone.so");
	snprintf(command, sizeof command, "cp '%s' '%s'", getenv("OUTBOARD_FAKE_DRIVER"), path);
	CHECK(system(command) == 0);
	server_start(&server, (const char *const[]){ "--driver", path, "--warm", "0", NULL });
	/* The worker that tried the driver at the start takes the first session. */
	peer_session(&peer, &server);
	peer_close(&peer);
	server_await_children(&server, 0);
	CHECK(unlink(path) == 0);
	peer_connect(&peer, &server);
	peer_hello(&peer, 0);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.type, OBP_MSG_REFUSED);
	CHECK_INT(peer.got.code, OB_ERR_DRIVER);
	CHECK(strstr(peer.got.text, path));
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
	*strrchr(path, '/') = '\0';
	CHECK(rmdir(path) == 0);
}

TEST(a_driver_without_devices_is_named)
{
	struct server server;
	struct peer peer;

	server_start_env(&server, NULL, "OUTBOARD_FAULT", "cuInit:1=100");
	peer_connect(&peer, &server);
	peer_hello(&peer, 0);
	CHECK(peer_control(&peer));
	CHECK_INT(peer.got.code, OB_ERR_DRIVER);
	peer_close(&peer);
	CHECK_INT(server_stop(&server), 0);
}

TEST(twenty_sessions_at_once)
{
	struct server server;
	struct peer peers[20];

	server_start(&server, NULL);
	for (int i = 0; i < 20; i++)
		peer_session(&peers[i], &server);
	for (int i = 0; i < 20; i++)
		CHECK_INT(peer_ping(&peers[i], 0), 0);
	for (int i = 0; i < 20; i++)
		peer_close(&peers[i]);
	CHECK_INT(server_stop(&server), 0);
}

TEST(a_stale_socket_file_is_replaced)
{
	siginfo_t info;
	struct server server, next;
	char url[128];

	server_start(&server, NULL);
	snprintf(url, sizeof url, "unix:%s", server.path);
	kill(server.pid, SIGKILL);
	CHECK(waitid(P_PID, (id_t)server.pid, &info, WEXITED | WNOWAIT) == 0);
	server_start(&next, (const char *const[]){ "--listen", url, NULL });
	CHECK_INT(server_stop(&next), 0);
	CHECK_INT(server_wait(&server, 60000), 128 + SIGKILL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
