/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/nvml/direct.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/cuda_types.h"

#define CHILD_NS (5 * OB_SECOND)

static struct {
	CUresult (*init)(unsigned);
	CUresult (*version)(int *);
	CUresult (*count)(int *);
	CUresult (*name)(char *, int, CUdevice);
	CUresult (*uuid)(CUuuid *, CUdevice);
	CUresult (*total)(size_t *, CUdevice);
	CUresult (*attribute)(int *, CUdevice_attribute, CUdevice);
	CUresult (*state)(CUdevice, unsigned *, int *);
	CUresult (*can_access)(int *, CUdevice, CUdevice);
	CUresult (*peer)(int *, CUdevice_P2PAttribute, CUdevice, CUdevice);
	CUresult (*current)(CUdevice *);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*release)(CUdevice);
	CUresult (*push)(CUcontext);
	CUresult (*pop)(CUcontext *);
	CUresult (*info)(size_t *, size_t *);
} cuda;

static const struct {
	const char *name;
	void *place;
} functions[] = { { "cuInit", &cuda.init }, { "cuDriverGetVersion", &cuda.version },
	{ "cuDeviceGetCount", &cuda.count }, { "cuDeviceGetName", &cuda.name },
	{ "cuDeviceGetUuid_v2", &cuda.uuid }, { "cuDeviceTotalMem_v2", &cuda.total },
	{ "cuDeviceGetAttribute", &cuda.attribute }, { "cuDevicePrimaryCtxGetState", &cuda.state },
	{ "cuDeviceCanAccessPeer", &cuda.can_access }, { "cuDeviceGetP2PAttribute", &cuda.peer },
	{ "cuCtxGetDevice", &cuda.current }, { "cuDevicePrimaryCtxRetain", &cuda.retain },
	{ "cuDevicePrimaryCtxRelease_v2", &cuda.release }, { "cuCtxPushCurrent_v2", &cuda.push },
	{ "cuCtxPopCurrent_v2", &cuda.pop }, { "cuMemGetInfo_v2", &cuda.info } };

static enum ob_err load_driver(struct ob_cause *ret_cause)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER, "%s", dlerror());
	for (size_t i = 0; i < ob_count(functions); i++) {
		void *found = dlsym(library, functions[i].name);

		if (!found)
			return ob_cause_set(ret_cause, OB_ERR_DRIVER, "libcuda.so.1 lacks %s",
				functions[i].name);
		memcpy(functions[i].place, &found, sizeof found);
	}
	return OB_ERR_NONE;
}

static uint64_t used_now(void)
{
	size_t free_bytes = 0, total = 0;

	return cuda.info(&free_bytes, &total) == CUDA_SUCCESS ? total - free_bytes : 0;
}

/*
 * Bytes that this process holds on the device, as its primary context or this thread's context can
 * tell; without one of them: none.
 */
static uint64_t used(CUdevice device)
{
	CUcontext context;
	CUdevice current;
	unsigned flags;
	int active = 0;
	uint64_t bytes = 0;

	if (cuda.current(&current) == CUDA_SUCCESS && current == device)
		return used_now();
	if (cuda.state(device, &flags, &active) != CUDA_SUCCESS || !active ||
		cuda.retain(&context, device) != CUDA_SUCCESS)
		return 0;
	if (cuda.push(context) == CUDA_SUCCESS) {
		bytes = used_now();
		cuda.pop(&context);
	}
	cuda.release(device);
	return bytes;
}

static uint32_t attribute(CUdevice device, CUdevice_attribute which)
{
	int value = 0;

	return cuda.attribute(&value, which, device) == CUDA_SUCCESS && value > 0 ? (uint32_t)value
										  : 0;
}

/* The facts that a server tells of its software device; clocks are in kHz (server/worker/start.c). */
static void device_fill(CUdevice device, struct obp_load_device *to)
{
	static const struct {
		CUdevice_attribute attr;
		enum obp_fact fact;
		uint32_t divisor;
	} of[] = { { CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, OBP_FACT_PCI_DOMAIN, 1 },
		{ CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, OBP_FACT_PCI_BUS, 1 },
		{ CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, OBP_FACT_PCI_DEVICE, 1 },
		{ CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, OBP_FACT_BUS_WIDTH, 1 },
		{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, OBP_FACT_CLOCK_MAX_SM, 1000 },
		{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, OBP_FACT_CLOCK_MAX_GRAPHICS, 1000 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, OBP_FACT_CLOCK_MAX_MEMORY, 1000 },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, OBP_FACT_COMPUTE_MODE, 1 } };
	size_t total = 0;
	CUuuid uuid = { { 0 } };

	cuda.name(to->name, sizeof to->name, device);
	to->name[sizeof to->name - 1] = '\0';
	if (cuda.uuid(&uuid, device) == CUDA_SUCCESS)
		memcpy(to->uuid, uuid.bytes, sizeof to->uuid);
	cuda.total(&total, device);
	to->total = total;
	to->used = used(device);
	to->units = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	to->clock_khz = attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
	to->capability = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
		attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	to->ptx_only = true;
	for (size_t i = 0; i < ob_count(of); i++)
		obp_fact_set(&to->facts, of[i].fact, attribute(device, of[i].attr) / of[i].divisor);
}

