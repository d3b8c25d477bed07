/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Versions, and finding devices. */
#include <stdio.h>
#include <string.h>

#include "base/uuid.h"
#include "client-shim/nvml/nvml_calls.h"
#include "client-shim/nvml/state.h"

/* ---- versions ---- */

/* NVIDIA's driver of the server; a server with the software device has its own version. */
static const char *driver_version(void)
{
	const struct obp_load *load = obl_view_load(obc_nvml_view());

	return load->nvidia_version[0] ? load->nvidia_version : load->version;
}

int obc_nvmlSystemGetDriverVersion(char *name, uint32_t length)
{
	return obc_nvml_text(driver_version(), name, length);
}

int obc_nvmlSystemGetNVMLVersion(char *name, uint32_t length)
{
	char text[128];

	snprintf(text, sizeof text, "%u.%s", obl_view_load(obc_nvml_view())->cuda_version / 1000,
		driver_version());
	return obc_nvml_text(text, name, length);
}

int obc_nvmlSystemGetCudaDriverVersion(int32_t *version)
{
	uint32_t known = obl_view_load(obc_nvml_view())->cuda_version;

	if (!known || known > INT32_MAX)
		return OB_NVML_NOT_SUPPORTED;
	*version = (int32_t)known;
	return OB_NVML_OK;
}

int obc_nvmlSystemGetCudaDriverVersion_v2(int32_t *version)
{
	return obc_nvmlSystemGetCudaDriverVersion(version);
}

/* ---- what this machine does not have ---- */

int obc_nvmlSystemGetHicVersion(uint32_t *count, void *entries)
{
	(void)entries;
	*count = 0;
	return OB_NVML_OK;
}

int obc_nvmlUnitGetCount(uint32_t *count)
{
	*count = 0;
	return OB_NVML_OK;
}

int obc_nvmlGetExcludedDeviceCount(uint32_t *count)
{
	*count = 0;
	return OB_NVML_OK;
}

/* ---- devices ---- */

int obc_nvmlDeviceGetCount_v2(uint32_t *count)
{
	*count = obc_nvml_view()->n_devices;
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetCount(uint32_t *count)
{
	return obc_nvmlDeviceGetCount_v2(count);
}

int obc_nvmlDeviceGetHandleByIndex_v2(uint32_t index, ob_nvml_device_t *device)
{
	if (index >= obc_nvml_view()->n_devices)
		return OB_NVML_INVALID_ARGUMENT;
	*device = obc_nvml_handle(index);
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetHandleByIndex(uint32_t index, ob_nvml_device_t *device)
{
	return obc_nvmlDeviceGetHandleByIndex_v2(index, device);
}

static int by_uuid(const uint8_t uuid[16], ob_nvml_device_t *device)
{
	for (uint32_t i = 0; i < obc_nvml_view()->n_devices; i++)
		if (memcmp(obc_nvml_device(i)->uuid, uuid, 16) == 0) {
			*device = obc_nvml_handle(i);
			return OB_NVML_OK;
		}
	return OB_NVML_NOT_FOUND;
}

int obc_nvmlDeviceGetHandleByUUID(const char *uuid, ob_nvml_device_t *device)
{
	uint8_t bytes[16];

	return ob_uuid_parse(uuid, bytes) ? by_uuid(bytes, device) : OB_NVML_NOT_FOUND;
}

int obc_nvmlDeviceGetHandleByUUIDV(const struct ob_nvml_uuid *uuid, ob_nvml_device_t *device)
{
	char text[OB_NVML_UUID_TEXT + 1];

	if (uuid->type == OB_NVML_UUID_BINARY)
		return by_uuid(uuid->bytes, device);
	if (uuid->type != OB_NVML_UUID_ASCII)
		return OB_NVML_INVALID_ARGUMENT;
	snprintf(text, sizeof text, "%.*s", OB_NVML_UUID_TEXT, uuid->text);
	return obc_nvmlDeviceGetHandleByUUID(text, device);
}

/* "[domain:]bus:device[.function]", all hexadecimal. */
int obc_nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, ob_nvml_device_t *device)
{
	unsigned domain = 0, bus, slot, function = 0;
	int end = -1;

	if (sscanf(bus_id, "%x:%x:%x%n", &domain, &bus, &slot, &end) != 3) {
		domain = 0;
		if (sscanf(bus_id, "%x:%x%n", &bus, &slot, &end) != 2)
			return OB_NVML_INVALID_ARGUMENT;
	}
	bus_id += end;
	if (*bus_id && (sscanf(bus_id, ".%x%n", &function, &end) != 1 || bus_id[end]))
		return OB_NVML_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < obc_nvml_view()->n_devices && !function; i++) {
		uint64_t has = 0, on = 0, at = 0;

		if (!obc_nvml_fact(i, OBP_FACT_PCI_BUS, &on) &&
			!obc_nvml_fact(i, OBP_FACT_PCI_DEVICE, &at) &&
			!obc_nvml_fact(i, OBP_FACT_PCI_DOMAIN, &has) && has == domain &&
			on == bus && at == slot) {
			*device = obc_nvml_handle(i);
			return OB_NVML_OK;
		}
	}
	return OB_NVML_NOT_FOUND;
}

