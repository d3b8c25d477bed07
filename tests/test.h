/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A unit-test program is a table of functions. Each runs in a separate child process with a
 * time-out. A descriptor that it leaves open, a signal and a failed CHECK are failures. Names on
 * the command line select tests.
 *
 *     TEST(ring_wraps) { CHECK(ring_room(&r) == 0); CHECK_INT(ring_size(&r), 8); }
 *     int main(int argc, char **argv) { return test_main(argc, argv); }
 */
#ifndef OB_TEST_H
#define OB_TEST_H

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "waiting.h"

#define TEST_MAX       128
#define TEST_TIMEOUT_S 120

/*
 * Whether a tool that watches every step slows the program down, and by what factor a long test
 * then reduces its number of rounds.
 */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#define TEST_SLOWER    3u
#else
#define TEST_SANITIZED 0
#define TEST_SLOWER    1u
#endif
#define TEST_SKIP_EXIT 77

struct test_case {
	const char *name;
	void (*fn)(void);
};

static struct test_case test_cases[TEST_MAX];
static unsigned test_count;
/*
 * Descriptors that a test may leave open: a CUDA driver keeps some for as long as the process
 * lives.
 */
static int test_fds_allowed;

static inline void test_register(const char *name, void (*fn)(void))
{
	if (test_count == TEST_MAX)
		abort();
	test_cases[test_count++] = (struct test_case){ name, fn };
}

#define TEST(name)                                                          \
	static void test_##name(void);                                      \
	__attribute__((constructor)) static void test_register_##name(void) \
	{                                                                   \
		test_register(#name, test_##name);                          \
	}                                                                   \
	static void test_##name(void)

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, \
				#condition);                                             \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

#define CHECK_INT(have, want)                                                                \
	do {                                                                                 \
		long long have_ = (long long)(have), want_ = (long long)(want);              \
		if (have_ != want_) {                                                        \
			fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, \
				#have, have_, want_);                                        \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

#define CHECK_STR(have, want)                                                                \
	do {                                                                                 \
		const char *have_ = (have), *want_ = (want);                                 \
		if (!have_ || strcmp(have_, want_) != 0) {                                   \
			fprintf(stderr, "%s:%d: %s is '%s', not '%s'\n", __FILE__, __LINE__, \
				#have, have_ ? have_ : "(null)", want_);                     \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

static inline int test_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Returns true when the test passed. */
static inline bool test_run_one(const struct test_case *test)
{
	int status = 0, before, after;
	pid_t pid;

	fflush(stdout);
	fflush(stderr);
	pid = fork();
	if (pid == 0) {
		alarm(TEST_TIMEOUT_S);
		before = test_open_fds();
		test->fn();
		after = test_open_fds();
		if (after > before + test_fds_allowed) {
			fprintf(stderr, "%s: %d descriptors left open\n", test->name,
				after - before);
			exit(1);
		}
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIP_EXIT) {
		printf("skip %s\n", test->name);
		return true;
	}
	if (WIFSIGNALED(status))
		printf("FAIL %s: %s\n", test->name,
			WTERMSIG(status) == SIGALRM ? "took too long"
						    : strsignal(WTERMSIG(status)));
	else
		printf("%s %s\n", WEXITSTATUS(status) ? "FAIL" : "ok  ", test->name);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/*
 * Keeps the tested option on when all other options are off. Must be called at the beginning of
 * main, before an option is read.
 */
static inline void test_needs(const char *switches)
{
	const char *given = getenv("OUTBOARD_OPT");
	char options[256];

	if (!given)
		return;
	snprintf(options, sizeof options, "%s,%s", given, switches);
	setenv("OUTBOARD_OPT", options, 1);
}

static inline int test_main(int argc, char **argv)
{
	unsigned ran = 0, failed = 0;

	for (unsigned i = 0; i < test_count; i++) {
		bool wanted = argc < 2;

		for (int a = 1; a < argc; a++)
			wanted |= strcmp(argv[a], test_cases[i].name) == 0;
		if (!wanted)
			continue;
		ran++;
		failed += !test_run_one(&test_cases[i]);
	}
	printf("%u tests, %u failed\n", ran, failed);
	return failed || !ran;
}

#endif
