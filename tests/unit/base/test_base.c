/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/text.h"
#include "tests/test.h"

TEST(err_list_maps_to_cuda)
{
	CHECK_STR(ob_err_name(OB_ERR_TIMEOUT), "TIMEOUT");
	CHECK_INT(ob_err_to_cuda(OB_ERR_NONE), CUDA_SUCCESS);
	CHECK_INT(ob_err_to_cuda(OB_ERR_CLOSED), CUDA_ERROR_DEVICE_UNAVAILABLE);
	CHECK_INT(ob_err_to_cuda(OB_ERR_CONNECT), CUDA_ERROR_NO_DEVICE);
	CHECK_INT(ob_err_to_cuda((enum ob_err)9999), CUDA_ERROR_UNKNOWN);
	CHECK_STR(ob_err_name((enum ob_err)9999), "?");
}

TEST(buf_stops_at_its_maximum)
{
	struct ob_buf buf;

	ob_buf_init(&buf, 10);
	CHECK(ob_buf_append(&buf, "0123456789", 10));
	CHECK(!ob_buf_append(&buf, "x", 1));
	CHECK(buf.failed);
	CHECK(!ob_buf_append(&buf, "", 0)); /* a failed buffer stays failed */
	CHECK_INT(buf.size, 10);
	ob_buf_fini(&buf);
}

TEST(buf_prints_and_consumes)
{
	struct ob_buf buf;

	ob_buf_init(&buf, 1000);
	for (int i = 0; i < 100; i++)
		CHECK(ob_buf_printf(&buf, "%03d", i));
	CHECK_INT(buf.size, 300);
	ob_buf_consume(&buf, 297);
	CHECK_INT(buf.size, 3);
	CHECK(memcmp(buf.data, "099", 3) == 0);
	ob_buf_consume(&buf, 99);
	CHECK_INT(buf.size, 0);
	ob_buf_fini(&buf);
}

/* The values of FNV-1a's authors; those of the second hash are on disk and never change. */
TEST(hashes_keep_their_values)
{
	static const char text[] = "foobarfoobarfoobar";

	CHECK(ob_hash(OB_HASH_START, "", 0) == 0xcbf29ce484222325u);
	CHECK(ob_hash(OB_HASH_START, "a", 1) == 0xaf63dc4c8601ec8cu);
	CHECK(ob_hash(OB_HASH_START, "foobar", 6) == 0x85944171f73967e8u);
	CHECK(ob_hash(ob_hash(OB_HASH_START, "foo", 3), "bar", 3) == 0x85944171f73967e8u);
	CHECK(ob_hash_words(OB_HASH_START, text, 7) == ob_hash(OB_HASH_START, text, 7));
	CHECK(ob_hash_words(OB_HASH_START, text, 18) == 0x221238ef66d68143u);
}

TEST(ids_tell_stale_and_foreign)
{
	static struct ob_ids ids, other;
	uint64_t a, b;
	int x, y;

	ob_ids_init(&ids, 3, 4);
	ob_ids_init(&other, 4, 4);
	a = ob_ids_add(&ids, &x);
	CHECK_INT(ob_id_kind(a), 3);
	CHECK(ob_ids_get(&ids, a) == &x);
	CHECK(ob_ids_get(&other, a) == NULL);
	CHECK(ob_ids_get(&ids, 0) == NULL);
	CHECK(ob_ids_get(&ids, UINT64_MAX) == NULL);
	CHECK(ob_ids_remove(&ids, a) == &x);
	CHECK(ob_ids_remove(&ids, a) == NULL);
	b = ob_ids_add(&ids, &y);
	CHECK(ob_id_index(b) == ob_id_index(a) && b != a);
	CHECK(ob_ids_get(&ids, a) == NULL && ob_ids_get(&ids, b) == &y);
	/* In two steps: no new id has the index in between. */
	CHECK(ob_ids_end(&ids, b) == &y);
	CHECK(ob_ids_end(&ids, b) == NULL && ob_ids_get(&ids, b) == NULL);
	a = ob_ids_add(&ids, &x);
	CHECK(ob_id_index(a) != ob_id_index(b));
	ob_ids_recycle(&ids, b);
	CHECK(ob_id_index(ob_ids_add(&ids, &y)) == ob_id_index(b));
	ob_ids_fini(&ids);
	ob_ids_fini(&other);
}

