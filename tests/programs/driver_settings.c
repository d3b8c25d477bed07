/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Settings of GPU coredumps, callbacks for notifications, and the driver's log: values, sizes, wrong
 * uses.
 */
#include <unistd.h>

#include "driver.h"

static void boolean(CUcoredumpSettings setting, bool first)
{
	bool value = !first, global = !first;
	size_t size = 0;

	CU(cuCoredumpGetAttribute(setting, NULL, &size));
	OK(size == sizeof(bool));
	CU(cuCoredumpGetAttribute(setting, &value, &size));
	CU(cuCoredumpGetAttributeGlobal(setting, &global, &size));
	OK(value == first && global == first);
	/* The process's value holds in a context that has none. */
	value = !first;
	CU(cuCoredumpSetAttributeGlobal(setting, &value, &size));
	global = first;
	CU(cuCoredumpGetAttribute(setting, &global, &size));
	OK(global == !first);
	value = first;
	CU(cuCoredumpSetAttributeGlobal(setting, &value, &size));
}

static void coredumps(CUdevice device)
{
	const unsigned flags = CU_COREDUMP_SKIP_GLOBAL_MEMORY | CU_COREDUMP_SKIP_ABORT;
	char text[1024] = "", prefix[64];
	CUcontext second;
	unsigned got = 1;
	bool on = true;
	size_t size = 0;

	boolean(CU_COREDUMP_ENABLE_ON_EXCEPTION, false);
	boolean(CU_COREDUMP_TRIGGER_HOST, true);
	boolean(CU_COREDUMP_LIGHTWEIGHT, false);
	boolean(CU_COREDUMP_ENABLE_USER_TRIGGER, false);

	CU(cuCoredumpGetAttribute(CU_COREDUMP_FILE, NULL, &size));
	OK(size == 1024);
	CU(cuCoredumpGetAttribute(CU_COREDUMP_FILE, text, &size));
	snprintf(prefix, sizeof prefix, ".%d", (int)getpid());
	OK(strncmp(text, "core.cuda.", 10) == 0 && strstr(text, prefix));
	CU(cuCoredumpGetAttributeGlobal(CU_COREDUMP_PIPE, text, &size));
	OK(strncmp(text, "corepipe.cuda.", 14) == 0 && strstr(text, prefix));

	/* One context's value is not another's. */
	strcpy(text, "mine");
	size = 5;
	CU(cuCoredumpSetAttribute(CU_COREDUMP_FILE, text, &size));
	size = sizeof got;
	CU(cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &got, &size));
	OK(got == CU_COREDUMP_DEFAULT_FLAGS);
	got = flags;
	CU(cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &got, &size));
	CU(cuCtxCreate(&second, NULL, 0, device));
	size = sizeof got;
	CU(cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &got, &size));
	OK(got == 0);
	size = sizeof text;
	CU(cuCoredumpGetAttribute(CU_COREDUMP_FILE, text, &size));
	OK(strncmp(text, "core.cuda.", 10) == 0);
	CU(cuCtxDestroy(second));
	size = sizeof text;
	CU(cuCoredumpGetAttribute(CU_COREDUMP_FILE, text, &size));
	OK(strcmp(text, "mine") == 0 && size == 1024);
	size = sizeof got;
	CU(cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &got, &size));
	OK(got == flags);

	got = 0x40;
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &got, &size));
	size = 2;
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &got, &size));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &got, &size));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_FILE, text, &size));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_FILE, text, NULL));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuCoredumpGetAttributeGlobal(CU_COREDUMP_MAX, text, &size));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuCoredumpSetAttributeGlobal((CUcoredumpSettings)0, text, &size));
	size = sizeof text;
	memset(text, 'x', sizeof text); /* no NUL within the maximum */
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, text, &size));
	size = 1;
	EXPECT(CUDA_ERROR_NOT_SUPPORTED,
		cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_USER_TRIGGER, &on, &size));
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuCoredumpSetAttribute(CU_COREDUMP_PIPE, &on, &size));
}

