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
#include "front/texture.h"

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
	CUresult graph_result; /* of graph_make */
	struct obf_launch last_launch;
	uint8_t last_packed[64];
	uint32_t last_node;
	struct obf_fill last_fill;
	uint64_t last_unmapped; /* bytes of the last call of vmm_unmap */
	struct obf_copy last_copy;
	struct obf_array_copy last_array_copy;
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

#endif
