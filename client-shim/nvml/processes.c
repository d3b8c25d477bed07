/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Processes on a device: those of this machine whose sessions hold memory there, as far as the
 * server tells (server/supervisor/asker.h). All of them use CUDA, so lists of graphics and MPS
 * processes are empty.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "client-shim/nvml/nvml_calls.h"
#include "client-shim/nvml/state.h"

#define MODE_COMPUTE 0u
#define MODE_COUNT   3u
#define LINE_BYTES   4096

/* Finds the next process on the device; *at begins with 0. NULL: no more. */
static const struct obp_load_session *next(uint32_t place, uint32_t *at)
{
	const struct obl_view *view = obc_nvml_view();

	while (*at < view->n_sessions) {
		const struct obp_load_session *s = obl_view_session(view, (*at)++);

		if (obl_view_used(view, s, place) && s->pid && s->pid <= INT32_MAX)
			return s;
	}
	return NULL;
}

static uint32_t count_of(uint32_t place)
{
	uint32_t n = 0;

	for (uint32_t at = 0; next(place, &at);)
		n++;
	return n;
}

/* Sets *count to the number of processes. OB_NVML_OK: the array has room for them. */
static int room(uint32_t place, uint32_t *count, const void *list)
{
	uint32_t n = count_of(place), had = *count;

	*count = n;
	if (n > had)
		return OB_NVML_INSUFFICIENT_SIZE;
	return n && !list ? OB_NVML_INVALID_ARGUMENT : OB_NVML_OK;
}

static uint64_t memory_of(uint32_t place, const struct obp_load_session *s)
{
	return obl_view_used(obc_nvml_view(), s, place);
}

int obc_nvmlDeviceGetComputeRunningProcesses(
	uint32_t device_place, uint32_t *count, struct ob_nvml_process_v1 *list)
{
	const struct obp_load_session *s;
	int result = room(device_place, count, list);

	for (uint32_t at = 0; !result && (s = next(device_place, &at)); list++)
		*list = (struct ob_nvml_process_v1){ (uint32_t)s->pid, memory_of(device_place, s) };
	return result;
}

int obc_nvmlDeviceGetComputeRunningProcesses_v2(
	uint32_t device_place, uint32_t *count, struct ob_nvml_process *list)
{
	const struct obp_load_session *s;
	int result = room(device_place, count, list);

	for (uint32_t at = 0; !result && (s = next(device_place, &at)); list++)
		*list = (struct ob_nvml_process){ (uint32_t)s->pid, memory_of(device_place, s),
			OB_NVML_NO_INSTANCE, OB_NVML_NO_INSTANCE };
	return result;
}

int obc_nvmlDeviceGetComputeRunningProcesses_v3(
	uint32_t device_place, uint32_t *count, struct ob_nvml_process *list)
{
	return obc_nvmlDeviceGetComputeRunningProcesses_v2(device_place, count, list);
}

int obc_nvmlDeviceGetRunningProcessDetailList(
	uint32_t device_place, struct ob_nvml_process_list *list)
{
	struct ob_nvml_process_detail *to = list->list;
	const struct obp_load_session *s;
	int result = OB_NVML_OK;

	if (list->mode >= MODE_COUNT)
		return OB_NVML_INVALID_ARGUMENT;
	if (list->mode == MODE_COMPUTE)
		result = room(device_place, &list->n, to);
	else
		list->n = 0;
	for (uint32_t at = 0; !result && list->n && (s = next(device_place, &at)); to++)
		*to = (struct ob_nvml_process_detail){ .pid = (uint32_t)s->pid,
			.memory = memory_of(device_place, s),
			.gpu_instance = OB_NVML_NO_INSTANCE,
			.compute_instance = OB_NVML_NO_INSTANCE };
	return result;
}

/* ---- lists that are always empty ---- */

#define EMPTY(name, type)                                                                   \
	int obc_##name(uint32_t device_place, uint32_t *count, struct ob_nvml_##type *list) \
	{                                                                                   \
		(void)device_place;                                                         \
		(void)list;                                                                 \
		*count = 0;                                                                 \
		return OB_NVML_OK;                                                          \
	}

EMPTY(nvmlDeviceGetGraphicsRunningProcesses, process_v1)
EMPTY(nvmlDeviceGetGraphicsRunningProcesses_v2, process)
EMPTY(nvmlDeviceGetGraphicsRunningProcesses_v3, process)
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses, process_v1)
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses_v2, process)
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses_v3, process)

/* ---- a process's name ---- */

int obc_nvmlSystemGetProcessName(uint32_t pid, char *name, uint32_t length)
{
	char path[64], line[LINE_BYTES];
	OB_CLEANUP(ob_closep) int fd = -1;
	ssize_t n = 0;

	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, line, sizeof line - 1);
	if (n <= 0)
		return OB_NVML_NOT_FOUND;
	line[n] = '\0';
	/* a longer name is cut, as NVIDIA's library does */
	line[ob_min(strlen(line), length - 1)] = '\0';
	return obc_nvml_text(line, name, length);
}
