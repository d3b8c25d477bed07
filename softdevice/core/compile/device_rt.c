/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/compile/device_rt.h"

#include <string.h>

static const struct {
	const char *name; /* without the prefix of CUDA 12 and later */
	enum obd_builtin id;
} names[] = {
	{ "GetParameterBufferV2", OBD_BUILTIN_BUFFER },
	{ "LaunchDeviceV2", OBD_BUILTIN_LAUNCH },
	{ "StreamCreateWithFlags", OBD_BUILTIN_STREAM_NEW },
	{ "StreamDestroy", OBD_BUILTIN_STREAM_FREE },
	{ "StreamWaitEvent", OBD_BUILTIN_STREAM_WAIT },
	{ "EventCreateWithFlags", OBD_BUILTIN_EVENT_NEW },
	{ "EventDestroy", OBD_BUILTIN_EVENT_FREE },
	{ "EventRecord", OBD_BUILTIN_EVENT_RECORD },
	{ "EventRecordWithFlags", OBD_BUILTIN_EVENT_RECORD },
	{ "MemcpyAsync", OBD_BUILTIN_COPY },
	{ "Memcpy2DAsync", OBD_BUILTIN_COPY_2D },
	{ "MemsetAsync", OBD_BUILTIN_FILL },
	{ "Memset2DAsync", OBD_BUILTIN_FILL_2D },
	{ "GetLastError", OBD_BUILTIN_LAST_ERROR },
	{ "PeekAtLastError", OBD_BUILTIN_PEEK_ERROR },
	{ "GetErrorName", OBD_BUILTIN_ERROR_NAME },
	{ "GetErrorString", OBD_BUILTIN_ERROR_TEXT },
	{ "GetDeviceCount", OBD_BUILTIN_DEVICE_COUNT },
	{ "GetDevice", OBD_BUILTIN_DEVICE },
	{ "DeviceGetAttribute", OBD_BUILTIN_ATTRIBUTE },
	{ "DeviceGetLimit", OBD_BUILTIN_LIMIT },
	{ "Malloc", OBD_BUILTIN_ALLOC },
	{ "Free", OBD_BUILTIN_ALLOC_FREE },
	{ "RuntimeGetVersion", OBD_BUILTIN_VERSION },
	{ "DeviceSynchronize", OBD_BUILTIN_BLOCK_SYNC }, /* before compute capability 9.0 */
	{ "DeviceSynchronizeDeprecationAvoidance", OBD_BUILTIN_BLOCK_SYNC },
};

enum obd_builtin obd_device_rt_find(const char *name)
{
	static const char *const prefixes[] = { "__cudaCDP2", "__cuda", "cuda" };
	static const char suffix[] = "_ptsz";
	size_t size, cut = sizeof(suffix) - 1, prefix = 0,
		     n = sizeof(prefixes) / sizeof(prefixes[0]);

	while (prefix < n && strncmp(name, prefixes[prefix], strlen(prefixes[prefix])) != 0)
		prefix++;
	if (prefix == n)
		return OBD_BUILTIN_NONE;
	name += strlen(prefixes[prefix]);
	size = strlen(name);
	if (size > cut && strcmp(name + size - cut, suffix) == 0)
		size -= cut;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i].name) == size && memcmp(names[i].name, name, size) == 0)
			return names[i].id;
	return OBD_BUILTIN_NONE;
}

bool obd_device_rt_is_graph(const char *name)
{
	static const char prefix[] = "cudaGraph", now[] = "cudaGetCurrentGraphExec";

	return strncmp(name, prefix, sizeof(prefix) - 1) == 0 || strcmp(name, now) == 0;
}
