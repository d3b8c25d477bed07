/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Each function does what the driver's function of its name does. What the operations call is here;
 * work given by another call would not be seen.
 */
#include "server/worker/device_calls.h"

#include <stdatomic.h>

#include "protocol/obs_driver.h"
#include "server/worker/device_times.h"

/* Other threads may still be in a function when the table is made again. */
static const struct obs_driver *_Atomic next;

static const struct obs_driver *driver(void)
{
	return atomic_load_explicit(&next, memory_order_acquire);
}

/* Work for a stream. */
#define TIMED(stream, call)                        \
	do {                                       \
		struct obs_device_work work;       \
		CUresult result;                   \
                                                   \
		obs_device_begin(&work, (stream)); \
		result = driver()->call;           \
		obs_device_end(&work, result);     \
		return result;                     \
	} while (0)

/* The stream waits for something, or does what is no work. */
#define INTERRUPTED(stream, call)               \
	do {                                    \
		CUresult result;                \
                                                \
		result = driver()->call;        \
		obs_device_interrupted(stream); \
		return result;                  \
	} while (0)

/* ---- launches ---- */

static CUresult launch(CUfunction func, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	TIMED(stream, cuLaunchKernel(func, gx, gy, gz, bx, by, bz, shared, stream, params, extra));
}

static CUresult launch_ex(
	const CUlaunchConfig *config, CUfunction func, void **params, void **extra)
{
	TIMED(config->hStream, cuLaunchKernelEx(config, func, params, extra));
}

static CUresult graph_launch(CUgraphExec exec, CUstream stream)
{
	TIMED(stream, cuGraphLaunch(exec, stream));
}

/* ---- copies ---- */

static CUresult h_to_d(CUdeviceptr dst, const void *src, size_t bytes)
{
	TIMED(NULL, cuMemcpyHtoD_v2(dst, src, bytes));
}

static CUresult h_to_d_async(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	TIMED(stream, cuMemcpyHtoDAsync_v2(dst, src, bytes, stream));
}

static CUresult d_to_h_async(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	TIMED(stream, cuMemcpyDtoHAsync_v2(dst, src, bytes, stream));
}

static CUresult d_to_d_async(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	TIMED(stream, cuMemcpyDtoDAsync_v2(dst, src, bytes, stream));
}

static CUresult copy_2d_async(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	TIMED(stream, cuMemcpy2DAsync_v2(copy, stream));
}

static CUresult copy_3d_async(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	TIMED(stream, cuMemcpy3DAsync_v2(copy, stream));
}

static CUresult peer_async(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
	size_t bytes, CUstream stream)
{
	TIMED(stream, cuMemcpyPeerAsync(dst, dst_ctx, src, src_ctx, bytes, stream));
}

static CUresult peer_3d_async(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	TIMED(stream, cuMemcpy3DPeerAsync(copy, stream));
}

/* ---- fills ---- */

static CUresult fill_8(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	TIMED(stream, cuMemsetD8Async(dst, value, count, stream));
}

static CUresult fill_16(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
	TIMED(stream, cuMemsetD16Async(dst, value, count, stream));
}

static CUresult fill_32(CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
	TIMED(stream, cuMemsetD32Async(dst, value, count, stream));
}

static CUresult fill_2d_8(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
	size_t height, CUstream stream)
{
	TIMED(stream, cuMemsetD2D8Async(dst, pitch, value, width, height, stream));
}

static CUresult fill_2d_16(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
	size_t height, CUstream stream)
{
	TIMED(stream, cuMemsetD2D16Async(dst, pitch, value, width, height, stream));
}

static CUresult fill_2d_32(
	CUdeviceptr dst, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream)
{
	TIMED(stream, cuMemsetD2D32Async(dst, pitch, value, width, height, stream));
}

/* ---- what is no work ---- */

static CUresult wait_event(CUstream stream, CUevent event, unsigned flags)
{
	INTERRUPTED(stream, cuStreamWaitEvent(stream, event, flags));
}

static CUresult host_func(CUstream stream, CUhostFn fn, void *user)
{
	INTERRUPTED(stream, cuLaunchHostFunc(stream, fn, user));
}

static CUresult add_callback(CUstream stream, CUstreamCallback fn, void *user, unsigned flags)
{
	INTERRUPTED(stream, cuStreamAddCallback(stream, fn, user, flags));
}

static CUresult write_32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned flags)
{
	INTERRUPTED(stream, cuStreamWriteValue32_v2(stream, addr, value, flags));
}

static CUresult write_64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned flags)
{
	INTERRUPTED(stream, cuStreamWriteValue64_v2(stream, addr, value, flags));
}

static CUresult wait_32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned flags)
{
	INTERRUPTED(stream, cuStreamWaitValue32_v2(stream, addr, value, flags));
}

static CUresult wait_64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned flags)
{
	INTERRUPTED(stream, cuStreamWaitValue64_v2(stream, addr, value, flags));
}

static CUresult stream_destroy(CUstream stream)
{
	obs_device_stream_ends(stream);
	return driver()->cuStreamDestroy_v2(stream);
}

const struct obs_driver *obs_device_calls(const struct obs_driver *table)
{
	/* One for each `next`, so that no thread sees a half-written one: plain or timed. */
	static struct obs_driver wrapped[2];
	static const struct obs_driver *of[2];
	unsigned i = of[0] && of[0] != table;
	struct obs_driver *ret = &wrapped[i];

	atomic_store_explicit(&next, table, memory_order_release);
	if (of[i] == table)
		return ret;
	*ret = *table;
	ret->cuLaunchKernel = launch;
	ret->cuLaunchKernelEx = launch_ex;
	ret->cuGraphLaunch = graph_launch;
	ret->cuMemcpyHtoD_v2 = h_to_d;
	ret->cuMemcpyHtoDAsync_v2 = h_to_d_async;
	ret->cuMemcpyDtoHAsync_v2 = d_to_h_async;
	ret->cuMemcpyDtoDAsync_v2 = d_to_d_async;
	ret->cuMemcpy2DAsync_v2 = copy_2d_async;
	ret->cuMemcpy3DAsync_v2 = copy_3d_async;
	ret->cuMemcpyPeerAsync = peer_async;
	ret->cuMemcpy3DPeerAsync = peer_3d_async;
	ret->cuMemsetD8Async = fill_8;
	ret->cuMemsetD16Async = fill_16;
	ret->cuMemsetD32Async = fill_32;
	ret->cuMemsetD2D8Async = fill_2d_8;
	ret->cuMemsetD2D16Async = fill_2d_16;
	ret->cuMemsetD2D32Async = fill_2d_32;
	ret->cuStreamWaitEvent = wait_event;
	ret->cuLaunchHostFunc = host_func;
	ret->cuStreamAddCallback = add_callback;
	ret->cuStreamWriteValue32_v2 = write_32;
	ret->cuStreamWriteValue64_v2 = write_64;
	ret->cuStreamWaitValue32_v2 = wait_32;
	ret->cuStreamWaitValue64_v2 = wait_64;
	ret->cuStreamDestroy_v2 = stream_destroy;
	of[i] = table;
	return ret;
}
