/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/ptx/run.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CASE_TIMEOUT_S   60u
#define CHILD_TIMEOUT_MS 30000
#define CHILD_MAX_OUTPUT (1u << 20)

extern char **environ;

bool pt_run_ok(const struct pt_run *run)
{
	return run->message == NULL;
}

bool pt_run_fail(struct pt_run *run, const char *format, ...)
{
	if (run->message)
		return false;
	char text[1024];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	run->message = pt_format("%s", text);
	return false;
}

static void call(struct pt_run *run, CUresult r, const char *what)
{
	if (!r || run->message)
		return;
	run->error = r;
	pt_run_fail(run, "%s: CUDA error %d", what, (int)r);
}

CUdeviceptr pt_run_put(struct pt_run *run, const void *host, size_t n)
{
	CUdeviceptr p = 0;
	if (!pt_run_ok(run))
		return 0;
	if (run->n_buffers == PT_RUN_MAX_BUFFERS) {
		pt_run_fail(run, "this case wants more than %d buffers", PT_RUN_MAX_BUFFERS);
		return 0;
	}
	call(run, run->d->mem_alloc(&p, n), "cuMemAlloc");
	if (!pt_run_ok(run))
		return 0;
	run->buffers[run->n_buffers++] = p;
	if (host)
		call(run, run->d->copy_to(p, host, n), "cuMemcpyHtoD");
	else
		call(run, run->d->mem_set8(p, 0xa5, n), "cuMemsetD8");
	return p;
}

void pt_run_get(struct pt_run *run, CUdeviceptr from, void *host, size_t n)
{
	if (pt_run_ok(run))
		call(run, run->d->copy_from(host, from, n), "cuMemcpyDtoH");
}

void pt_run_go(struct pt_run *run, const char *kernel, struct pt_dim grid, struct pt_dim block,
	unsigned shared, const uint64_t params[4])
{
	CUfunction f;
	uint64_t p[4] = { params[0], params[1], params[2], params[3] };
	void *args[] = { &p[0], &p[1], &p[2], &p[3] };
	if (!pt_run_ok(run))
		return;
	call(run, run->d->module_function(&f, run->module, kernel), kernel);
	if (pt_run_ok(run) && shared > 48u << 10)
		call(run,
			run->d->function_set(
				f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared),
			kernel);
	if (pt_run_ok(run))
		call(run,
			run->d->launch(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
				NULL, args, NULL),
			kernel);
	if (pt_run_ok(run))
		call(run, run->d->ctx_sync(), kernel);
}

void pt_run_line(struct pt_run *run, const char *kernel, unsigned grid, unsigned block, uint64_t p0,
	uint64_t p1, uint64_t p2, uint64_t p3)
{
	pt_run_go(run, kernel, (struct pt_dim){ grid, 1, 1 }, (struct pt_dim){ block, 1, 1 }, 0,
		(const uint64_t[4]){ p0, p1, p2, p3 });
}

bool pt_run_same32(
	struct pt_run *run, const char *what, const uint32_t *got, const uint32_t *want, size_t n)
{
	for (size_t i = 0; i < n && pt_run_ok(run); i++) {
		if (got[i] != want[i])
			pt_run_fail(run, "%s[%zu]: expected 0x%" PRIx32 " got 0x%" PRIx32, what, i,
				want[i], got[i]);
	}
	return pt_run_ok(run);
}

bool pt_run_same64(
	struct pt_run *run, const char *what, const uint64_t *got, const uint64_t *want, size_t n)
{
	for (size_t i = 0; i < n && pt_run_ok(run); i++) {
		if (got[i] != want[i])
			pt_run_fail(run, "%s[%zu]: expected 0x%" PRIx64 " got 0x%" PRIx64, what, i,
				want[i], got[i]);
	}
	return pt_run_ok(run);
}

/* A GPU need not support the module of a case for another device. */
static bool may_refuse(const struct pt_run *run)
{
	return run->c->optional ||
		(strcmp(run->c->target, PT_TARGET) && !strstr(run->d->name, "software device"));
}

static void run_here(struct pt_run *run)
{
	bool loaded = false;
	alarm(CASE_TIMEOUT_S);
	if (run->c->ptx) {
		char *text = pt_format(PT_HEADER_FOR "%s", run->c->target, run->c->ptx);
		CUresult r = pt_driver_load(run->d, text, &run->module);
		if (r)
			pt_run_fail(run, "module does not load, CUDA error %d: %s", (int)r,
				run->d->log);
		run->absent = r && may_refuse(run);
		loaded = !r;
		free(text);
	}
	if (pt_run_ok(run) && !run->c->run(run))
		pt_run_fail(run, "failed");
	for (unsigned i = 0; i < run->n_buffers; i++)
		run->d->mem_free(run->buffers[i]);
	if (loaded)
		run->d->module_unload(run->module);
	if (run->error && !run->c->child)
		pt_driver_reset(run->d);
	alarm(0);
}

