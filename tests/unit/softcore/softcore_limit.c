/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Limits of the threads that run grids: the blocks that run at once are counted by the kernel
 * itself, so no result depends on how the processors are shared.
 */
#include <pthread.h>

#include "tests/unit/softcore/device.h"

#define THREADS 8u
#define BLOCKS  200u
#define GRIDS   4u

/*
 * at[0]: blocks that run; at[1]: the most at once; at[2]: all that ran. `hold` steps in between, so
 * that threads meet. Another kernel runs until at[3] is set.
 */
static const char text[] =
	HEAD ".visible .entry k(.param .u64 at, .param .u32 hold) {\n"
	     ".reg .u64 %d<2>; .reg .u32 %r<6>; .reg .pred %p<2>;\n"
	     "ld.param.u64 %d0, [at]; ld.param.u32 %r3, [hold];\n"
	     "atom.global.add.u32 %r0, [%d0], 1; add.u32 %r0, %r0, 1;\n"
	     "atom.global.max.u32 %r1, [%d0+4], %r0; mov.u32 %r2, 0;\n"
	     "LOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, %r3; @%p0 bra LOOP;\n"
	     "atom.global.add.u32 %r1, [%d0+8], 1; atom.global.add.u32 %r1, [%d0], -1;\nret; }\n"
	     ".visible .entry waits(.param .u64 at) {\n"
	     ".reg .u64 %d<2>; .reg .u32 %r<3>; .reg .pred %p<2>;\n"
	     "ld.param.u64 %d0, [at]; atom.global.add.u32 %r0, [%d0], 1;\n"
	     "WAIT: ld.volatile.global.u32 %r1, [%d0+12]; setp.eq.u32 %p0, %r1, 0; @%p0 bra WAIT;\n"
	     "atom.global.add.u32 %r0, [%d0], -1;\nret; }\n";

struct counts {
	_Atomic uint32_t now, most, all, go;
};

struct params {
	struct counts *at;
	uint32_t hold;
};

struct run {
	struct obd_program *program;
	struct obd_limit *limit;
	struct params params;
	const char *kernel;
	unsigned blocks;
	pthread_t thread;
};

static struct counts *counts_new(void)
{
	struct counts *counts;

	device_env();
	counts = device_take(NULL, sizeof *counts, 64);
	CHECK(counts != NULL);
	memset(counts, 0, sizeof *counts);
	return counts;
}

static void *run(void *arg)
{
	struct run *run = arg;
	struct obd_fault why = { .result = CUDA_SUCCESS };
	struct obd_grid grid = { .program = run->program,
		.kernel = obd_program_kernel(run->program, run->kernel),
		.grid = { run->blocks, 1, 1 },
		.block = { 1, 1, 1 },
		.params = &run->params,
		.limit = run->limit };

	CHECK_INT(obd_grid_run(pool, &grid, &why), CUDA_SUCCESS);
	return NULL;
}

static void start(struct run *run_new, struct obd_program *program, struct obd_limit *limit,
	const char *kernel, unsigned blocks, struct counts *counts)
{
	*run_new = (struct run){ .program = program,
		.limit = limit,
		.params = { counts, 20000 },
		.kernel = kernel,
		.blocks = blocks };
	CHECK(pthread_create(&run_new->thread, NULL, run, run_new) == 0);
}

/* Several grids of one limit, from threads of their own, as the software device's executors do. */
static void grids(unsigned most)
{
	struct obd_limit limit = { .most = most };
	struct obd_program *program = device_load_good(text);
	struct counts *counts = counts_new();
	struct run runs[GRIDS];

	pool = obd_pool_new(THREADS);
	for (unsigned i = 0; i < GRIDS; i++)
		start(&runs[i], program, &limit, "k", BLOCKS, counts);
	for (unsigned i = 0; i < GRIDS; i++)
		pthread_join(runs[i].thread, NULL);
	CHECK_INT(counts->all, GRIDS * BLOCKS);
	CHECK(counts->most >= 1 && counts->most <= most);
	CHECK(limit.running == 0 && limit.waiting == 0);
	device_end(program);
}

TEST(one_thread)
{
	grids(1);
}

TEST(some_threads)
{
	grids(3);
}

/* The limit is reached, too: that many blocks wait for each other. */
TEST(as_many_as_the_limit_run_at_once)
{
	struct obd_limit limit = { .most = 3 };
	struct obd_program *program = device_load_good(text);
	struct counts *counts = counts_new();
	struct run one;

	pool = obd_pool_new(THREADS);
	start(&one, program, &limit, "waits", 3, counts);
	UNTIL(counts->now == 3);
	atomic_store(&counts->go, 1);
	pthread_join(one.thread, NULL);
	CHECK_INT(counts->now, 0);
	device_end(program);
}

/* A grid that begins waits for a thread; grids of another limit, or of none, do not wait for it. */
TEST(limits_do_not_wait_for_each_other)
{
	struct obd_limit full = { .most = 1 }, other = { .most = 1 };
	struct obd_program *program = device_load_good(text);
	struct counts *first = counts_new(), *second = counts_new(), *third = counts_new();
	struct run holds, queued, beside, free_of_it;

	pool = obd_pool_new(THREADS);
	start(&holds, program, &full, "waits", 1, first);
	UNTIL(first->now == 1);
	start(&queued, program, &full, "k", 2, second);
	start(&beside, program, &other, "k", BLOCKS, third);
	start(&free_of_it, program, NULL, "k", BLOCKS, third);
	pthread_join(beside.thread, NULL);
	pthread_join(free_of_it.thread, NULL);
	CHECK_INT(third->all, 2 * BLOCKS);
	CHECK_INT(second->all, 0);
	atomic_store(&first->go, 1);
	pthread_join(holds.thread, NULL);
	pthread_join(queued.thread, NULL);
	CHECK_INT(second->all, 2);
	device_end(program);
}

/*
 * A place whose first owner has ended, while a grid of it still runs, gets a new number: the old
 * grid counts, and ends as any other.
 */
TEST(a_new_owner_while_an_old_grid_runs)
{
	struct obd_limit limit = { .most = 3 };
	struct obd_program *program = device_load_good(text);
	struct counts *old = counts_new(), *counts = counts_new();
	struct run holds, next;

	pool = obd_pool_new(THREADS);
	start(&holds, program, &limit, "waits", 1, old);
	UNTIL(old->now == 1);
	atomic_store(&limit.most, 2);
	start(&next, program, &limit, "k", BLOCKS, counts);
	pthread_join(next.thread, NULL);
	CHECK_INT(counts->all, BLOCKS);
	CHECK_INT(counts->most, 1);
	atomic_store(&old->go, 1);
	pthread_join(holds.thread, NULL);
	CHECK(limit.running == 0 && limit.waiting == 0);
	device_end(program);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
