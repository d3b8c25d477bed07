/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuOccupancy*: how many blocks of a function fit on one multiprocessor, from the device's
 * attributes and the granularities in which the hardware allocates registers and shared memory (the
 * CUDA programming guide's tables of compute capabilities).
 */
#include "front/private.h"
#include "protocol/obf_calls.h"

#define REGISTER_UNIT    256u /* registers of a warp are rounded up to this */
/* the warps of a multiprocessor are distributed over four schedulers */
#define WARP_UNIT        4u
#define SHARED_UNIT_OLD  256u /* compute capability 7.x */
#define SHARED_UNIT      128u /* 8.0 and later */
#define CLUSTER_PORTABLE 8
#define CLUSTER_MAX      16

struct machine {
	uint32_t warp, threads, blocks, registers, registers_block, shared, shared_reserved,
		shared_unit, shared_block;
};

static void machine_of(const struct obf_device *device, struct machine *ret)
{
	uint32_t shared_block = (uint32_t)obf_device_attr(
		device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10);

	*ret = (struct machine){
		.warp = (uint32_t)ob_max(
			obf_device_attr(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32), 1),
		.threads = (uint32_t)obf_device_attr(
			device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1024),
		.blocks = (uint32_t)obf_device_attr(
			device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 16),
		.registers = (uint32_t)obf_device_attr(
			device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536),
		.registers_block = (uint32_t)obf_device_attr(
			device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536),
		.shared = (uint32_t)obf_device_attr(device,
			CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
			(int)shared_block),
		.shared_reserved = (uint32_t)obf_device_attr(
			device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0),
		.shared_unit = obf_device_cc(device) >= 80 ? SHARED_UNIT : SHARED_UNIT_OLD,
		.shared_block = (uint32_t)obf_device_attr(device,
			CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, (int)shared_block),
	};
}

static uint64_t blocks_by_registers(const struct machine *m, uint32_t registers, uint32_t warps)
{
	uint64_t per_warp = ob_round_up((uint64_t)registers * m->warp, REGISTER_UNIT), fit;

	if (per_warp == 0)
		return m->blocks;
	/*
	 * A block must fit into its part of the register file, and the warps of each scheduler into
	 * a quarter of it.
	 */
	fit = m->registers_block / per_warp / WARP_UNIT * WARP_UNIT;
	if (ob_round_up(warps, WARP_UNIT) > fit)
		return 0;
	return fit / warps * (m->registers / ob_max(m->registers_block, 1u));
}

static uint64_t blocks_by_shared(const struct machine *m, uint64_t bytes)
{
	uint64_t block = ob_round_up(bytes + m->shared_reserved, m->shared_unit);

	if (bytes > m->shared_block)
		return 0;
	return block == 0 ? m->blocks : m->shared / block;
}

int obf_occupancy_blocks(
	const struct obf_function *function, uint32_t threads, size_t dynamic_shared)
{
	const struct obf_func_attrs *attrs = &function->pub.attrs;
	struct machine m;
	uint32_t warps;
	uint64_t blocks;

	machine_of(function->device, &m);
	if (threads == 0 || threads > (uint32_t)attrs->max_threads ||
		dynamic_shared > (size_t)attrs->max_dynamic_shared)
		return 0;
	warps = (threads + m.warp - 1) / m.warp;
	blocks = ob_min(m.blocks, m.threads / m.warp / warps);
	blocks = ob_min(blocks, blocks_by_registers(&m, (uint32_t)attrs->registers, warps));
	blocks = ob_min(
		blocks, blocks_by_shared(&m, (uint64_t)attrs->shared_bytes + dynamic_shared));
	return (int)blocks;
}

/* Resolves the function and makes its attributes exact. */
static CUresult enter(CUfunction handle, const void *ret, struct obf_function **ret_function)
{
	CUresult result = obf_function_enter(handle, ret_function);

	if (result != CUDA_SUCCESS)
		return result;
	return ret ? obf_function_exact(*ret_function) : CUDA_ERROR_INVALID_VALUE;
}

CUresult obf_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *blocks, CUfunction handle, int block_size, size_t dynamic_shared, unsigned flags)
{
	struct obf_function *function;
	CUresult result = enter(handle, blocks, &function);

	if (result != CUDA_SUCCESS)
		return result;
	if (block_size <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = obf_occupancy_blocks(function, (uint32_t)block_size, dynamic_shared);
	return CUDA_SUCCESS;
}

CUresult obf_cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *blocks, CUfunction handle, int block_size, size_t dynamic_shared)
{
	return obf_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		blocks, handle, block_size, dynamic_shared, CU_OCCUPANCY_DEFAULT);
}

