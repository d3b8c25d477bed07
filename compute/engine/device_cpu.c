/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The CPU as a device: a pool of threads and the kernels of compute/. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compute/engine/bases.h"
#include "compute/engine/device.h"
#include "compute/engine/fail.h"

struct obv_cpu {
	struct obk_pool *pool;
};

static void cpu_close(void *self)
{
	struct obv_cpu *cpu = self;

	obk_pool_free(cpu->pool);
	free(cpu);
}

struct watch {
	const struct obv_msm_work *work;
};

static void cpu_progress(void *arg, double done)
{
	const struct watch *w = arg;

	w->work->progress(w->work->progress_arg, done);
}

static int cpu_msm(void *self, const struct obv_msm_work *work, struct obk_g1_affine *ret,
	struct outboard_error *error)
{
	struct obv_cpu *cpu = self;
	struct obk_msm_job job = work->job;
	struct watch watch = { work };
	struct obk_fault fault;
	enum ob_err err;

	job.pool = cpu->pool;
	job.progress = work->progress ? cpu_progress : NULL;
	job.progress_arg = &watch;
	err = obk_msm_run(obv_bases_cpu(work->bases), &job, ret, &fault);
	return obv_fail_fault(error, err, &fault);
}

static int cpu_ntt(void *self, const struct obv_ntt_work *work, struct outboard_error *error)
{
	struct obv_cpu *cpu = self;
	struct obk_ntt_job job = work->job;
	struct obk_fault fault;
	enum ob_err err;

	job.pool = cpu->pool;
	err = obk_ntt_run(&job, work->data, &fault);
	return obv_fail_fault(error, err, &fault);
}

static struct obk_pool *cpu_pool(void *self)
{
	return ((struct obv_cpu *)self)->pool;
}

const struct obv_backend_ops obv_device_cpu_ops = { .close = cpu_close,
	.msm = cpu_msm,
	.ntt = cpu_ntt,
	.pool = cpu_pool };

/* Reads "model name : ..." of the first processor, and its clock. */
static void describe(struct obv_backend *b)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(b->what, sizeof(b->what), "CPU");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');
		double mhz;

		if (!colon)
			continue;
		colon[strcspn(colon, "\n")] = 0;
		if (strncmp(line, "model name", 10) == 0)
			snprintf(b->what, sizeof(b->what), "%.120s", colon + 2);
		else if (strncmp(line, "cpu MHz", 7) == 0 && sscanf(colon + 1, "%lf", &mhz) == 1)
			b->clock = mhz / 1e3;
		if (b->clock > 0)
			break;
	}
	if (f)
		fclose(f);
}

int obv_device_cpu_open(
	unsigned threads, struct obv_backend *ret_backend, struct outboard_error *error)
{
	struct obv_cpu *cpu = calloc(1, sizeof(*cpu));
	struct obv_backend b = { .ops = &obv_device_cpu_ops, .self = cpu, .kind = OUTBOARD_CPU };
	enum ob_err err = cpu ? obk_pool_new(threads, &cpu->pool) : OB_ERR_NO_MEMORY;

	if (err != OB_ERR_NONE) {
		free(cpu);
		if (err == OB_ERR_LIMIT)
			return obv_fail(error, OUTBOARD_LIMIT, OUTBOARD_NO_ITEM,
				"a CPU device with %u threads: at most %d are possible", threads,
				OBK_POOL_MAX_THREADS);
		return obv_fail(error, OUTBOARD_NO_MEMORY, OUTBOARD_NO_ITEM,
			"the threads of a CPU device cannot be started");
	}
	b.units = obk_pool_threads(cpu->pool);
	b.memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	b.operations = (1u << OUTBOARD_OP_COUNT) - 1;
	snprintf(b.name, sizeof(b.name), "cpu:%u", b.units);
	describe(&b);
	*ret_backend = b;
	return OUTBOARD_OK;
}
