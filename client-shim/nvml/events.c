/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Event sets: they exist, but no event is ever reported, because the server sends none. A wait
 * takes the time that the program gives it, like one on a healthy GPU.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "client-shim/nvml/nvml_calls.h"
#include "client-shim/nvml/state.h"

struct event_set {
	struct event_set *next;
};

static struct event_set *sets; /* under the lock of state.h */

static struct event_set **find(const void *set)
{
	struct event_set **at = &sets;

	while (*at && *at != set)
		at = &(*at)->next;
	return *at ? at : NULL;
}

int obc_nvmlEventSetCreate(void **set)
{
	struct event_set *made = calloc(1, sizeof *made);

	if (!made)
		return OB_NVML_MEMORY;
	made->next = sets;
	sets = made;
	*set = made;
	return OB_NVML_OK;
}

int obc_nvmlDeviceRegisterEvents(uint32_t device_place, uint64_t types, void *set)
{
	(void)device_place;
	if (!find(set))
		return OB_NVML_INVALID_ARGUMENT;
	return types ? OB_NVML_NOT_SUPPORTED : OB_NVML_OK;
}

int obc_nvmlDeviceGetSupportedEventTypes(uint32_t device_place, uint64_t *types)
{
	(void)device_place;
	*types = 0;
	return OB_NVML_OK;
}

int obc_nvmlEventSetFree(void *set)
{
	int result = obc_nvml_enter(false);
	struct event_set **at, *gone;

	if (result)
		return result;
	at = find(set);
	if (!at)
		return obc_nvml_leave(OB_NVML_INVALID_ARGUMENT);
	gone = *at;
	*at = gone->next;
	free(gone);
	return obc_nvml_leave(OB_NVML_OK);
}

/* Sleeps without the lock. */
int obc_nvmlEventSetWait_v2(void *set, struct ob_nvml_event *event, uint32_t timeout_ms)
{
	uint64_t until = ob_clock_ns() + timeout_ms * OB_MS;
	struct timespec at = { .tv_sec = (time_t)(until / OB_SECOND),
		.tv_nsec = (long)(until % OB_SECOND) };
	int result = obc_nvml_enter(false);

	if (result)
		return result;
	if (obc_nvml_leave(find(set) && event ? OB_NVML_OK : OB_NVML_INVALID_ARGUMENT))
		return OB_NVML_INVALID_ARGUMENT;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
	return OB_NVML_TIMEOUT;
}

int obc_nvmlEventSetWait(void *set, struct ob_nvml_event *event, uint32_t timeout_ms)
{
	return obc_nvmlEventSetWait_v2(set, event, timeout_ms);
}