TEST(ids_stop_at_their_maximum)
{
	static struct ob_ids ids;
	int x;

	ob_ids_init(&ids, 1, 3);
	for (int i = 0; i < 3; i++)
		CHECK(ob_ids_add(&ids, &x) != 0);
	CHECK_INT(ob_ids_add(&ids, &x), 0);
	CHECK(!ob_ids_put(&ids, 1ull << 56 | 3, &x)); /* index one past the maximum */
	CHECK(!ob_ids_put(&ids, 2ull << 56, &x));     /* another kind */
	CHECK(!ob_ids_put(&ids, 1ull << 56, &x));     /* in use */
	ob_ids_fini(&ids);
	ob_ids_init(&ids, 1, OB_IDS_MAX);
	CHECK(ob_ids_put(&ids, 1ull << 56 | (OB_IDS_MAX - 1), &x));
	CHECK(!ob_ids_put(&ids, 1ull << 56 | OB_IDS_MAX, &x));
	ob_ids_fini(&ids);
}

static struct ob_ids shared_ids;
static _Atomic bool shared_stop;

static void *reader(void *seen)
{
	uint64_t id;

	while (!atomic_load(&shared_stop))
		for (id = 7ull << 56; id < (7ull << 56 | 16); id++) {
			void *value = ob_ids_get(&shared_ids, id);

			if (value && value != seen)
				abort();
		}
	return NULL;
}

TEST(ids_are_read_while_they_change)
{
	pthread_t thread;
	int x;

	ob_ids_init(&shared_ids, 7, 16);
	pthread_create(&thread, NULL, reader, &x);
	for (int round = 0; round < 20000; round++) {
		uint64_t id = ob_ids_add(&shared_ids, &x);

		CHECK(id && ob_ids_get(&shared_ids, id) == &x);
		CHECK(ob_ids_remove(&shared_ids, id) == &x);
	}
	atomic_store(&shared_stop, true);
	pthread_join(thread, NULL);
	ob_ids_fini(&shared_ids);
}

TEST(opt_switches)
{
	setenv("OUTBOARD_OPT", "-spin,-batch,-nonsense", 1);
	CHECK(!ob_opt_on(OB_OPT_SPIN) && !ob_opt_on(OB_OPT_BATCH) && ob_opt_on(OB_OPT_ASYNC));
	ob_opt_set(OB_OPT_SPIN, true);
	CHECK(ob_opt_on(OB_OPT_SPIN));
}

TEST(opt_all_off)
{
	setenv("OUTBOARD_OPT", "-all,spin", 1);
	CHECK(!ob_opt_on(OB_OPT_BATCH) && !ob_opt_on(OB_OPT_ASYNC) && ob_opt_on(OB_OPT_SPIN));
}

TEST(text_sizes_and_numbers)
{
	uint64_t n = 0;
	char text[32];

	CHECK(ob_text_parse_size("4096", &n) && n == 4096);
	CHECK(ob_text_parse_size("1.5G", &n) && n == 3ull << 29);
	CHECK(ob_text_parse_size("64KiB", &n) && n == 65536);
	CHECK(!ob_text_parse_size("", &n) && !ob_text_parse_size("-1", &n) &&
		!ob_text_parse_size("4X", &n) && !ob_text_parse_size("99999999T", &n));
	CHECK(ob_text_parse_number("65535", 0, 65535, &n) && n == 65535);
	CHECK(!ob_text_parse_number("65536", 0, 65535, &n) &&
		!ob_text_parse_number("1x", 0, 9, &n) && !ob_text_parse_number(" 1", 0, 9, &n));
	ob_text_print_size(3ull << 29, text, sizeof text);
	CHECK_STR(text, "1.5 GiB");
	ob_text_hex("\x01\xab", 2, text);
	CHECK_STR(text, "01ab");
}

