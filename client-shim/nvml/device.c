/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* One device: what it is, its memory, its sensors. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/uuid.h"
#include "client-shim/nvml/nvml_calls.h"
#include "client-shim/nvml/state.h"

#define ARCHITECTURE_UNKNOWN UINT32_MAX
#define SENSOR_GPU           0u
#define THRESHOLDS           4u /* that the server tells: shutdown, slowdown, memory, GPU */
#define ECC_KINDS            2u /* corrected, uncorrected */
#define FIELDS_MAX           4096

/* ---- what it is ---- */

/* Exactly the name that cuDeviceGetName says: tools look it up in tables. */
int obc_nvmlDeviceGetName(uint32_t device_place, char *name, uint32_t length)
{
	return obc_nvml_text(obc_nvml_device(device_place)->name, name, length);
}

int obc_nvmlDeviceGetUUID(uint32_t device_place, char *name, uint32_t length)
{
	char text[OB_UUID_TEXT];

	ob_uuid_print(obc_nvml_device(device_place)->uuid, text);
	return obc_nvml_text(text, name, length);
}

int obc_nvmlDeviceGetIndex(uint32_t device_place, uint32_t *index)
{
	*index = device_place;
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetCudaComputeCapability(uint32_t device_place, int32_t *major, int32_t *minor)
{
	uint32_t capability = obc_nvml_device(device_place)->capability;

	if (!capability || capability > INT32_MAX)
		return OB_NVML_NOT_SUPPORTED;
	*major = (int32_t)(capability / 10);
	*minor = (int32_t)(capability % 10);
	return OB_NVML_OK;
}

/* NVML's number of the architecture of a compute capability. */
static uint32_t architecture_of(uint32_t capability)
{
	static const struct {
		uint32_t from, number;
	} table[] = { { 130, ARCHITECTURE_UNKNOWN }, { 100, 10 }, { 90, 9 }, { 89, 8 }, { 80, 7 },
		{ 75, 6 }, { 70, 5 }, { 60, 4 }, { 50, 3 }, { 30, 2 } };

	for (size_t i = 0; i < ob_count(table); i++)
		if (capability >= table[i].from)
			return table[i].number;
	return ARCHITECTURE_UNKNOWN;
}

int obc_nvmlDeviceGetArchitecture(uint32_t device_place, uint32_t *architecture)
{
	if (obc_nvml_fact32(device_place, OBP_FACT_ARCHITECTURE, architecture))
		*architecture = architecture_of(obc_nvml_device(device_place)->capability);
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetBrand(uint32_t device_place, uint32_t *brand)
{
	if (obc_nvml_fact32(device_place, OBP_FACT_BRAND, brand))
		*brand = 0; /* unknown */
	return OB_NVML_OK;
}

/* Engines are counted on MIG instances only. */
int obc_nvmlDeviceGetAttributes_v2(uint32_t device_place, struct ob_nvml_attributes *attributes)
{
	struct obl_view_memory memory;

	obl_view_memory(obc_nvml_view(), device_place, &memory);
	*attributes = (struct ob_nvml_attributes){ .multiprocessors =
							   obc_nvml_device(device_place)->units,
		.memory_mib = memory.total >> 20 };
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetAttributes(uint32_t device_place, struct ob_nvml_attributes *attributes)
{
	return obc_nvmlDeviceGetAttributes_v2(device_place, attributes);
}

int obc_nvmlDeviceIsMigDeviceHandle(uint32_t device_place, uint32_t *mig)
{
	(void)device_place;
	*mig = 0;
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetMaxMigDeviceCount(uint32_t device_place, uint32_t *count)
{
	(void)device_place;
	*count = 0;
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetVirtualizationMode(uint32_t device_place, uint32_t *mode)
{
	(void)device_place;
	*mode = 0; /* none */
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetDisplayMode(uint32_t device_place, uint32_t *mode)
{
	(void)device_place;
	*mode = 0;
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetDisplayActive(uint32_t device_place, uint32_t *active)
{
	(void)device_place;
	*active = 0;
	return OB_NVML_OK;
}

/* ---- PCI ---- */

/* Ids that the server does not tell are 0. */
static int pci_read(uint32_t place, struct ob_nvml_pci *ret)
{
	*ret = (struct ob_nvml_pci){ .domain = 0 };
	if (obc_nvml_fact32(place, OBP_FACT_PCI_DOMAIN, &ret->domain) ||
		obc_nvml_fact32(place, OBP_FACT_PCI_BUS, &ret->bus) ||
		obc_nvml_fact32(place, OBP_FACT_PCI_DEVICE, &ret->device))
		return OB_NVML_NOT_SUPPORTED;
	obc_nvml_fact32(place, OBP_FACT_PCI_ID, &ret->id);
	obc_nvml_fact32(place, OBP_FACT_PCI_SUBSYSTEM, &ret->subsystem);
	snprintf(ret->bus_id_old, sizeof ret->bus_id_old, "%04X:%02X:%02X.0", ret->domain & 0xffff,
		ret->bus & 0xff, ret->device & 0xff);
	snprintf(ret->bus_id, sizeof ret->bus_id, "%08X:%02X:%02X.0", ret->domain, ret->bus & 0xff,
		ret->device & 0xff);
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetPciInfo_v3(uint32_t device_place, struct ob_nvml_pci *info)
{
	struct ob_nvml_pci pci;
	int result = pci_read(device_place, &pci);

	if (!result)
		*info = pci;
	return result;
}

static int pci_old(uint32_t place, size_t size, struct ob_nvml_pci_v2 *info)
{
	struct ob_nvml_pci pci;
	int result = pci_read(place, &pci);
	struct ob_nvml_pci_v2 old = { .domain = pci.domain,
		.bus = pci.bus,
		.device = pci.device,
		.id = pci.id,
		.subsystem = pci.subsystem };

	memcpy(old.bus_id, pci.bus_id_old, sizeof old.bus_id);
	if (!result)
		memcpy(info, &old, size);
	return result;
}

int obc_nvmlDeviceGetPciInfo_v2(uint32_t device_place, struct ob_nvml_pci_v2 *info)
{
	return pci_old(device_place, sizeof *info, info);
}

/* The first version of the structure ends before the subsystem. */
int obc_nvmlDeviceGetPciInfo(uint32_t device_place, struct ob_nvml_pci_v2 *info)
{
	return pci_old(device_place, offsetof(struct ob_nvml_pci_v2, subsystem), info);
}

int obc_nvmlDeviceGetPciInfoExt(uint32_t device_place, struct ob_nvml_pci_ext *info)
{
	struct ob_nvml_pci pci;
	int result = pci_read(device_place, &pci);

	if (result)
		return result;
	info->domain = pci.domain;
	info->bus = pci.bus;
	info->device = pci.device;
	info->id = pci.id;
	info->subsystem = pci.subsystem;
	info->base_class = 3; /* display controller, 3D */
	info->sub_class = 2;
	memcpy(info->bus_id, pci.bus_id, sizeof info->bus_id);
	return OB_NVML_OK;
}

/* ---- memory ---- */

/* The first version counts reserved memory as used. */
int obc_nvmlDeviceGetMemoryInfo(uint32_t device_place, struct ob_nvml_memory *memory)
{
	struct obl_view_memory m;

	obl_view_memory(obc_nvml_view(), device_place, &m);
	*memory = (struct ob_nvml_memory){ m.total, m.free, m.total - m.free };
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetMemoryInfo_v2(uint32_t device_place, struct ob_nvml_memory_v2 *memory)
{
	struct obl_view_memory m;

	obl_view_memory(obc_nvml_view(), device_place, &m);
	memory->total = m.total;
	memory->reserved = m.reserved;
	memory->free = m.free;
	memory->used = m.used;
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetBAR1MemoryInfo(uint32_t device_place, struct ob_nvml_bar1 *memory)
{
	uint64_t total, used;

	if (obc_nvml_fact(device_place, OBP_FACT_BAR1_TOTAL, &total) ||
		obc_nvml_fact(device_place, OBP_FACT_BAR1_USED, &used) || used > total)
		return OB_NVML_NOT_SUPPORTED;
	*memory = (struct ob_nvml_bar1){ total, total - used, used };
	return OB_NVML_OK;
}

/* ---- use ---- */

/* The software device does not measure its use of memory: 0, like a GPU that computes only. */
int obc_nvmlDeviceGetUtilizationRates(uint32_t device_place, struct ob_nvml_use *use)
{
	uint32_t gpu, memory = 0;

	if (obc_nvml_fact32(device_place, OBP_FACT_USE_GPU, &gpu))
		return OB_NVML_NOT_SUPPORTED;
	obc_nvml_fact32(device_place, OBP_FACT_USE_MEMORY, &memory);
	*use = (struct ob_nvml_use){ gpu, memory };
	return OB_NVML_OK;
}

/* Video engines are not forwarded: a session cannot use them. */
static int engine(uint32_t place, enum obp_fact fact, uint32_t *use, uint32_t *period)
{
	if (obc_nvml_fact32(place, fact, use))
		*use = 0;
	*period = (uint32_t)(OBL_VIEW_FRESH_NS / 1000);
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetEncoderUtilization(uint32_t device_place, uint32_t *use, uint32_t *period)
{
	return engine(device_place, OBP_FACT_USE_ENCODER, use, period);
}

int obc_nvmlDeviceGetDecoderUtilization(uint32_t device_place, uint32_t *use, uint32_t *period)
{
	return engine(device_place, OBP_FACT_USE_DECODER, use, period);
}

/* ---- temperature, clocks, errors ---- */

int obc_nvmlDeviceGetTemperature(uint32_t device_place, uint32_t sensor, uint32_t *celsius)
{
	if (sensor != SENSOR_GPU)
		return OB_NVML_INVALID_ARGUMENT;
	return obc_nvml_fact32(device_place, OBP_FACT_TEMPERATURE, celsius);
}

int obc_nvmlDeviceGetTemperatureV(uint32_t device_place, struct ob_nvml_temperature *reading)
{
	uint32_t celsius;
	int result = obc_nvmlDeviceGetTemperature(device_place, reading->sensor, &celsius);

	if (!result)
		reading->celsius = (int32_t)celsius;
	return result;
}

int obc_nvmlDeviceGetTemperatureThreshold(
	uint32_t device_place, uint32_t threshold, uint32_t *celsius)
{
	if (threshold >= THRESHOLDS)
		return threshold < 8 ? OB_NVML_NOT_SUPPORTED : OB_NVML_INVALID_ARGUMENT;
	return obc_nvml_fact32(device_place, OBP_FACT_TEMPERATURE_SHUTDOWN + threshold, celsius);
}

int obc_nvmlDeviceGetClockInfo(uint32_t device_place, uint32_t clock, uint32_t *mhz)
{
	if (clock > OB_NVML_CLOCK_VIDEO)
		return OB_NVML_INVALID_ARGUMENT;
	return obc_nvml_fact32(device_place, OBP_FACT_CLOCK_GRAPHICS + clock, mhz);
}

int obc_nvmlDeviceGetMaxClockInfo(uint32_t device_place, uint32_t clock, uint32_t *mhz)
{
	if (clock > OB_NVML_CLOCK_VIDEO)
		return OB_NVML_INVALID_ARGUMENT;
	return obc_nvml_fact32(device_place, OBP_FACT_CLOCK_MAX_GRAPHICS + clock, mhz);
}

int obc_nvmlDeviceGetApplicationsClock(uint32_t device_place, uint32_t clock, uint32_t *mhz)
{
	if (clock > OB_NVML_CLOCK_VIDEO)
		return OB_NVML_INVALID_ARGUMENT;
	if (clock == OB_NVML_CLOCK_VIDEO)
		return OB_NVML_NOT_SUPPORTED;
	return obc_nvml_fact32(device_place,
		clock == OB_NVML_CLOCK_MEMORY ? OBP_FACT_CLOCK_APP_MEMORY
					      : OBP_FACT_CLOCK_APP_GRAPHICS,
		mhz);
}

int obc_nvmlDeviceGetClock(uint32_t device_place, uint32_t clock, uint32_t which, uint32_t *mhz)
{
	if (clock > OB_NVML_CLOCK_VIDEO || which > OB_NVML_CLOCK_BOOST)
		return OB_NVML_INVALID_ARGUMENT;
	if (which == OB_NVML_CLOCK_NOW)
		return obc_nvmlDeviceGetClockInfo(device_place, clock, mhz);
	if (which == OB_NVML_CLOCK_TARGET)
		return obc_nvmlDeviceGetApplicationsClock(device_place, clock, mhz);
	return OB_NVML_NOT_SUPPORTED;
}

/* counter: 0 since the last reset, which is what the server tells; 1 in all. */
int obc_nvmlDeviceGetTotalEccErrors(
	uint32_t device_place, uint32_t kind, uint32_t counter, uint64_t *count)
{
	if (kind >= ECC_KINDS || counter > 1)
		return OB_NVML_INVALID_ARGUMENT;
	if (counter == 1)
		return OB_NVML_NOT_SUPPORTED;
	return obc_nvml_fact(
		device_place, kind ? OBP_FACT_ECC_UNCORRECTED : OBP_FACT_ECC_CORRECTED, count);
}

/* ---- fields ---- */

/* Fields by their number, and the fact that each is. */
static const struct {
	uint32_t id, type;
	enum obp_fact fact;
} fields[] = { { 1, OB_NVML_VALUE_U32, OBP_FACT_ECC },
	{ 2, OB_NVML_VALUE_U32, OBP_FACT_ECC_PENDING },
	{ 3, OB_NVML_VALUE_U64, OBP_FACT_ECC_CORRECTED },
	{ 4, OB_NVML_VALUE_U64, OBP_FACT_ECC_UNCORRECTED },
	{ 83, OB_NVML_VALUE_U64, OBP_FACT_ENERGY },
	{ 94, OB_NVML_VALUE_U32, OBP_FACT_PCIE_REPLAYS },
	{ 186, OB_NVML_VALUE_U32, OBP_FACT_POWER }, { 187, OB_NVML_VALUE_U32, OBP_FACT_POWER_MIN },
	{ 188, OB_NVML_VALUE_U32, OBP_FACT_POWER_MAX },
	{ 189, OB_NVML_VALUE_U32, OBP_FACT_POWER_DEFAULT },
	{ 190, OB_NVML_VALUE_U32, OBP_FACT_POWER_ENFORCED },
	{ 192, OB_NVML_VALUE_U32, OBP_FACT_POWER_LIMIT } };

static void field_fill(uint32_t place, struct ob_nvml_field *field)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	field->time_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
	field->latency_us = 0;
	field->u64 = 0;
	field->result = OB_NVML_NOT_SUPPORTED;
	for (size_t i = 0; i < ob_count(fields); i++) {
		if (fields[i].id != field->id)
			continue;
		field->type = fields[i].type;
		field->result = (uint32_t)(fields[i].type == OB_NVML_VALUE_U64
				? obc_nvml_fact(place, fields[i].fact, &field->u64)
				: obc_nvml_fact32(place, fields[i].fact, &field->u32));
	}
}

/* A field that is not known says so in its own result. */
int obc_nvmlDeviceGetFieldValues(uint32_t device_place, int32_t count, struct ob_nvml_field *values)
{
	if (count < 1 || count > FIELDS_MAX)
		return OB_NVML_INVALID_ARGUMENT;
	for (int32_t i = 0; i < count; i++)
		field_fill(device_place, &values[i]);
	return OB_NVML_OK;
}
