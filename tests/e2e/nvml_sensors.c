/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A management library with one device, which has the UUID of the software device, for
 * outboard-server --nvml. OUTBOARD_TEST_NVML=hang or crash: the first answers are right, then it
 * hangs or crashes.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nvml_types.h"

#define EXPORT __attribute__((visibility("default")))
#define GOOD   2 /* readings before the misbehaviour */

static unsigned readings;

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetCount_v2(uint32_t *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(uint32_t index, void **device);
EXPORT int nvmlSystemGetDriverVersion(char *text, uint32_t length);
EXPORT int nvmlDeviceGetUUID(void *device, char *text, uint32_t length);
EXPORT int nvmlDeviceGetTemperature(void *device, uint32_t sensor, uint32_t *celsius);
EXPORT int nvmlDeviceGetPowerUsage(void *device, uint32_t *milliwatts);
EXPORT int nvmlDeviceGetEccMode(void *device, uint32_t *now, uint32_t *pending);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct ob_nvml_use *use);
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct ob_nvml_memory_v2 *memory);
EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct ob_nvml_pci *pci);
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, uint64_t *millijoules);
EXPORT int nvmlDeviceGetPerformanceState(void *device, uint32_t *state);
EXPORT int nvmlEventSetCreate(void **set);
EXPORT int nvmlDeviceRegisterEvents(void *device, uint64_t types, void *set);
EXPORT int nvmlEventSetWait_v2(void *set, struct ob_nvml_event *event, uint32_t timeout_ms);

/* OUTBOARD_TEST_XID=N: reports the errors 31, which is a program's, and N. */
int nvmlEventSetCreate(void **set)
{
	static char events;

	*set = &events;
	return OB_NVML_OK;
}

int nvmlDeviceRegisterEvents(void *device, uint64_t types, void *set)
{
	(void)set;
	return device == &readings && types == 8 ? OB_NVML_OK : OB_NVML_INVALID_ARGUMENT;
}

int nvmlEventSetWait_v2(void *set, struct ob_nvml_event *event, uint32_t timeout_ms)
{
	static unsigned told;
	const char *xid = getenv("OUTBOARD_TEST_XID");

	(void)set;
	(void)timeout_ms;
	if (!xid || told == 2)
		return OB_NVML_TIMEOUT;
	*event = (struct ob_nvml_event){
		.device = (void *)&readings, .type = 8, .data = told ? strtoull(xid, NULL, 10) : 31
	};
	told++;
	return OB_NVML_OK;
}

int nvmlInit_v2(void)
{
	return OB_NVML_OK;
}

int nvmlDeviceGetCount_v2(uint32_t *count)
{
	*count = 1;
	return OB_NVML_OK;
}

int nvmlDeviceGetHandleByIndex_v2(uint32_t index, void **device)
{
	*device = &readings;
	return index ? OB_NVML_INVALID_ARGUMENT : OB_NVML_OK;
}

int nvmlSystemGetDriverVersion(char *text, uint32_t length)
{
	snprintf(text, length, "555.42.06");
	return OB_NVML_OK;
}

int nvmlDeviceGetUUID(void *device, char *text, uint32_t length)
{
	const char *way = getenv("OUTBOARD_TEST_NVML");

	(void)device;
	if (way && ++readings > GOOD) {
		if (strcmp(way, "crash") == 0)
			raise(SIGSEGV);
		for (;;)
			pause();
	}
	snprintf(text, length, "GPU-30302d6f-7574-626f-6172-642d736f6674");
	return OB_NVML_OK;
}

int nvmlDeviceGetTemperature(void *device, uint32_t sensor, uint32_t *celsius)
{
	(void)device;
	*celsius = 42;
	return sensor ? OB_NVML_INVALID_ARGUMENT : OB_NVML_OK;
}

int nvmlDeviceGetPowerUsage(void *device, uint32_t *milliwatts)
{
	(void)device;
	*milliwatts = 123456;
	return OB_NVML_OK;
}

int nvmlDeviceGetEccMode(void *device, uint32_t *now, uint32_t *pending)
{
	(void)device;
	*now = 1;
	*pending = 0;
	return OB_NVML_OK;
}

int nvmlDeviceGetUtilizationRates(void *device, struct ob_nvml_use *use)
{
	(void)device;
	*use = (struct ob_nvml_use){ 37, 11 };
	return OB_NVML_OK;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, struct ob_nvml_memory_v2 *memory)
{
	(void)device;
	if (memory->version != OB_NVML_VERSION(struct ob_nvml_memory_v2, 2))
		return OB_NVML_ARGUMENT_VERSION_MISMATCH;
	memory->total = 8ull << 30;
	memory->reserved = 1ull << 30;
	memory->used = 2ull << 30;
	memory->free = 5ull << 30;
	return OB_NVML_OK;
}

int nvmlDeviceGetPciInfo_v3(void *device, struct ob_nvml_pci *pci)
{
	(void)device;
	*pci = (struct ob_nvml_pci){ .domain = 1, .bus = 0x17, .device = 3, .id = 0x233010de };
	return OB_NVML_OK;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, uint64_t *millijoules)
{
	(void)device;
	*millijoules = 1ull << 40;
	return OB_NVML_OK;
}

/* A wrong answer: there is no such state, and the server must leave it out. */
int nvmlDeviceGetPerformanceState(void *device, uint32_t *state)
{
	(void)device;
	*state = 4000;
	return OB_NVML_OK;
}
