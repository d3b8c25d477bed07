/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/value.h"

#include "client-shim/cuda/shared.h"
#include "protocol/obc_calls.h"

CUresult obc_stream_value(struct obf_stream *stream, const struct obf_value *value)
{
	CUstream handle =
		(CUstream)(uintptr_t)stream->handle; /* NOLINT(performance-no-int-to-ptr) */

	if (obc_shared_exist()) {
		CUresult result = obc_shared_work(
			obc_stream_of(stream), value->addr, value->bytes, !value->wait);

		if (result != CUDA_SUCCESS)
			return result;
	}
	if (value->bytes == 8)
		return (value->wait ? obc_call_cuStreamWaitValue64_v2
				    : obc_call_cuStreamWriteValue64_v2)(
			handle, value->addr, value->value, value->flags);
	return (value->wait ? obc_call_cuStreamWaitValue32_v2 : obc_call_cuStreamWriteValue32_v2)(
		handle, value->addr, (uint32_t)value->value, value->flags);
}
