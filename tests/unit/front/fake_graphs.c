/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The graphs of the backend that computes nothing: it notes what a part has, and counts. */
#include <string.h>

#include "fake.h"

/* What was begun for conditions is no part yet. */
static char begun_mark;

CUresult fake_graph_condition(struct obf_ctx *ctx, void **begun, unsigned start, unsigned flags,
	CUgraphConditionalHandle *ret)
{
	(void)ctx;
	(void)start;
	(void)flags;
	fake.begun += *begun == NULL;
	*begun = &begun_mark;
	*ret = FAKE_HANDLE + 8 * (CUgraphConditionalHandle)fake.conditions++;
	return CUDA_SUCCESS;
}

CUresult fake_graph_make(struct obf_ctx *ctx, const struct obf_graph_part *part, void **ret)
{
	(void)ctx;
	if (fake.graph_result != CUDA_SUCCESS)
		return fake.graph_result;
	for (uint32_t i = 0; i < part->n; i++)
		for (uint32_t k = 0; k < part->tasks[i].n_deps; k++) {
			uint32_t dep = part->tasks[i].deps[k];

			fake.bad_deps += dep >= i ||
				part->tasks[dep].parent != part->tasks[i].parent ||
				part->tasks[dep].branch != part->tasks[i].branch;
		}
	fake.n_tasks = part->n < FAKE_TASKS ? part->n : FAKE_TASKS;
	memcpy(fake.tasks, part->tasks, fake.n_tasks * sizeof fake.tasks[0]);
	fake.graph_nodes += (int)part->n;
	fake.graphs++;
	*ret = part->begun ? part->begun : &fake;
	return CUDA_SUCCESS;
}

void fake_graph_drop(void *made)
{
	if (made == &begun_mark)
		fake.begun--;
	else
		fake.graphs--;
}

CUresult fake_graph_launch(void *made, struct obf_stream *stream, bool prints)
{
	(void)made;
	(void)stream;
	(void)prints;
	fake.graph_launches++;
	return CUDA_SUCCESS;
}

CUresult fake_graph_upload(void *made, struct obf_stream *stream)
{
	(void)made;
	(void)stream;
	return CUDA_SUCCESS;
}

CUresult fake_graph_set(void *made, uint32_t index, const struct obf_graph_task *task)
{
	(void)made;
	fake.graph_sets++;
	fake.last_node = index;
	fake.last_fill = task->kind == OBF_TASK_FILL ? *task->fill : fake.last_fill;
	if (task->kind == OBF_TASK_KERNEL)
		memcpy(fake.last_packed, task->packed, task->func->param_bytes);
	return CUDA_SUCCESS;
}

CUresult fake_graph_enable(void *made, uint32_t index, bool on)
{
	(void)made;
	fake.graph_sets++;
	fake.last_node = index;
	fake.last_value = on;
	return CUDA_SUCCESS;
}
