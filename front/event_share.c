/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Events that several processes use (cuIpc...). */
#include <string.h>

#include "front/backend.h"
#include "front/event.h"
#include "front/private.h"
#include "front/share.h"
#include "protocol/obf_calls.h"

static CUresult enter(struct obf_ctx **ret)
{
	CUresult result = obf_ctx_enter(ret);

	if (result == CUDA_SUCCESS && !(obf_shares() & OBF_SHARES_EVENTS))
		result = CUDA_ERROR_NOT_SUPPORTED;
	return result;
}

CUresult obf_cuIpcGetEventHandle(CUipcEventHandle *ret, CUevent handle)
{
	struct obf_share share = { .size = 0 };
	struct obf_event *event;
	struct obf_ctx *ctx;
	CUresult result = enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_event_find(handle, ctx, &event);
	if (result != CUDA_SUCCESS)
		return result;
	if (!(event->flags & CU_EVENT_INTERPROCESS))
		return CUDA_ERROR_INVALID_HANDLE;
	result = obf_process.backend->sharing->event_export(event, &share);
	if (result != CUDA_SUCCESS)
		return obf_ctx_result(ctx, result);
	obf_share_seal(&share, OBF_SHARE_EVENT);
	memset(ret, 0, sizeof *ret);
	memcpy(ret, &share, sizeof share);
	return CUDA_SUCCESS;
}

CUresult obf_cuIpcOpenEventHandle(CUevent *ret, CUipcEventHandle handle)
{
	struct obf_share share;
	struct obf_ctx *ctx;
	CUresult result = enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!obf_share_read(&handle, OBF_SHARE_EVENT, &share))
		return CUDA_ERROR_INVALID_HANDLE;
	return obf_event_new(ctx, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, &share, ret);
}
