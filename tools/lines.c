/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/lines.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cuda_types.h"
#include "tools/command.h"

struct request {
	uint64_t what, bytes;
};

/* ---- the child ---- */

static struct calls {
	CUresult (*init)(unsigned);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set)(CUcontext);
	CUresult (*synchronize)(void);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*to_device)(CUdeviceptr, const void *, size_t);
	CUresult (*to_host)(void *, CUdeviceptr, size_t);
} calls;

static bool session_begin(size_t bytes, CUdeviceptr *ret_device)
{
	static const struct {
		void **at;
		const char *name;
	} names[] = {
		{ (void **)&calls.init, "cuInit" },
		{ (void **)&calls.retain, "cuDevicePrimaryCtxRetain" },
		{ (void **)&calls.set, "cuCtxSetCurrent" },
		{ (void **)&calls.synchronize, "cuCtxSynchronize" },
		{ (void **)&calls.alloc, "cuMemAlloc_v2" },
		{ (void **)&calls.to_device, "cuMemcpyHtoD_v2" },
		{ (void **)&calls.to_host, "cuMemcpyDtoH_v2" },
	};
	char path[4096];
	void *library = obx_find_file("libcuda.so.1", path, sizeof path)
		? dlopen(path, RTLD_NOW | RTLD_LOCAL)
		: NULL;
	CUcontext context;

	for (size_t i = 0; library && i < sizeof names / sizeof names[0]; i++)
		if (!(*names[i].at = dlsym(library, names[i].name)))
			return false;
	return library && calls.init(0) == CUDA_SUCCESS &&
		calls.retain(&context, 0) == CUDA_SUCCESS && calls.set(context) == CUDA_SUCCESS &&
		calls.alloc(ret_device, bytes) == CUDA_SUCCESS;
}

static uint64_t copy(const struct request *request, CUdeviceptr device, void *host)
{
	uint64_t began = ob_clock_ns();
	CUresult result;

	if (request->what == OBX_LINE_UP) {
		result = calls.to_device(device, host, request->bytes);
		if (result == CUDA_SUCCESS)
			result = calls.synchronize();
	} else {
		result = calls.to_host(host, device, request->bytes);
	}
	return result == CUDA_SUCCESS ? ob_clock_ns() - began : 0;
}

static void child_main(int fd, void *host, size_t bytes)
{
	struct request request;
	CUdeviceptr device = 0;
	uint64_t took;
	bool ok = session_begin(bytes, &device);

	while (recv(fd, &request, sizeof request, MSG_WAITALL) == sizeof request && request.what) {
		took = ok && request.bytes <= bytes ? copy(&request, device, host) : 0;
		if (send(fd, &took, sizeof took, MSG_NOSIGNAL) != sizeof took)
			break;
	}
	exit(0); /* the library sends its goodbye */
}

/* ---- the parent ---- */

bool obx_line_start(struct obx_line *line, const char *const *environment, void *host, size_t bytes)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return false;
	*line = (struct obx_line){ .fd = fds[0] };
	fflush(NULL);
	line->pid = fork();
	if (line->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		close(fds[0]);
		for (; *environment; environment++)
			putenv((char *)(uintptr_t)*environment);
		child_main(fds[1], host, bytes);
	}
	close(fds[1]);
	return line->pid > 0;
}

void obx_line_stop(struct obx_line *line)
{
	const struct request stop = { 0 };
	/* closing would not end the child: children started later hold this end too */
	ssize_t sent = send(line->fd, &stop, sizeof stop, MSG_NOSIGNAL);

	(void)sent;
	close(line->fd);
	if (line->pid > 0)
		waitpid(line->pid, NULL, 0);
}

uint64_t obx_line_copy(struct obx_line *line, enum obx_line_what what, size_t bytes)
{
	struct request request = { what, bytes };
	uint64_t took;

	if (send(line->fd, &request, sizeof request, MSG_NOSIGNAL) != sizeof request ||
		recv(line->fd, &took, sizeof took, MSG_WAITALL) != sizeof took)
		return 0;
	return took;
}