static void never(CUasyncNotificationInfo *info, void *user, CUasyncCallbackHandle handle)
{
	(void)info;
	(void)user;
	(void)handle;
	OK(!"called");
}

static void notifications(CUdevice device)
{
	CUasyncCallbackHandle first = NULL, second = NULL;

	CU(cuDeviceRegisterAsyncNotification(device, never, NULL, &first));
	CU(cuDeviceRegisterAsyncNotification(device, never, NULL, &second));
	OK(first && second && first != second);
	CU(cuDeviceUnregisterAsyncNotification(device, first));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceUnregisterAsyncNotification(device, first));
	CU(cuDeviceUnregisterAsyncNotification(device, second));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceUnregisterAsyncNotification(device, NULL));
	EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceUnregisterAsyncNotification(-1, second));
	EXPECT(CUDA_ERROR_INVALID_DEVICE,
		cuDeviceRegisterAsyncNotification(1000, never, NULL, &first));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuDeviceRegisterAsyncNotification(device, NULL, NULL, &first));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuDeviceRegisterAsyncNotification(device, never, NULL, NULL));
}

static void heard(void *user, CUlogLevel level, char *message, size_t length)
{
	OK(level == CU_LOG_LEVEL_WARNING || level == CU_LOG_LEVEL_ERROR);
	OK(strlen(message) == length);
	++*(int *)user;
}

/* A call that is not supported is named in the log. */
static void logs(void)
{
	char text[4096] = "", file[4096] = "", path[] = "/tmp/driver_settings-XXXXXX";
	CUlogsCallbackHandle handle;
	CUlogIterator begin, end;
	size_t size = sizeof text;
	int n = 0, fd = mkstemp(path);

	OK(fd >= 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLogsRegisterCallback(NULL, NULL, &handle));
	CU(cuLogsRegisterCallback(heard, &n, &handle));
	CU(cuLogsCurrent(&begin, 0));
	end = begin;
	EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphicsUnregisterResource(NULL));
	OK(n == 1);
	CU(cuLogsUnregisterCallback(handle));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(handle));
	CU(cuLogsDumpToFile(&begin, path, 0));
	OK(begin == end + 1);
	begin = end;
	CU(cuLogsDumpToMemory(&begin, text, &size, 0));
	OK(begin == end + 1 && size == strlen(text));
	OK(strstr(text, "cuGraphicsUnregisterResource") != NULL);
	OK(read(fd, file, sizeof file - 1) == (ssize_t)size && strcmp(file, text) == 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLogsCurrent(NULL, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(&begin, NULL, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&begin, NULL, &size, 0));
	close(fd);
	unlink(path);
}

/* Limits that are hints. The device clips or refuses what it does not have. */
static void limits(CUdevice device)
{
	size_t value = 0;
	int most = 0;

	CU(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 4096));
	CU(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
	OK(value == 4096);
	CU(cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 128));
	CU(cuCtxGetLimit(&value, CU_LIMIT_MAX_L2_FETCH_GRANULARITY));
	OK(value == 128);
	CU(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, device));
	EXPECT(most ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT,
		cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, (size_t)most));
	EXPECT(most ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT,
		cuCtxGetLimit(&value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
	OK(!most || value == (size_t)most);
	CU(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
	EXPECT(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxSetLimit(CU_LIMIT_MAX, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
}

int main(void)
{
	CUcontext context;
	CUdevice device;
	size_t size = 0;

	EXPECT(CUDA_ERROR_NOT_INITIALIZED,
		cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, NULL, &size));
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCoredumpGetAttribute(CU_COREDUMP_FILE, NULL, &size));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCoredumpSetAttribute(CU_COREDUMP_FILE, NULL, &size));
	CU(cuCtxCreate(&context, NULL, 0, device));
	coredumps(device);
	notifications(device);
	logs();
	limits(device);
	CU(cuCtxDestroy(context));
	return verdict("driver_settings");
}
