/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/rqa/device.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "compute/command/progress.h"

#define NAME_BYTES 96

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static unsigned cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static void find_cpu_name(char *ret_name, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(ret_name, size, "CPU");
	while (file && fgets(line, sizeof line, file)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		colon[1 + strcspn(colon + 1, "\n")] = 0;
		snprintf(ret_name, size, "%.80s", colon + 2);
		break;
	}
	if (file)
		fclose(file);
}

static bool open_gpu(struct obx_device_watch *w)
{
	int (*init)(void), (*by_index)(unsigned, void **), (*name)(void *, char *, unsigned);

	w->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!w->library)
		return false;
	*(void **)&init = dlsym(w->library, "nvmlInit_v2");
	*(void **)&by_index = dlsym(w->library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&name = dlsym(w->library, "nvmlDeviceGetName");
	*(void **)&w->utilization = dlsym(w->library, "nvmlDeviceGetUtilizationRates");
	*(void **)&w->memory = dlsym(w->library, "nvmlDeviceGetMemoryInfo");
	return init && by_index && name && w->utilization && w->memory && init() == 0 &&
		by_index(0, &w->device) == 0 && name(w->device, w->name, NAME_BYTES) == 0;
}

void obx_device_watch_init(struct obx_device_watch *w, bool cpu)
{
	memset(w, 0, sizeof *w);
	if (cpu || !open_gpu(w)) {
		obx_device_watch_fini(w);
		find_cpu_name(w->name, sizeof w->name);
	}
	w->cpu_seconds = cpu_seconds();
	w->at = (double)ob_clock_ns() / (double)OB_SECOND;
}

void obx_device_watch_fini(struct obx_device_watch *w)
{
	int (*shutdown)(void);

	if (!w->library)
		return;
	*(void **)&shutdown = dlsym(w->library, "nvmlShutdown");
	if (shutdown)
		shutdown();
	dlclose(w->library);
	w->library = w->device = NULL;
}

void obx_device_shared_init(struct obx_device_shared *s)
{
	*s = (struct obx_device_shared){ .lock = PTHREAD_MUTEX_INITIALIZER };
	obx_device_watch_init(&s->watch, false);
}

void obx_device_shared_fini(struct obx_device_shared *s)
{
	obx_device_watch_fini(&s->watch);
	pthread_mutex_destroy(&s->lock);
}

void obx_device_shared_read(
	struct obx_device_shared *s, double period, struct obx_device_state *ret_state)
{
	double now = (double)ob_clock_ns() / (double)OB_SECOND;

	pthread_mutex_lock(&s->lock);
	if (now - s->at > period) {
		obx_device_watch_read(&s->watch, &s->state);
		s->at = now;
	}
	*ret_state = s->state;
	pthread_mutex_unlock(&s->lock);
}

static void read_cpu(struct obx_device_watch *w, struct obx_device_state *s)
{
	double now = (double)ob_clock_ns() / (double)OB_SECOND, used = cpu_seconds();

	s->memory_used = obx_memory_resident();
	s->memory_total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	s->utilization = now > w->at ? 100 * (used - w->cpu_seconds) / (now - w->at) / cores() : 0;
	w->cpu_seconds = used;
	w->at = now;
}

void obx_device_watch_read(struct obx_device_watch *w, struct obx_device_state *s)
{
	/* utilization of the processors and of the memory, in per cent */
	unsigned rates[2];
	uint64_t bytes[3] = { 0 }; /* total, free, used */

	memset(s, 0, sizeof *s);
	memcpy(s->name, w->name, sizeof s->name);
	if (w->device && w->utilization(w->device, rates) == 0 &&
		w->memory(w->device, bytes) == 0) {
		s->gpu = true;
		s->utilization = rates[0];
		s->memory_total = bytes[0];
		s->memory_used = bytes[2];
		return;
	}
	read_cpu(w, s);
}