TEST(spans_and_rounding)
{
	CHECK(ob_span_inside(0, 0, 0) && ob_span_inside(4, 4, 8) && !ob_span_inside(4, 5, 8) &&
		!ob_span_inside(UINT64_MAX, 2, 8));
	CHECK_INT(ob_round_up(1, 8), 8);
	CHECK_INT(ob_round_up(8, 8), 8);
}

/* Returns the output for a line that is logged that many times, with its level. */
static void log_often(enum ob_log_level level, unsigned times, char *ret, size_t size)
{
	int fds[2];
	ssize_t n;

	CHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
	ob_log_set_fd(fds[1]);
	for (unsigned i = 0; i < times; i++)
		ob_log(level, "the same line");
	n = read(fds[0], ret, size - 1);
	ret[n > 0 ? n : 0] = '\0';
	ob_log_set_fd(STDERR_FILENO);
	close(fds[0]);
	close(fds[1]);
}

TEST(equal_log_lines_are_held_back)
{
	char text[8192];
	int fds[2], status;
	unsigned lines = 0;
	pid_t child;
	ssize_t n;

	log_often(OB_LOG_WARN, 3, text, sizeof text);
	CHECK_STR(text,
		"outboard: warn: the same line\noutboard: warn: the same line\noutboard: warn: the "
		"same line\n");
	log_often(OB_LOG_WARN, 100, text, sizeof text);
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	CHECK(lines < 50); /* normally none; one in ten seconds on a slow machine */
	log_often(OB_LOG_ERROR, 1, text, sizeof text);
	CHECK_STR(text, "outboard: error: the same line\n");
	/*
	 * At its end the process reports how many were dropped; a child reports only its own lines.
	 */
	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	child = fork();
	if (child == 0) {
		ob_log_set_fd(fds[1]);
		for (unsigned i = 0; i < 10; i++)
			ob_warn("the same line");
		exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	n = read(fds[0], text, sizeof text - 1);
	CHECK(n > 0);
	text[n] = '\0';
	CHECK_STR(text,
		"outboard: warn: the same line\noutboard: warn: the same line\noutboard: warn: the "
		"same line\n"
		"outboard: warn: the same line (repeated 7 times more)\n");
	close(fds[0]);
	close(fds[1]);
}

TEST(log_never_waits)
{
	char *text = calloc(1, 1 << 20), line[1024];
	ssize_t n, size = 0;
	unsigned lost;
	int fds[2];

	CHECK(text && pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
	/* the writing end blocks, as a server's stderr does */
	CHECK(fcntl(fds[1], F_SETFL, 0) == 0);
	ob_log_set_fd(fds[1]);
	memset(line, 'x', sizeof line - 1);
	line[sizeof line - 1] = '\0';
	for (int i = 0; i < 500; i++) /* half a megabyte: more than a pipe holds */
		ob_error("%03d%s", i, line + 3);
	while ((n = read(fds[0], text, 1 << 20)) > 0)
		size += n / (ssize_t)sizeof line;
	CHECK(size > 10 && size < 500);
	ob_error("read again");
	n = read(fds[0], text, 1 << 20);
	CHECK(n > 0 && sscanf(text, "outboard: warn: %u log lines were lost", &lost) == 1);
	CHECK(lost > 0 && lost < 500);
	CHECK(strstr(text, "read again\n"));
	ob_log_set_fd(STDERR_FILENO);
	close(fds[0]);
	close(fds[1]);
	free(text);
}

TEST(clock_polls)
{
	uint64_t now = ob_clock_ns();

	CHECK(ob_clock_ns() >= now);
	CHECK_INT(ob_clock_poll_ms(OB_NEVER), -1);
	CHECK_INT(ob_clock_poll_ms(now - 1), 0);
	CHECK(ob_clock_poll_ms(now + 10 * OB_SECOND) > 5000);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