static void peers_fill(CUdevice device, uint32_t n, struct obp_facts *to)
{
	uint64_t peers = 0, atomics = 0;

	for (uint32_t peer = 0; peer < n; peer++) {
		int can = 0, native = 0;

		if ((CUdevice)peer == device)
			continue;
		cuda.can_access(&can, device, (CUdevice)peer);
		cuda.peer(&native, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, device,
			(CUdevice)peer);
		peers |= (uint64_t)(can != 0) << peer;
		atomics |= (uint64_t)(can && native) << peer;
	}
	obp_fact_set(to, OBP_FACT_PEERS, peers);
	obp_fact_set(to, OBP_FACT_PEER_ATOMICS, atomics);
}

static void session_fill(struct obp_load *load)
{
	struct obp_load_session *own = calloc(1, sizeof *own);
	const char *name = program_invocation_short_name;
	uint64_t sum = 0;

	for (uint32_t i = 0; own && i < load->n_devices; i++)
		sum += own->used[i] = load->devices[i].used;
	if (!sum) {
		free(own);
		return;
	}
	own->pid = (uint64_t)getpid();
	own->memory = sum;
	snprintf(own->program, sizeof own->program, "%s", name ? name : "?");
	load->listed = own;
	load->n_sessions = 1;
}

static void load_fill(struct obp_load *ret)
{
	int n = 0, version = 0;

	*ret = (struct obp_load){ .version = OB_VERSION, .driver = "soft" };
	if (cuda.version(&version) == CUDA_SUCCESS && version > 0)
		ret->cuda_version = (uint32_t)version;
	if (cuda.count(&n) == CUDA_SUCCESS && n > 0)
		ret->n_devices = ob_min((uint32_t)n, OBP_DEVICE_MAX);
	for (uint32_t i = 0; i < ret->n_devices; i++)
		device_fill((CUdevice)i, &ret->devices[i]);
	for (uint32_t i = 0; i < ret->n_devices; i++)
		peers_fill((CUdevice)i, ret->n_devices, &ret->devices[i].facts);
	session_fill(ret);
}

/* ---- before the program has initialised CUDA ---- */

_Thread_local bool obc_nvml_forking;

static void child(int fd)
{
	struct obp_load load;

	if (cuda.init(0) != CUDA_SUCCESS)
		_exit(1);
	load_fill(&load);
	obp_load_fini(&load);
	_exit(write(fd, &load, sizeof load) != sizeof load); /* a pipe takes it at once */
}

static bool answer_read(int fd, struct obp_load *ret)
{
	struct pollfd input = { .fd = fd, .events = POLLIN };
	uint64_t deadline = ob_clock_ns() + CHILD_NS, now;
	size_t got = 0;

	while (got < sizeof *ret && (now = ob_clock_ns()) < deadline) {
		ssize_t n = -1;

		if (poll(&input, 1, (int)((deadline - now) / OB_MS + 1)) > 0)
			n = read(fd, (uint8_t *)ret + got, sizeof *ret - got);
		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		got += n > 0 ? (size_t)n : 0;
	}
	return got == sizeof *ret;
}

static enum ob_err ask_child(struct obp_load *ret, struct ob_cause *ret_cause)
{
	static struct obp_load kept; /* a device without CUDA in use does not change */
	static bool known;
	int ends[2];
	pid_t pid;

	if (!known) {
		if (pipe2(ends, O_CLOEXEC) != 0)
			return ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "no pipe");
		obc_nvml_forking = true;
		pid = fork();
		obc_nvml_forking = false;
		if (pid == 0)
			child(ends[1]);
		close(ends[1]);
		known = pid > 0 && answer_read(ends[0], &kept);
		close(ends[0]);
		if (pid > 0) {
			kill(pid, SIGKILL);
			while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
				;
		}
	}
	if (!known)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER, "cuInit of libcuda.so.1 fails");
	*ret = kept;
	return OB_ERR_NONE;
}

enum ob_err obc_nvml_direct(struct obp_load *ret, struct ob_cause *ret_cause)
{
	enum ob_err err = cuda.info ? OB_ERR_NONE : load_driver(ret_cause);
	int n;

	if (err) {
		cuda.info = NULL;
		return err;
	}
	if (cuda.count(&n) != CUDA_SUCCESS)
		return ask_child(ret, ret_cause);
	load_fill(ret);
	return OB_ERR_NONE;
}
