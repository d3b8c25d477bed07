/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Records for a worker's executor over the null driver. The input is a list of { opcode, length in
 * words, body }. The frames around them are valid, so that the dispatch and the operations are
 * reached. Where a worker would end its process (the linker wraps the exit), the run ends. It ends by
 * a jump, so everything must happen on this thread: no thread can be started.
 */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/log.h"
#include "protocol/obp_calls.h"
#include "server/common/stats_page.h"
#include "server/worker/end.h"
#include "server/worker/exec.h"
#include "server/worker/start.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_stream.h"
#include "transport/tree.h"

#define INPUT_MAX 65536u
/* bytes of replies to one input: the null driver's memory can have any size */
#define TAKEN_MAX (64u << 20)

_Noreturn void __wrap_obs_session_fatal(
	struct obs_session *session, enum ob_err code, const char *format, ...);
_Noreturn void __wrap_obs_session_exit(struct obs_session *session, int status);
bool __wrap_ob_thread_start(
	void *(*fn)(void *), void *argument, size_t stack, pthread_t *ret_thread);

bool __wrap_ob_thread_start(
	void *(*fn)(void *), void *argument, size_t stack, pthread_t *ret_thread)
{
	(void)fn;
	(void)argument;
	(void)stack;
	(void)ret_thread;
	return false;
}

static struct obs_session session;
static jmp_buf over;
static size_t taken;
static bool started, left;
static const char *folder_path;
static uint8_t chunk[OBS_CACHE_MIN], chunk_name[OBT_SHA256_BYTES];

_Noreturn void __wrap_obs_session_fatal(
	struct obs_session *s, enum ob_err code, const char *format, ...)
{
	(void)s;
	(void)code;
	(void)format;
	longjmp(over, 1);
}

_Noreturn void __wrap_obs_session_exit(struct obs_session *s, int status)
{
	(void)s;
	(void)status;
	longjmp(over, 1);
}

/*
 * The client reads all replies up to its limit and then closes. After the end of a worker, the next
 * input gets a new session.
 */
static ssize_t client_send(struct obt_stream *stream, const struct iovec *iov, int n, bool block)
{
	static volatile unsigned sink __attribute__((unused));
	size_t total = 0;

	(void)stream;
	(void)block;
	for (int i = 0; i < n; i++) {
		for (size_t k = 0; k < iov[i].iov_len; k += 64)
			sink += ((const uint8_t *)iov[i].iov_base)[k];
		total += iov[i].iov_len;
	}
	taken += total;
	if (taken <= TAKEN_MAX)
		return (ssize_t)total;
	left = true;
	longjmp(over, 1);
}

static const struct obt_ops client_ops = { .name = "fuzz",
	.send = client_send,
	.recv = fuzz_stream_recv,
	.close = fuzz_stream_close };

/*
 * Mutation cannot find a hash. When a bit of the input is set, uploads get their correct name, and
 * queries name the one chunk that is cached.
 */
static void names_help(uint16_t opcode, uint8_t *body, size_t size)
{
	struct obp_write_kept_req *kept = (void *)body;
	struct obp_write_cached_req *cached = (void *)body;

	if (opcode == OBP_OP_WRITE_KEPT && size > sizeof *kept && kept->name[0] & 1) {
		kept->size = size - sizeof *kept;
		obt_tree_digest(body + sizeof *kept, kept->size, kept->name);
	}
	if (opcode == OBP_OP_CACHE_ASK &&
		size >= sizeof(struct obp_cache_ask_req) + sizeof chunk_name && body[size - 1] & 1)
		memcpy(body + sizeof(struct obp_cache_ask_req), chunk_name, sizeof chunk_name);
	if (opcode == OBP_OP_WRITE_CACHED && size == sizeof *cached && cached->size & 1)
		cached->size = OBS_CACHE_MIN;
}

static void put(uint64_t number, uint16_t opcode, const void *body, size_t size)
{
	struct obp_record record = { (uint32_t)(sizeof record + size), opcode, 0 };
	struct obp_frame frame;

	obp_frame_fill(&frame, OBP_FRAME_CALLS, record.size, 1, number, 0);
	fuzz_wire_put(&frame, sizeof frame);
	fuzz_wire_put(&record, sizeof record);
	fuzz_wire_put(body, size);
	names_help(opcode, fuzz_wire.data + fuzz_wire.size - size, size);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

static void folder_remove(void)
{
	nftw(folder_path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void start(void)
{
	static struct obs_options options;
	static char folder[] = "/tmp/outboard-fuzz-XXXXXX";
	char *argv[] = { "outboard-server", "--worker", "--driver", "null", "--upload-cache",
		"16MiB", "--cache", folder, NULL };
	struct ob_cause cause = { .code = OB_ERR_NONE };

	if (folder[sizeof folder - 2] == 'X' && mkdtemp(folder))
		atexit(folder_remove);
	folder_path = folder;

	free(session.scratch);
	for (unsigned i = 0; i < OBS_STAGING_WRITES; i++)
		if (session.staging.writes[i].data)
			munmap(session.staging.writes[i].data, OBP_CHUNK_MAX);
	atomic_store(&obs_stats_page->host_used, 0);
	if (started)
		obs_cache_close(&session.cache);
	/* the previous session's memory is lost, as with a process */
	memset(&session, 0, sizeof session);
	ob_log_set_level(OB_LOG_ERROR);
	if (obs_options_parse(&options, 8, argv) || obs_session_init(&session, &options, &cause)) {
		fprintf(stderr, "the null driver does not start: %s\n", cause.text);
		exit(1);
	}
	obp_conn_fini(&session.conn); /* each input has its own connection */
	obs_cache_enter(&session.cache, "fuzz");
	obt_tree_digest(chunk, sizeof chunk, chunk_name);
	obs_cache_put(&session.cache, OBS_CACHE_CHUNK, chunk_name, chunk, sizeof chunk);
	started = true;
	left = false;
	session.data.ops = &client_ops;
	session.replies.stream = session.data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct obp_ctx_use_req use = { .ctx = OBP_CTX_PRIMARY };
	uint64_t number = 1;

	if (!started || left)
		start();
	if (size > INPUT_MAX)
		return 0;
	fuzz_wire_clear();
	taken = 0;
	put(number++, OBP_OP_CTX_USE, &use, sizeof use);
	for (size_t at = 0; at + 4 <= size;) {
		uint16_t opcode, words;
		size_t n;

		memcpy(&opcode, data + at, 2);
		memcpy(&words, data + at + 2, 2);
		n = ob_min((size_t)(words & 0xfff) * 8, (size - at - 4) & ~(size_t)7);
		if (number > 4000)
			break;
		put(number++, opcode % OBP_OPCODE_END, data + at + 4, n);
		at += 4 + n;
	}
	if (obp_conn_init(&session.conn, OBP_ACCEPT_CALLS))
		return 0;
	if (setjmp(over) == 0)
		obs_exec_run(&session);
	obp_conn_fini(&session.conn);
	return 0;
}