CUresult obf_cuOccupancyMaxPotentialBlockSizeWithFlags(int *min_grid, int *block_size,
	CUfunction handle, CUoccupancyB2DSize block_to_shared, size_t dynamic_shared,
	int block_limit, unsigned flags)
{
	struct obf_function *function;
	CUresult result = enter(handle, min_grid && block_size ? min_grid : NULL, &function);
	struct machine m;
	int best_threads = 0, best_size = 0, best_blocks = 0, top;

	if (result != CUDA_SUCCESS)
		return result;
	if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE || block_limit < 0)
		return CUDA_ERROR_INVALID_VALUE;
	machine_of(function->device, &m);
	top = function->pub.attrs.max_threads;
	if (block_limit > 0 && block_limit < top)
		top = block_limit;
	/*
	 * Tries block sizes downwards in whole warps. Of two sizes with the same number of resident
	 * threads the larger is chosen.
	 */
	for (int size = (int)ob_round_up((uint64_t)top, m.warp); size > 0; size -= (int)m.warp) {
		int threads = ob_min(size, top);
		size_t shared = block_to_shared ? block_to_shared(threads) : dynamic_shared;
		int blocks = obf_occupancy_blocks(function, (uint32_t)threads, shared);

		if (threads * blocks > best_threads) {
			best_threads = threads * blocks;
			best_size = threads;
			best_blocks = blocks;
		}
		if (best_threads >= (int)m.threads)
			break;
	}
	*block_size = best_size;
	*min_grid = best_blocks *
		obf_device_attr(function->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
	return CUDA_SUCCESS;
}

CUresult obf_cuOccupancyMaxPotentialBlockSize(int *min_grid, int *block_size, CUfunction handle,
	CUoccupancyB2DSize block_to_shared, size_t dynamic_shared, int block_limit)
{
	return obf_cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid, block_size, handle,
		block_to_shared, dynamic_shared, block_limit, CU_OCCUPANCY_DEFAULT);
}

CUresult obf_cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *dynamic_shared, CUfunction handle, int blocks, int block_size)
{
	struct obf_function *function;
	CUresult result = enter(handle, dynamic_shared, &function);
	struct machine m;
	uint64_t share, used;

	if (result != CUDA_SUCCESS)
		return result;
	if (blocks <= 0 || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (obf_occupancy_blocks(function, (uint32_t)block_size, 0) < blocks)
		return CUDA_ERROR_INVALID_VALUE;
	machine_of(function->device, &m);
	share = m.shared / (uint32_t)blocks / m.shared_unit * m.shared_unit;
	share = share > m.shared_reserved ? share - m.shared_reserved : 0;
	used = (uint64_t)function->pub.attrs.shared_bytes;
	share = ob_min(share, m.shared_block);
	*dynamic_shared = share > used ? share - used : 0;
	return CUDA_SUCCESS;
}

CUresult obf_cuOccupancyMaxPotentialClusterSize(
	int *size, CUfunction handle, const CUlaunchConfig *config)
{
	struct obf_function *function;
	CUresult result = enter(handle, config ? size : NULL, &function);
	const struct obf_func_attrs *attrs;

	if (result != CUDA_SUCCESS)
		return result;
	attrs = &function->pub.attrs;
	if (attrs->cluster[0] > 0)
		*size = attrs->cluster[0] * ob_max(attrs->cluster[1], 1) *
			ob_max(attrs->cluster[2], 1);
	else if (!obf_device_attr(function->device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0))
		*size = 1;
	else
		*size = attrs->non_portable_cluster ? CLUSTER_MAX : CLUSTER_PORTABLE;
	return CUDA_SUCCESS;
}

/*
 * How a device's multiprocessors are grouped (graphics processing clusters): `n` groups of `units`,
 * of which the first `n_larger` have one pair more. A cluster of blocks runs inside one group. No
 * attribute describes the groups, and they differ from chip to chip; this spreads the pairs of
 * multiprocessors evenly. Numbers of groups: NVIDIA's white papers on Hopper and Blackwell.
 */
struct groups {
	uint32_t n, units, n_larger;
};

static struct groups groups_of(const struct obf_device *device)
{
	uint32_t units =
		(uint32_t)obf_device_attr(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
	uint32_t pairs = ob_max(units / 2, 1u);
	uint32_t n = ob_min(obf_device_cc(device) >= 120 ? 12u : 8u, pairs);

	return (struct groups){ .n = n, .units = pairs / n * 2, .n_larger = pairs % n };
}

CUresult obf_cuOccupancyMaxActiveClusters(
	int *clusters, CUfunction handle, const CUlaunchConfig *config)
{
	struct obf_function *function;
	struct obf_launch launch;
	CUresult result = enter(handle, config ? clusters : NULL, &function);
	uint64_t size = 1, threads, per_unit;
	struct groups groups;

	if (result == CUDA_SUCCESS)
		result = obf_launch_from_config(config, &launch);
	if (result != CUDA_SUCCESS)
		return result;
	for (int i = 0; i < 3; i++)
		size *= function->pub.attrs.cluster[0] > 0
			? (uint32_t)ob_max(function->pub.attrs.cluster[i], 1)
			: launch.cluster[i];
	groups = groups_of(function->device);
	/* Not CLUSTER_MAX, which limits launches: cuBLAS 12.0 finds out the groups by larger ones. */
	if (size > groups.units + (groups.n_larger ? 2 : 0) ||
		!obf_device_attr(function->device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	threads = (uint64_t)launch.block[0] * launch.block[1] * launch.block[2];
	if (threads == 0 || threads > UINT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	per_unit =
		(uint64_t)obf_occupancy_blocks(function, (uint32_t)threads, launch.dynamic_shared);
	*clusters = (int)(groups.n_larger * ((groups.units + 2) * per_unit / size) +
		(groups.n - groups.n_larger) * (groups.units * per_unit / size));
	return CUDA_SUCCESS;
}
