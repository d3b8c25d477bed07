/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Launches wait until the session's share allows them, and are measured. */
#include "server/layers/quota_inside.h"
#include "server/layers/share.h"

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	CUresult result;

	obs_share_wait(stream, false);
	result = obs_quota_next.cuLaunchKernel(
		f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
	obs_share_launched(stream, result);
	return result;
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	CUresult result;

	obs_share_wait(config->hStream, false);
	result = obs_quota_next.cuLaunchKernelEx(config, f, params, extra);
	obs_share_launched(config->hStream, result);
	return result;
}

static CUresult graph_launch(CUgraphExec exec, CUstream stream)
{
	CUresult result;

	obs_share_wait(stream, true);
	result = obs_quota_next.cuGraphLaunch(exec, stream);
	obs_share_launched(stream, result);
	return result;
}

static CUresult ctx_destroy(CUcontext ctx)
{
	obs_share_forget();
	return obs_quota_next.cuCtxDestroy_v2(ctx);
}

static CUresult primary_reset(CUdevice device)
{
	obs_share_forget();
	return obs_quota_next.cuDevicePrimaryCtxReset_v2(device);
}

void obs_quota_launch_wrap(struct obs_driver *table)
{
	table->cuLaunchKernel = launch;
	table->cuLaunchKernelEx = launch_ex;
	table->cuGraphLaunch = graph_launch;
	table->cuCtxDestroy_v2 = ctx_destroy;
	table->cuDevicePrimaryCtxReset_v2 = primary_reset;
}
