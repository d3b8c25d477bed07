/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/vmm_share.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front/front.h"
#include "softdevice/device.h"
#include "softdevice/vmm_inside.h"
#include "softdevice/window.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The page behind the memory. It may come from another process. */
struct description {
	char magic[8];
	uint64_t size;
	uint32_t device;
};

static const char magic[8] = "obd-mem1";

bool obd_physical_file(struct obd_physical *physical)
{
	const struct description description = {
		.magic = "obd-mem1", .size = physical->size, .device = physical->device->ordinal
	};
	int fd = memfd_create("outboard-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return false;
	if (!obd_file_size_allowed(physical->size + OBD_PAGE) ||
		ftruncate(fd, (off_t)(physical->size + OBD_PAGE)) != 0 ||
		pwrite(fd, &description, sizeof description, (off_t)physical->size) !=
			(ssize_t)sizeof description ||
		fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
		close(fd);
		return false;
	}
	physical->fd = fd;
	return true;
}

CUresult obd_vmm_export(CUmemGenericAllocationHandle handle, int *ret_fd)
{
	bool known;
	int fd = obd_physical_dup(handle, &known);

	if (!known)
		return CUDA_ERROR_INVALID_VALUE;
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_fd = fd;
	return CUDA_SUCCESS;
}

/* Whether the file is memory of a software device, whose size no process can change any more. */
static bool describe(int fd, struct description *ret)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &stat) != 0 ||
		stat.st_size <= (off_t)OBD_PAGE || (stat.st_size - (off_t)OBD_PAGE) % OBD_UNIT)
		return false;
	if (pread(fd, ret, sizeof *ret, stat.st_size - (off_t)OBD_PAGE) != (ssize_t)sizeof *ret)
		return false;
	return memcmp(ret->magic, magic, sizeof magic) == 0 &&
		ret->size == (uint64_t)stat.st_size - OBD_PAGE &&
		(int64_t)ret->device < obf_device_count();
}

CUresult obd_vmm_import(int fd, CUmemGenericAllocationHandle *ret)
{
	struct obd_physical *physical;
	struct description description;

	if (!describe(fd, &description))
		return CUDA_ERROR_INVALID_VALUE;
	physical = calloc(1, sizeof *physical);
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*physical = (struct obd_physical){ .device = &obd_devices[description.device],
		.prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
			.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
			.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
				.id = (int)description.device } },
		.size = description.size,
		.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0),
		.imported = true,
		.refs = 1 };
	if (physical->fd >= 0)
		*ret = obd_physical_enter(physical);
	if (physical->fd >= 0 && *ret)
		return CUDA_SUCCESS;
	if (physical->fd >= 0)
		close(physical->fd);
	free(physical);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult obd_vmm_retain(uint64_t addr, CUmemGenericAllocationHandle *ret)
{
	uint64_t id = obd_physical_retain(addr);

	if (!id)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = id;
	return CUDA_SUCCESS;
}
