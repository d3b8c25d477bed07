/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * ptx-conformance: runs every PTX opcode that the software device supports on any CUDA driver
 * library and compares the results with references written from the PTX ISA manual. Exit status: 0
 * success, 1 differences, 2 wrong usage, 77 no driver library to test.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"

#define SELFTEST_ROUNDS 200000u

extern char **environ;

static const struct {
	const char *name, *what;
	void (*add)(struct pt_suite *s);
} groups[] = {
#define GROUP_ENTRY(name, what) { #name, what, pt_group_##name },
	PT_GROUPS(GROUP_ENTRY)
#undef GROUP_ENTRY
};
#define N_GROUPS (sizeof groups / sizeof groups[0])

static void usage(void)
{
	puts("usage: ptx-conformance [options] [LIBCUDA]\n"
	     "  LIBCUDA         the driver library to test; default: OUTBOARD_TEST_LIBCUDA\n"
	     "  --list          the names of all tests\n"
	     "  --group NAME    only this group\n"
	     "  --only SUBSTR   only tests whose name contains this\n"
	     "  --seed N        of the random operands and masks\n"
	     "  --selftest      compare the reference arithmetic with this machine's\n"
	     "  --ptxas PROGRAM assemble the texts with it instead of running them\n"
	     "groups:");
	for (size_t i = 0; i < N_GROUPS; i++)
		printf("  %-14s  %s\n", groups[i].name, groups[i].what);
}

static void on_alarm(int signal_number)
{
	static const char text[] = "\nFAIL: a kernel did not end in time; the run stops here\n";
	(void)signal_number;
	if (write(STDOUT_FILENO, text, sizeof text - 1) < 0) {
		/* ignored: the error cannot be reported */
	}
	_exit(1);
}

/* Runs ptxas on a text. Returns whether ptxas accepts it. */
static bool assemble(struct pt_suite *s, const char *target, const char *text)
{
	char path[] = "/tmp/ptx-conformance-XXXXXX";
	int fd = mkstemp(path);
	if (fd < 0)
		return false;
	FILE *f = fdopen(fd, "w");
	fputs(text, f);
	fclose(f);
	char *const argv[] = { (char *)(uintptr_t)s->options.ptxas, (char *)"-arch",
		(char *)(uintptr_t)target, (char *)"-c", (char *)"-O0", (char *)"-o",
		(char *)"/dev/null", path, NULL };
	pid_t pid;
	int status = 1;
	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) == 0)
		waitpid(pid, &status, 0);
	unlink(path);
	return status == 0;
}

static void assemble_rows(struct pt_suite *s, struct pt_row *const *rows, size_t n)
{
	struct pt_text text = { 0 };
	pt_rows_text(s, rows, n, &text);
	bool good = assemble(s, PT_TARGET, text.p);
	pt_text_free(&text);
	if (!good && n > 1) {
		assemble_rows(s, rows, n / 2);
		assemble_rows(s, rows + n / 2, n - n / 2);
		return;
	}
	for (size_t i = 0; i < n; i++)
		pt_result(s, rows[i]->name, good ? NULL : "ptxas refuses it");
}

static void assemble_all(struct pt_suite *s)
{
	struct pt_row *batch[PT_MODULE_ROWS];
	size_t n = 0;
	for (size_t i = 0; i < s->n_rows; i++) {
		if (pt_selected(s, s->rows[i]->group, s->rows[i]->name))
			batch[n++] = s->rows[i];
		if (n == PT_MODULE_ROWS || (n && i + 1 == s->n_rows)) {
			assemble_rows(s, batch, n);
			n = 0;
		}
	}
	for (size_t i = 0; i < s->n_cases; i++) {
		struct pt_case *c = s->cases[i];
		if (!c->ptx || !pt_selected(s, c->group, c->name))
			continue;
		char *text = pt_format(PT_HEADER_FOR "%s", c->target, c->ptx);
		pt_result(s, c->name, assemble(s, c->target, text) ? NULL : "ptxas refuses it");
		free(text);
	}
}

static void list(const struct pt_suite *s)
{
	for (size_t i = 0; i < s->n_rows; i++) {
		if (pt_selected(s, s->rows[i]->group, s->rows[i]->name))
			printf("%s: %s\n", s->rows[i]->group, s->rows[i]->name);
	}
	for (size_t i = 0; i < s->n_cases; i++) {
		if (pt_selected(s, s->cases[i]->group, s->cases[i]->name))
			printf("%s: %s\n", s->cases[i]->group, s->cases[i]->name);
	}
}

static bool option_value(int argc, char **argv, int *i, const char *name, const char **ret)
{
	if (strcmp(argv[*i], name) != 0 || *i + 1 >= argc)
		return false;
	*ret = argv[++*i];
	return true;
}

static bool parse(int argc, char **argv, struct pt_options *o, bool *ret_selftest)
{
	const char *seed = NULL;
	o->seed = 1;
	o->program = "/proc/self/exe";
	o->library = getenv("OUTBOARD_TEST_LIBCUDA");
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--list"))
			o->list = true;
		else if (!strcmp(argv[i], "--selftest"))
			*ret_selftest = true;
		else if (!option_value(argc, argv, &i, "--group", &o->group) &&
			!option_value(argc, argv, &i, "--only", &o->only) &&
			!option_value(argc, argv, &i, "--seed", &seed) &&
			!option_value(argc, argv, &i, "--ptxas", &o->ptxas) &&
			!option_value(argc, argv, &i, "--child", &o->child)) {
			if (argv[i][0] == '-')
				return false;
			o->library = argv[i];
		}
	}
	if (seed)
		o->seed = strtoull(seed, NULL, 0);
	return true;
}

static int finish(struct pt_suite *s)
{
	if (!s->options.child)
		printf("%zu rows, %zu failures, %zu known differences, %zu not offered\n", s->n_run,
			s->n_failed, s->n_known, s->n_absent);
	return s->n_failed || (!s->n_run && s->options.child) ? 1 : 0;
}

static int on_device(struct pt_suite *s)
{
	enum pt_open opened = pt_driver_open(&s->driver, s->options.library);
	if (opened != PT_OPEN_OK)
		return opened == PT_OPEN_NO_LIBRARY ? 77 : 1;
	if (!s->options.child) {
		printf("%s, seed %" PRIu64 "\n", s->driver.name, s->options.seed);
		fflush(stdout);
		pt_rows_run(s);
	}
	pt_cases_run(s);
	pt_driver_close(&s->driver);
	return finish(s);
}

int main(int argc, char **argv)
{
	static struct pt_suite suite;
	bool selftest = false;
	if (!parse(argc, argv, &suite.options, &selftest)) {
		usage();
		return 2;
	}
	signal(SIGALRM, on_alarm);
	if (selftest) {
		unsigned differences = pt_num_selftest(suite.options.seed, SELFTEST_ROUNDS);
		printf("%u operations, %u differences\n", SELFTEST_ROUNDS, differences);
		return differences != 0;
	}
	for (size_t i = 0; i < N_GROUPS; i++) {
		suite.group = groups[i].name;
		groups[i].add(&suite);
	}
	int rc;
	if (suite.options.list) {
		list(&suite);
		rc = 0;
	} else if (suite.options.ptxas) {
		assemble_all(&suite);
		rc = finish(&suite);
	} else {
		rc = on_device(&suite);
	}
	pt_suite_free(&suite);
	return rc;
}