int obc_nvmlDeviceGetHandleByPciBusId(const char *bus_id, ob_nvml_device_t *device)
{
	return obc_nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

/* Serial numbers are not sent. */
int obc_nvmlDeviceGetHandleBySerial(const char *serial, ob_nvml_device_t *device)
{
	(void)serial;
	(void)device;
	return OB_NVML_NOT_FOUND;
}

/* ---- how devices lie to one another ---- */

int obc_nvmlDeviceOnSameBoard(uint32_t device_place, uint32_t other_place, int32_t *same)
{
	*same = device_place == other_place;
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetMultiGpuBoard(uint32_t device_place, uint32_t *multi)
{
	(void)device_place;
	*multi = 0;
	return OB_NVML_OK;
}

/* The server does not tell its topology: the weakest statement is right for all pairs. */
int obc_nvmlDeviceGetTopologyCommonAncestor(
	uint32_t device_place, uint32_t other_place, uint32_t *level)
{
	*level = device_place == other_place ? OB_NVML_TOPOLOGY_INTERNAL : OB_NVML_TOPOLOGY_SYSTEM;
	return OB_NVML_OK;
}

int obc_nvmlDeviceGetTopologyNearestGpus(
	uint32_t device_place, uint32_t level, uint32_t *count, ob_nvml_device_t *devices)
{
	uint32_t n = 0, had = *count;

	if (level > OB_NVML_TOPOLOGY_SYSTEM || level % 10)
		return OB_NVML_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < obc_nvml_view()->n_devices; i++) {
		if (i == device_place || level != OB_NVML_TOPOLOGY_SYSTEM)
			continue;
		if (devices && n < had)
			devices[n] = obc_nvml_handle(i);
		n++;
	}
	*count = n;
	return n > had && devices ? OB_NVML_INSUFFICIENT_SIZE : OB_NVML_OK;
}

/* Whether access goes over NVLink or PCI is not known. */
int obc_nvmlDeviceGetP2PStatus(
	uint32_t device_place, uint32_t other_place, uint32_t capability, uint32_t *status)
{
	const struct obl_view *view = obc_nvml_view();
	bool known, can = obl_view_peers(view, device_place, other_place, false, &known);
	bool atomics = obl_view_peers(view, device_place, other_place, true, &known);

	if (capability >= OB_NVML_P2P_COUNT)
		return OB_NVML_INVALID_ARGUMENT;
	if (!known)
		*status = OB_NVML_P2P_UNKNOWN;
	else if (device_place == other_place || !can)
		*status = OB_NVML_P2P_CHIPSET;
	else if (capability == OB_NVML_P2P_ATOMICS)
		*status = atomics ? OB_NVML_P2P_OK : OB_NVML_P2P_NOT_SUPPORTED;
	else
		*status = capability <= OB_NVML_P2P_WRITE ? OB_NVML_P2P_OK : OB_NVML_P2P_UNKNOWN;
	return OB_NVML_OK;
}
