/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The harness of the test programs in C. A program is a table of cases. Each runs in a separate
 * child process with a time-out. A failed check, a signal, and a descriptor that the case leaves
 * open are failures. Names on the command line select cases.
 *
 *     TEST(ring_wraps) { CHECK(ring_room(&r) == 0); CHECK_INT(ring_size(&r), 8); }
 *     int main(int argc, char **argv) { return test_main(argc, argv); }
 *
 * A failed check prints the place, the expression and the values, and ends the process of the case;
 * it may be used in any thread and in further children. Exit status of the program: 0 all passed, 1
 * a case failed or none was selected, 77 all were skipped.
 *
 * The CUDA programs in tests/programs use check.h of that folder instead.
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
 * TEST_SANITIZED: 1 if the program is built with AddressSanitizer or ThreadSanitizer, which slow
 * it down. TEST_SLOWER: the divisor of the number of rounds of a long test.
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
/* What the case tests at the moment, such as a call's name; failed checks print it. NULL: none. */
static __attribute__((unused)) const char *test_subject;

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

/* Ends the case as failed. Prints file and line, then the message. */
#define TEST_FAIL(...)                                          \
	do {                                                    \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
		if (test_subject)                               \
			fprintf(stderr, "%s: ", test_subject);  \
		fprintf(stderr, __VA_ARGS__);                   \
		fputc('\n', stderr);                            \
		exit(1);                                        \
	} while (0)

/* Ends the case as skipped. */
#define TEST_SKIP(...)                \
	do {                          \
		printf(__VA_ARGS__);  \
		putchar('\n');        \
		exit(TEST_SKIP_EXIT); \
	} while (0)

#define CHECK(condition)                                           \
	do {                                                       \
		if (!(condition))                                  \
			TEST_FAIL("%s does not hold", #condition); \
	} while (0)

#define CHECK_INT(have, want)                                                   \
	do {                                                                    \
		long long have_ = (long long)(have), want_ = (long long)(want); \
		if (have_ != want_)                                             \
			TEST_FAIL("%s is %lld, not %lld", #have, have_, want_); \
	} while (0)

/* The value must be in [least, most]. */
#define CHECK_RANGE(have, least, most)                                                          \
	do {                                                                                    \
		long long have_ = (long long)(have), least_ = (long long)(least),               \
			  most_ = (long long)(most);                                            \
		if (have_ < least_ || have_ > most_)                                            \
			TEST_FAIL("%s is %lld, not %lld to %lld", #have, have_, least_, most_); \
	} while (0)

#define CHECK_STR(have, want)                                                                      \
	do {                                                                                       \
		const char *have_ = (have), *want_ = (want);                                       \
		if (!have_ || strcmp(have_, want_) != 0)                                           \
			TEST_FAIL("%s is '%s', not '%s'", #have, have_ ? have_ : "(null)", want_); \
	} while (0)

#define CHECK_MEM(have, want, size)                                                               \
	do {                                                                                      \
		const unsigned char *have_ = (const void *)(have), *want_ = (const void *)(want); \
		size_t at_ = test_difference(have_, want_, (size));                               \
		if (at_ < (size_t)(size))                                                         \
			TEST_FAIL("byte %zu of %s is %#x, not %#x", at_, #have, have_[at_],       \
				want_[at_]);                                                      \
	} while (0)

/* Returns the offset of the first byte that differs, or size if none does. */
static inline size_t test_difference(const void *have, const void *want, size_t size)
{
	const unsigned char *a = have, *b = want;
	size_t at = 0;

	if (memcmp(have, want, size) == 0)
		return size;
	while (a[at] == b[at])
		at++;
	return at;
}

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

enum test_result { TEST_PASSED, TEST_FAILED, TEST_SKIPPED };

static inline void test_child(const struct test_case *test)
{
	int before, after;

	alarm(TEST_TIMEOUT_S);
	before = test_open_fds();
	test->fn();
	after = test_open_fds();
	if (after > before + test_fds_allowed) {
		fprintf(stderr, "%s: %d descriptors left open\n", test->name, after - before);
		exit(1);
	}
	exit(0);
}

static inline enum test_result test_run_one(const struct test_case *test)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	fflush(stderr);
	pid = fork();
	if (pid == 0)
		test_child(test);
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		printf("FAIL %s: no process\n", test->name);
		return TEST_FAILED;
	}
	if (WIFSIGNALED(status)) {
		printf("FAIL %s: %s\n", test->name,
			WTERMSIG(status) == SIGALRM ? "took too long"
						    : strsignal(WTERMSIG(status)));
		return TEST_FAILED;
	}
	if (WEXITSTATUS(status) == TEST_SKIP_EXIT) {
		printf("skip %s\n", test->name);
		return TEST_SKIPPED;
	}
	printf("%s %s\n", WEXITSTATUS(status) ? "FAIL" : "ok  ", test->name);
	return WEXITSTATUS(status) ? TEST_FAILED : TEST_PASSED;
}

/*
 * Keeps the tested optimisations on when OUTBOARD_OPT turns all others off. Must be called at the
 * beginning of main, before OUTBOARD_OPT is read.
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
	unsigned ran = 0, results[3] = { 0 };

	for (unsigned i = 0; i < test_count; i++) {
		bool wanted = argc < 2;

		for (int a = 1; a < argc; a++)
			wanted |= strcmp(argv[a], test_cases[i].name) == 0;
		if (!wanted)
			continue;
		ran++;
		results[test_run_one(&test_cases[i])]++;
	}
	printf("%u tests, %u failed, %u skipped\n", ran, results[TEST_FAILED],
		results[TEST_SKIPPED]);
	if (ran && results[TEST_SKIPPED] == ran)
		return TEST_SKIP_EXIT;
	return results[TEST_FAILED] || !ran;
}

#endif
