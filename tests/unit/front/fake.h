/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A backend that computes nothing: it counts the front end's calls and returns configured results.
 * Used by unit tests and, with fake_cuda.c, as a libcuda.so.1 on which NVIDIA's runtime starts.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdatomic.h>

#include "front/array.h"
#include "front/backend.h"
#include "front/event.h"
#include "front/share.h"
#include "front/stream.h"
#include "front/texref.h"
#include "front/texture.h"

#define FAKE_HANDLE 0x700000000000ull /* the first handle of a condition; the next is 8 higher */
#define FAKE_TASKS  16u

struct fake {
	/* configuration */
	int n_devices;
	int cc; /* 90 */
	bool ptx_only;
	bool passed; /* every point of a stream has been passed */
	CUresult start_result, alive_result, create_result, load_result, func_load_result,
		settle_result, destroy_result, look_result, vmm_result, array_result;
	bool no_vmm;
	unsigned shares; /* OBF_SHARES_* */
	CUresult share_result;
	uint64_t global_addr; /* where global_get says that a variable is; 0: at a new address */
	int registers;        /* func_attrs reports these */
	int shared_bytes;
	/* recorded calls */
	_Atomic int starts, creates, destroys, syncs, loads, unloads, func_gets, func_loads,
		settles, func_attrs, func_sets, globals, limits, ranges, streams, events, records,
		looks, copies, allocs, points, releases, reservations, mappings, arrays, textures,
		opens, exports;
	/* graphs: parts that are made, their nodes, dependencies on later nodes */
	_Atomic int launches, graphs, graph_nodes, bad_deps, graph_launches, graph_sets;
	_Atomic int conditions, begun; /* handles made; objects for them that are not dropped */
	struct obf_graph_task
		tasks[FAKE_TASKS]; /* of the last part; pointers in it are not valid */
	uint32_t n_tasks;
	CUresult graph_result; /* of graph_make */
	struct obf_launch last_launch;
	uint8_t last_packed[64];
	uint32_t last_node;
	struct obf_fill last_fill;
	uint64_t last_unmapped; /* bytes of the last call of vmm_unmap */
	struct obf_copy last_copy;
	struct obf_array_copy last_array_copy;
	/* texture and surface references: those that are open, and the last change */
	_Atomic int texrefs, texref_sets, texref_params;
	CUresult texref_result;
	const struct obf_texref *last_texref;
	struct obf_texref_state last_texref_state;
	unsigned last_setting, last_dimension;
	bool last_ctx_ended;     /* of the last end of an array or a texture */
	char last_payload[4096]; /* of the last load, truncated */
	bool last_from_text;
	int n_visible, visible[OBF_DEVICE_MAX];
	CUfunction_attribute last_attr;
	int last_value;
};

extern struct fake fake;

/*
 * Attaches the backend with two devices of compute capability 9.0 and the properties of an H100,
 * unless `fake` sets others.
 */
void fake_attach(const struct obf_proc *procs, size_t n_procs);

/* For the backend's table (fake_arrays.c). */
CUresult fake_array_make(struct obf_array *array);
CUresult fake_array_destroy(struct obf_array *array, bool ctx_ended);
CUresult fake_array_copy(
	struct obf_stream *stream, const struct obf_array_copy *what, bool blocking);
CUresult fake_texture_create(struct obf_texture *texture);
CUresult fake_texture_destroy(struct obf_texture *texture, bool ctx_ended);
CUresult fake_texref_open(const struct obf_texref *ref);
CUresult fake_texref_close(const struct obf_texref *ref);
CUresult fake_texref_set(const struct obf_texref *ref, const struct obf_texref_state *next,
	unsigned setting, unsigned dimension);
CUresult fake_texref_param(const struct obf_texref *ref, const struct obf_func *func);
/* The same (fake_graphs.c). */
CUresult fake_graph_condition(struct obf_ctx *ctx, void **begun, unsigned start, unsigned flags,
	CUgraphConditionalHandle *ret);
CUresult fake_graph_make(struct obf_ctx *ctx, const struct obf_graph_part *part, void **ret);
void fake_graph_drop(void *made);
CUresult fake_graph_launch(void *made, struct obf_stream *stream, bool prints);
CUresult fake_graph_upload(void *made, struct obf_stream *stream);
CUresult fake_graph_set(void *made, uint32_t index, const struct obf_graph_task *task);
CUresult fake_graph_enable(void *made, uint32_t index, bool on);

#endif
