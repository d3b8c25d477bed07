/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "front/waited.h"

obf_waited_fn *_Atomic obf_waited_listener;
void (*_Atomic obf_waits_listener)(bool asks);

CUresult obf_waited(CUresult result, const struct obf_stream *stream, bool all)
{
	obf_waited_fn *fn = atomic_load(&obf_waited_listener);

	return result == CUDA_SUCCESS && fn ? fn(stream, all) : result;
}
