/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake = { .n_devices = 2, .cc = 90, .registers = 32 };

static const struct {
	CUdevice_attribute attr;
	int value;
} figures[] = {
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472 },
	{ CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024 },
	{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
	{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536 },
	{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536 },
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32 },
	{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132 },
	{ CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1 },
	{ CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1 },
	{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
	{ CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536 },
	{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000 },
	{ CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512 },
	{ CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 256 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 128 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, 4096 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 131072 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 131072 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 65536 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32768 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32768 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, 16384 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, 16384 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, 16384 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 8192 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 8192 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 32768 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, 131072 },
	{ CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, 65536 },
};

static CUresult start(struct obf_device *ret_devices, int *ret_count)
{
	fake.starts++;
	if (fake.start_result != CUDA_SUCCESS)
		return fake.start_result;
	for (int i = 0; i < fake.n_devices; i++) {
		struct obf_device *device = &ret_devices[i];

		memset(device, 0, sizeof *device);
		snprintf(device->name, sizeof device->name, "Fake device %d", i);
		for (int k = 0; k < 16; k++)
			device->uuid.bytes[k] = (char)(16 * i + k);
		device->total_mem = 1ull << 34;
		device->ptx_only = fake.ptx_only;
		/*
		 * The runtime asks for attributes that mean nothing here: they are all known, and
		 * 0.
		 */
		for (int k = 1; k < CU_DEVICE_ATTRIBUTE_MAX; k++)
			device->attr_known[k] = true;
		for (size_t k = 0; k < sizeof figures / sizeof figures[0]; k++)
			device->attr[figures[k].attr] = figures[k].value;
		device->attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = fake.cc / 10;
		device->attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = fake.cc % 10;
		device->attr[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID] = 1;
		device->attr[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = 0x1a + i;
		device->attr[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] = 3;
	}
	*ret_count = fake.n_devices;
	return CUDA_SUCCESS;
}

static void visible(const int *ordinals, int n)
{
	fake.n_visible = n;
	memcpy(fake.visible, ordinals, (size_t)n * sizeof *ordinals);
}

static CUresult alive(void)
{
	return fake.alive_result;
}

static CUresult ctx_create(struct obf_ctx *ctx)
{
	fake.creates++;
	ctx->backend = &fake;
	return fake.create_result;
}

static CUresult ctx_destroy(struct obf_ctx *ctx)
{
	fake.destroys++;
	(void)ctx;
	return fake.destroy_result;
}

/* Like the real ones these wait for the calling thread's current context. */
static CUresult ctx_synchronize(struct obf_ctx *ctx)
{
	fake.syncs++;
	return obf_ctx_peek() == ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult ctx_settle(struct obf_ctx *ctx)
{
	fake.settles++;
	return obf_ctx_peek() == ctx ? fake.settle_result : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult ctx_limit(struct obf_ctx *ctx, CUlimit limit, bool set, size_t *value)
{
	static size_t limits[CU_LIMIT_MAX] = { 1024, 1 << 20, 8 << 20 };

	(void)ctx;
	fake.limits++;
	if (set)
		limits[limit] = *value;
	else
		*value = limits[limit];
	return CUDA_SUCCESS;
}

static CUresult stream_open(struct obf_stream *stream)
{
	fake.streams += !stream->legacy;
	return CUDA_SUCCESS;
}

static void stream_close(struct obf_stream *stream, bool ctx_ended)
{
	(void)ctx_ended;
	fake.streams -= !stream->legacy;
	obf_stream_recycle(stream);
}

static CUresult stream_look(struct obf_stream *stream)
{
	(void)stream;
	fake.looks++;
	return fake.look_result;
}

static CUresult stream_wait_event(struct obf_stream *stream, struct obf_event *event)
{
	(void)stream;
	(void)event;
	fake.looks++;
	return CUDA_SUCCESS;
}

static CUresult event_open(struct obf_event *event)
{
	(void)event;
	fake.events++;
	return CUDA_SUCCESS;
}

static CUresult event_close(struct obf_event *event, bool ctx_ended)
{
	(void)event;
	(void)ctx_ended;
	fake.events--;
	return CUDA_SUCCESS;
}

static CUresult event_record(struct obf_event *event, struct obf_stream *stream)
{
	(void)event;
	(void)stream;
	fake.records++;
	return CUDA_SUCCESS;
}

static CUresult event_look(struct obf_event *event)
{
	(void)event;
	fake.looks++;
	return fake.look_result;
}

static CUresult event_elapsed(struct obf_event *start, struct obf_event *end, float *ret)
{
	(void)start;
	(void)end;
	*ret = 1.5f;
	return fake.look_result;
}

/* "Device" memory is the process's own. */
static CUresult write_bytes(
	struct obf_stream *stream, uint64_t dst, const void *src, size_t size, bool blocking)
{
	(void)stream;
	(void)blocking;
	memcpy((void *)(uintptr_t)dst, src, size);
	return CUDA_SUCCESS;
}

static CUresult read_bytes(
	struct obf_stream *stream, void *dst, uint64_t src, size_t size, bool blocking)
{
	(void)stream;
	(void)blocking;
	memcpy(dst, (const void *)(uintptr_t)src, size);
	return CUDA_SUCCESS;
}

static CUresult copy(struct obf_stream *stream, const struct obf_copy *what, bool blocking)
{
	(void)stream;
	(void)blocking;
	fake.last_copy = *what;
	fake.copies++;
	return CUDA_SUCCESS;
}

static CUresult fill(struct obf_stream *stream, const struct obf_fill *what)
{
	(void)stream;
	obf_fill_rows(what);
	return CUDA_SUCCESS;
}

static CUresult stream_value(struct obf_stream *stream, const struct obf_value *value)
{
	(void)stream;
	if (!value->wait)
		memcpy((void *)(uintptr_t)value->addr, &value->value, value->bytes);
	return CUDA_SUCCESS;
}

static CUresult host_function(struct obf_stream *stream, const struct obf_host_function *function)
{
	(void)stream;
	obf_host_function_run(function, CUDA_SUCCESS);
	return CUDA_SUCCESS;
}

/* The arguments of a launch are what a test looks at. */
static CUresult launch(struct obf_stream *stream, struct obf_func *func,
	const struct obf_launch *what, void *packed)
{
	(void)stream;
	fake.launches++;
	fake.last_launch = *what;
	memcpy(fake.last_packed, packed, func->param_bytes < 64 ? func->param_bytes : 64);
	return CUDA_SUCCESS;
}

static void ctx_release(struct obf_ctx *ctx)
{
	(void)ctx;
	fake.releases++;
}

static CUresult mem_alloc(struct obf_ctx *ctx, struct obf_mem *mem)
{
	(void)ctx;
	mem->backend = malloc(mem->size);
	mem->base = (uintptr_t)mem->backend;
	fake.allocs++;
	return mem->backend ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What a test puts into the map itself is not of malloc. */
static CUresult mem_free(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use)
{
	(void)ctx;
	(void)in_use;
	free(mem->backend);
	fake.allocs -= mem->backend != NULL;
	return CUDA_SUCCESS;
}

static CUresult mem_info(struct obf_ctx *ctx, uint64_t *ret_free, uint64_t *ret_total)
{
	(void)ctx;
	*ret_free = 1u << 20;
	*ret_total = 1u << 30;
	return CUDA_SUCCESS;
}

static CUresult point_take(struct obf_stream *stream, struct obf_point *ret)
{
	(void)stream;
	ret->words[0] = 1;
	fake.points++;
	return CUDA_SUCCESS;
}

static bool point_passed(const struct obf_point *point)
{
	return point->words[0] && fake.passed;
}

static void point_drop(struct obf_point *point)
{
	point->words[0] = 0;
	fake.points--;
}

static CUresult mod_load(struct obf_mod *mod, const struct obf_image_ref *image)
{
	size_t n = image->payload_size < sizeof fake.last_payload ? image->payload_size
								  : sizeof fake.last_payload - 1;

	(void)mod;
	fake.loads++;
	memcpy(fake.last_payload, image->payload, n);
	fake.last_payload[n] = 0;
	fake.last_from_text = image->from_text;
	return fake.load_result;
}

static void mod_unload(struct obf_mod *mod)
{
	(void)mod;
	fake.unloads++;
}

static CUresult func_get(struct obf_func *func)
{
	func->backend_id = (uint64_t)++fake.func_gets;
	return CUDA_SUCCESS;
}

static CUresult func_load(struct obf_func *func)
{
	(void)func;
	fake.func_loads++;
	return fake.func_load_result;
}

static CUresult func_attrs(struct obf_func *func)
{
	fake.func_attrs++;
	func->attrs.registers = fake.registers;
	func->attrs.shared_bytes = fake.shared_bytes;
	func->attrs.max_dynamic_shared = 49152 - fake.shared_bytes;
	return CUDA_SUCCESS;
}

static CUresult func_set_attr(struct obf_func *func, CUfunction_attribute attr, int value)
{
	(void)func;
	fake.func_sets++;
	fake.last_attr = attr;
	fake.last_value = value;
	return CUDA_SUCCESS;
}

static CUresult global_get(
	struct obf_mod *mod, const char *name, CUdeviceptr *ret_addr, size_t *ret_size)
{
	(void)mod;
	(void)name;
	*ret_addr = 0x300000000000ull + (CUdeviceptr)(0x1000 * ++fake.globals);
	if (fake.global_addr)
		*ret_addr = fake.global_addr;
	*ret_size = 64;
	return CUDA_SUCCESS;
}

/* Addresses one after the other, or those that are wanted. */
static CUresult vmm_reserve(struct obf_reservation *r, uint64_t align, uint64_t wanted)
{
	static uint64_t next = 0x400000000000;

	if (!wanted)
		next = wanted = (next + align - 1) & ~(align - 1);
	r->base = wanted;
	r->backend = &fake;
	next += r->size;
	fake.reservations += fake.vmm_result == CUDA_SUCCESS;
	return fake.vmm_result;
}

static void vmm_unreserve(const struct obf_reservation *r)
{
	fake.reservations -= r->backend == &fake;
}

static CUresult vmm_map(uint64_t addr, uint64_t size, uint64_t offset,
	CUmemGenericAllocationHandle handle, int *ret_device)
{
	(void)addr;
	(void)size;
	(void)offset;
	*ret_device = (int)handle;
	fake.mappings += fake.vmm_result == CUDA_SUCCESS;
	return fake.vmm_result;
}

static CUresult vmm_unmap(uint64_t addr, uint64_t size)
{
	(void)addr;
	fake.last_unmapped = size;
	fake.mappings -= fake.vmm_result == CUDA_SUCCESS;
	return fake.vmm_result;
}

static bool vmm_offered(void)
{
	return !fake.no_vmm;
}

/* ---- sharing: an id is a number; what is opened lies at addresses of its own ---- */

static unsigned shares(void)
{
	return fake.shares;
}

static CUresult vmm_export(CUmemGenericAllocationHandle handle, int *ret_fd)
{
	*ret_fd = (int)handle;
	return fake.share_result;
}

static CUresult vmm_import(int fd, CUmemGenericAllocationHandle *ret)
{
	*ret = (CUmemGenericAllocationHandle)fd + 1000;
	return fake.share_result;
}

static CUresult vmm_retain(uint64_t addr, CUmemGenericAllocationHandle *ret)
{
	*ret = addr >> 21;
	return fake.share_result;
}

static CUresult range_export(const struct obf_mem *mem, struct obf_share *ret)
{
	ret->id[0] = mem->base;
	ret->offset = 4096;
	ret->size = mem->size;
	ret->span = OBF_VMM_PAGE;
	fake.exports++;
	return fake.share_result;
}

static CUresult range_open(const struct obf_share *share, struct obf_mem *ret)
{
	static uint64_t next = 0x500000000000;

	ret->base = next += share->span;
	ret->size = share->size;
	fake.opens += fake.share_result == CUDA_SUCCESS;
	return fake.share_result;
}

static CUresult range_close(const struct obf_mem *mem)
{
	fake.opens -= mem->imported;
	return CUDA_SUCCESS;
}

static CUresult share_event(struct obf_event *event, struct obf_share *ret)
{
	ret->id[0] = event->handle;
	return fake.share_result;
}

static CUresult import_event(struct obf_event *event, const struct obf_share *share)
{
	fake.events += event->handle != share->id[0] && fake.share_result == CUDA_SUCCESS;
	return fake.share_result;
}

static CUresult pool_export(int device, struct obf_share *ret)
{
	ret->id[0] = (uint64_t)++fake.exports;
	ret->id[1] = (uint64_t)device;
	return fake.share_result;
}

static CUresult pool_import(const struct obf_share *share, int *ret_device)
{
	*ret_device = (int)share->id[1];
	return fake.share_result;
}

static const struct obf_sharing sharing = {
	.offers = shares,
	.vmm_export = vmm_export,
	.vmm_import = vmm_import,
	.vmm_retain = vmm_retain,
	.range_export = range_export,
	.range_open = range_open,
	.range_close = range_close,
	.event_export = share_event,
	.event_import = import_event,
	.pool_export = pool_export,
	.pool_import = pool_import,
};

static void host_range(const void *p, size_t size, bool added)
{
	(void)p;
	(void)size;
	fake.ranges += added ? 1 : -1;
}

void fake_attach(const struct obf_proc *procs, size_t n_procs)
{
	static struct obf_backend backend = {
		.driver_version = 13000,
		.start = start,
		.visible = visible,
		.alive = alive,
		.ctx_create = ctx_create,
		.ctx_destroy = ctx_destroy,
		.ctx_release = ctx_release,
		.ctx_synchronize = ctx_synchronize,
		.ctx_settle = ctx_settle,
		.ctx_limit = ctx_limit,
		.stream_size = sizeof(struct obf_stream),
		.stream_open = stream_open,
		.stream_close = stream_close,
		.stream_query = stream_look,
		.stream_wait = stream_look,
		.stream_wait_event = stream_wait_event,
		.event_size = sizeof(struct obf_event),
		.event_open = event_open,
		.event_close = event_close,
		.event_record = event_record,
		.event_query = event_look,
		.event_wait = event_look,
		.event_elapsed = event_elapsed,
		.write = write_bytes,
		.read = read_bytes,
		.copy = copy,
		.fill = fill,
		.stream_value = stream_value,
		.host_function = host_function,
		.launch = launch,
		.graph_all = true,
		.graph_condition = fake_graph_condition,
		.graph_make = fake_graph_make,
		.graph_drop = fake_graph_drop,
		.graph_launch = fake_graph_launch,
		.graph_upload = fake_graph_upload,
		.graph_set = fake_graph_set,
		.graph_enable = fake_graph_enable,
		.mem_alloc = mem_alloc,
		.mem_free = mem_free,
		.mem_info = mem_info,
		.point_take = point_take,
		.point_passed = point_passed,
		.point_drop = point_drop,
		.mod_load = mod_load,
		.mod_unload = mod_unload,
		.func_get = func_get,
		.func_load = func_load,
		.func_attrs = func_attrs,
		.func_set_attr = func_set_attr,
		.global_get = global_get,
		.array_create = fake_array_make,
		.array_destroy = fake_array_destroy,
		.array_part = fake_array_make,
		.array_copy = fake_array_copy,
		.texture_create = fake_texture_create,
		.texture_destroy = fake_texture_destroy,
		.texref_open = fake_texref_open,
		.texref_close = fake_texref_close,
		.texref_set = fake_texref_set,
		.texref_param = fake_texref_param,
		.host_range = host_range,
		.vmm_offered = vmm_offered,
		.vmm_reserve = vmm_reserve,
		.vmm_unreserve = vmm_unreserve,
		.vmm_map = vmm_map,
		.vmm_unmap = vmm_unmap,
		.sharing = &sharing,
	};

	backend.procs = procs;
	backend.n_procs = n_procs;
	obf_attach(&backend);
}