/* Reads both pipes to their ends. Returns false at the time limit or if poll fails. */
static bool drain(int fd[2], struct pt_text text[2])
{
	struct pollfd p[2] = { { fd[0], POLLIN, 0 }, { fd[1], POLLIN, 0 } };
	int open = 2;
	struct timespec t0, t;
	clock_gettime(CLOCK_MONOTONIC, &t0);
	while (open) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		long left = CHILD_TIMEOUT_MS - (t.tv_sec - t0.tv_sec) * 1000 -
			(t.tv_nsec - t0.tv_nsec) / 1000000;
		if (left <= 0 || (poll(p, 2, (int)left) < 0 && errno != EINTR))
			return false;
		for (int i = 0; i < 2; i++) {
			char buffer[4096];
			if (p[i].fd < 0 || !p[i].revents)
				continue;
			ssize_t n = read(p[i].fd, buffer, sizeof buffer);
			if (n > 0 && text[i].len < CHILD_MAX_OUTPUT) {
				pt_text_raw(&text[i], buffer, (size_t)n);
			} else if (n <= 0) {
				p[i].fd = -1;
				open--;
			}
		}
	}
	return true;
}

/* Runs this program again for one case. Returns its standard output and error. */
static void run_child(struct pt_run *run)
{
	const struct pt_options *o = &run->suite->options;
	char seed[32];
	snprintf(seed, sizeof seed, "%" PRIu64, o->seed);
	char *const argv[] = { (char *)(uintptr_t)o->program, (char *)"--seed", seed,
		(char *)"--child", run->c->name, (char *)(uintptr_t)o->library, NULL };
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	posix_spawn_file_actions_t actions;
	pid_t pid;
	posix_spawn_file_actions_init(&actions);
	if (pipe(out) || pipe(err)) {
		pt_run_fail(run, "no pipe: %s", strerror(errno));
		goto done;
	}
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	posix_spawn_file_actions_adddup2(&actions, err[1], 2);
	for (int i = 0; i < 2; i++) {
		posix_spawn_file_actions_addclose(&actions, out[i]);
		posix_spawn_file_actions_addclose(&actions, err[i]);
	}
	int failed = posix_spawn(&pid, o->program, &actions, NULL, argv, environ);
	close(out[1]);
	close(err[1]);
	out[1] = err[1] = -1;
	if (failed) {
		pt_run_fail(run, "cannot start a child: %s", strerror(failed));
		goto done;
	}
	struct pt_text text[2] = { { 0 }, { 0 } };
	int status = 0;
	bool ended = drain((int[2]){ out[0], err[0] }, text);
	if (!ended)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	const char *said = text[0].p ? text[0].p : "", *complained = text[1].p ? text[1].p : "";
	if (!ended)
		pt_run_fail(run, "the child did not end in time");
	else if (!WIFEXITED(status) || WEXITSTATUS(status))
		pt_run_fail(run, "the child failed (status 0x%x): %.300s", (unsigned)status, said);
	else if (run->c->check && !run->c->check(run, said, complained))
		pt_run_fail(run, "what the child wrote is wrong: %.300s", said);
	pt_text_free(&text[0]);
	pt_text_free(&text[1]);
done:
	posix_spawn_file_actions_destroy(&actions);
	for (int i = 0; i < 2; i++) {
		if (out[i] >= 0)
			close(out[i]);
		if (err[i] >= 0)
			close(err[i]);
	}
}

static void seed_run(struct pt_run *run)
{
	run->rng.state = run->suite->options.seed;
	for (const char *p = run->c->name; *p; p++)
		run->rng.state = run->rng.state * 31 + (unsigned char)*p;
}

void pt_cases_run(struct pt_suite *s)
{
	const char *child = s->options.child;
	for (size_t i = 0; i < s->n_cases; i++) {
		struct pt_run run = { .suite = s, .d = &s->driver, .c = s->cases[i] };
		if (child ? strcmp(child, run.c->name) != 0
			  : !pt_selected(s, run.c->group, run.c->name))
			continue;
		seed_run(&run);
		if (run.c->child && !child)
			run_child(&run);
		else
			run_here(&run);
		if (run.absent) {
			printf("not offered: %s\n", run.c->name);
			s->n_absent++;
		} else {
			pt_result(s, run.c->name, run.message);
		}
		free(run.message);
	}
}
