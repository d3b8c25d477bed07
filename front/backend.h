/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_backend: executes the calls that the front end has checked. There are two backends, the
 * remote client (client-shim/) and the software device (softdevice/). Each library contains one of
 * them.
 *
 * The front end checks arguments and resolves handles before it calls a function of the table.
 * Objects stay valid during the call. A function returns CUDA_SUCCESS or the error that CUDA
 * documents for the calls that use it. The front end stores an error that ends a context
 * (obf_ctx_result). Reads, blocking copies and functions marked so below may block. Any thread.
 */
#ifndef OBF_BACKEND_H
#define OBF_BACKEND_H

#include "front/front.h"

struct obf_array;
struct obf_array_copy;
struct obf_event;
struct obf_sharing;
struct obf_stream;
struct obf_texref;
struct obf_texref_state;
struct obf_texture;
struct obf_green;
struct obf_share;
struct obf_sm_share;
struct obf_split;
struct obf_split_made;

/* A point of a stream, in the backend's representation. */
struct obf_point {
	uint64_t words[6];
};

#define OBF_PEER_ATTRS 6

/* One node of a part of a graph. */
struct obf_graph_task {
	enum {
		OBF_TASK_EMPTY,
		OBF_TASK_KERNEL,
		OBF_TASK_COPY,
		OBF_TASK_FILL,
		OBF_TASK_CONDITIONAL
	} kind;
	struct obf_func *func; /* a kernel's, with the other three */
	const struct obf_launch *launch;
	const uint8_t *packed;
	bool mirrored;               /* a parameter points to a mirror (mirror.h) */
	const struct obf_copy *copy; /* between device addresses of one context; not empty */
	const struct obf_fill *fill; /* of device memory; not empty */
	struct {
		uint64_t handle; /* of graph_condition, of the same part */
		CUgraphConditionalNodeType type;
		uint32_t bodies;
	} conditional;
	/*
	 * It is in body `branch` of conditional task `parent`, which has a lower index; UINT32_MAX:
	 * in none. The tasks of a body follow one another.
	 */
	uint32_t parent, branch;
	/* the nodes of its body that come before it, by index, which is lower than its own */
	const uint32_t *deps;
	uint32_t n_deps;
};

/* Nodes of an executable graph that need nothing but the device. */
struct obf_graph_part {
	uint32_t n;
	bool priorities; /* of kernels count */
	const struct obf_graph_task *tasks;
	void *begun; /* of graph_condition: the part is made of it. NULL: it has no conditions */
};

#define OBF_VMM_PAGE (2ull << 20) /* bytes: the granularity of reservations and mappings */

/* Addresses reserved by cuMemAddressReserve. */
struct obf_reservation {
	uint64_t base, size;
	void *backend; /* owned by the backend */
};

struct obf_backend {
	int driver_version; /* 13000 */

	/* ---- the process ---- */

	/*
	 * cuInit: called once per process; fills ret_devices (capacity OBF_DEVICE_MAX). Any result
	 * but CUDA_SUCCESS is stored and returned again, except after fork.
	 */
	CUresult (*start)(struct obf_device *ret_devices, int *ret_count);
	/*
	 * Called once, after start: device i of the program is device ordinals[i] of start. Device
	 * numbers used afterwards are those of the program. May be NULL.
	 */
	void (*visible)(const int *ordinals, int n);
	/*
	 * Called before every public call except cuInit and pure look-ups: returns 0 or the
	 * process-wide error (session lost). May be NULL.
	 */
	CUresult (*alive)(void);
	/* The same before calls that concern no context. NULL: alive. */
	CUresult (*ready)(void);
	/*
	 * The calling thread's current context is one of this device from now on; -1: it has none.
	 * May be NULL.
	 */
	void (*current)(int device);
	/*
	 * Whether no work of one device can reach the memory of the other, not even by a copy on
	 * the devices. NULL: no.
	 */
	bool (*apart)(int device, int other);
	/*
	 * Before a launch while OBF_WATCH_APART is set: params[i] points to parameter i; NULL: they
	 * are not known. Changes nothing.
	 */
	void (*params_look)(
		const struct obf_stream *stream, const struct obf_func *func, void *const *params);

	/* ---- contexts ---- */

	CUresult (*ctx_create)(struct obf_ctx *ctx); /* sets ctx->backend */
	/*
	 * Also called for the reset and the last release of a primary context. When it returns, all
	 * work of the context has ended, even if it returns an error. The error is that of
	 * unfinished work, unless an earlier call has returned it. The front end then closes the
	 * context's streams and events, frees its memory and calls ctx_release.
	 */
	CUresult (*ctx_destroy)(struct obf_ctx *ctx);
	void (*ctx_release)(struct obf_ctx *ctx); /* the last call for the context */
	/* Waits for all work of the context. */
	CUresult (*ctx_synchronize)(struct obf_ctx *ctx);
	/*
	 * Implicit synchronisation: waits for unfinished kernels of the context and returns their
	 * error.
	 */
	CUresult (*ctx_settle)(struct obf_ctx *ctx);
	CUresult (*ctx_limit)(struct obf_ctx *ctx, CUlimit limit, bool set, size_t *value);

	/* ---- peers: access of kernels to another device's memory; peer_query NULL: none ---- */

	/*
	 * ret[0]: whether `device` can access the memory of `peer`, another device. ret[1] to
	 * ret[5]: by CUdevice_P2PAttribute.
	 */
	CUresult (*peer_query)(int device, int peer, int ret[OBF_PEER_ATTRS]);
	/* Gives or takes access to the memory of `peer`, also to what is allocated later. */
	CUresult (*peer_access)(struct obf_ctx *ctx, struct obf_ctx *peer, bool enable);

	/* ---- streams and events ---- */

	size_t stream_size; /* bytes of the backend's object, whose first member is an obf_stream */
	CUresult (*stream_open)(struct obf_stream *stream);
	/*
	 * No call uses the stream after this. Its unfinished work continues, unless the context has
	 * ended. The backend calls obf_stream_recycle, at once or when that work is complete.
	 */
	void (*stream_close)(struct obf_stream *stream, bool ctx_ended);
	/* CUDA_ERROR_NOT_READY: it has unfinished work */
	CUresult (*stream_query)(struct obf_stream *stream);
	CUresult (*stream_wait)(struct obf_stream *stream); /* blocks until its work is complete */
	/* Later work of the stream waits for the last recording of the event. */
	CUresult (*stream_wait_event)(struct obf_stream *stream, struct obf_event *event);

	size_t event_size; /* as stream_size */
	CUresult (*event_open)(struct obf_event *event);
	/* The object may be reused as soon as this returns. */
	CUresult (*event_close)(struct obf_event *event, bool ctx_ended);
	CUresult (*event_record)(struct obf_event *event, struct obf_stream *stream);
	/* The next three are called only for events that were recorded. */
	CUresult (*event_query)(struct obf_event *event); /* CUDA_ERROR_NOT_READY */
	CUresult (*event_wait)(struct obf_event *event);  /* blocks */
	/* Milliseconds. CUDA_ERROR_NOT_READY: one of the two events is not complete. */
	CUresult (*event_elapsed)(struct obf_event *start, struct obf_event *end, float *ret_ms);

	/* ---- green contexts (green.h); green_split NULL: not supported ---- */

	/*
	 * CUDA_ERROR_NOT_SUPPORTED: the device behind has none. Other errors are those of
	 * cuDevSmResourceSplitByCount.
	 */
	CUresult (*green_split)(const struct obf_split *split, struct obf_split_made *ret);
	/* Its primary context is active. stream_open creates its streams (obf_stream.green). */
	CUresult (*green_create)(struct obf_green *green, const struct obf_sm_share *share);
	/* All its streams are closed. */
	void (*green_destroy)(const struct obf_green *green);

	/*
	 * ---- work in a stream ----
	 *
	 * Launches are in launch_calls.h.
	 *
	 * blocking: the call is not an "Async" one. When the function returns, a copy from pageable
	 * host memory has read that memory, and a copy to it has written it. A blocking copy that
	 * involves host memory is complete then, except for uploads of up to OBF_COPY_SMALL bytes.
	 */

	/* `size` > 0 bytes between device and host memory. */
	CUresult (*write)(struct obf_stream *stream, uint64_t dst, const void *src, size_t size,
		bool blocking);
	CUresult (*read)(
		struct obf_stream *stream, void *dst, uint64_t src, size_t size, bool blocking);
	/* Any other copy. */
	CUresult (*copy)(struct obf_stream *stream, const struct obf_copy *copy, bool blocking);
	CUresult (*fill)(struct obf_stream *stream, const struct obf_fill *fill);
	CUresult (*stream_value)(struct obf_stream *stream, const struct obf_value *value);
	/* The backend copies *function and calls it with obf_host_function_run. */
	CUresult (*host_function)(
		struct obf_stream *stream, const struct obf_host_function *function);
	/*
	 * From now on there will be reads and writes before and after functions, in their threads, also
	 * for functions that were put before. May be NULL.
	 */
	CUresult (*host_functions_transfer)(void);

	/* ---- code ---- */

	CUresult (*mod_load)(struct obf_mod *mod, const struct obf_image_ref *image);
	/* also called for every module of a context before its ctx_destroy */
	void (*mod_unload)(struct obf_mod *mod);
	/* first use of a kernel in a context: sets backend and backend_id */
	CUresult (*func_get)(struct obf_func *func);
	/*
	 * Whether the function can run. Called before its first launch, and again until it
	 * succeeds. NULL: every function can run.
	 */
	CUresult (*func_load)(struct obf_func *func);
	CUresult (*func_attrs)(struct obf_func *func); /* sets exact func->attrs */
	/* the front end has already updated func->attrs */
	CUresult (*func_set_attr)(struct obf_func *func, CUfunction_attribute attr, int value);
	CUresult (*global_get)(
		struct obf_mod *mod, const char *name, CUdeviceptr *ret_addr, size_t *ret_size);
	/*
	 * Whether this PTX can be loaded. The errors are written to ret_log as a string. NULL: the
	 * backend detects errors only when it loads the code.
	 */
	CUresult (*code_check)(
		struct obf_ctx *ctx, const void *ptx, size_t size, char *ret_log, size_t log_size);

	/* ---- memory ---- */

	bool peers; /* each device can access the memory of all devices */
	/* Allocates mem->size bytes for the context; sets mem->base and mem->backend. */
	CUresult (*mem_alloc)(struct obf_ctx *ctx, struct obf_mem *mem);
	/*
	 * in_use: earlier work may still use the memory; its accesses must do no harm. ctx: the
	 * current context, or the context of the memory.
	 */
	CUresult (*mem_free)(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use);
	CUresult (*mem_info)(
		struct obf_ctx *ctx, uint64_t *ret_free, uint64_t *ret_total); /* bytes */
	/* Gives unused memory of the backend back to the device. May be NULL. */
	void (*mem_trim)(int device);

	/*
	 * ---- memory that the program accesses directly: managed and mapped memory ----
	 *
	 * The functions may be NULL: all device memory is such memory.
	 */

	/* As mem_alloc and mem_free. The program reads zeros. */
	CUresult (*shared_alloc)(struct obf_ctx *ctx, struct obf_mem *mem);
	CUresult (*shared_free)(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use);
	/*
	 * A managed variable of a module, entered in the map: the program will access it. The end
	 * is also called if the first call failed. CUDA_ERROR_NOT_SUPPORTED: its addresses are in
	 * use in this process.
	 */
	CUresult (*shared_global)(struct obf_ctx *ctx, const struct obf_mem *mem);
	void (*shared_global_end)(const struct obf_mem *mem);
	/*
	 * The range, in allocations of shared_alloc, will be used next by the program (to_host) or
	 * by the device. Only the time of later accesses depends on it.
	 */
	CUresult (*shared_move)(
		struct obf_stream *stream, uint64_t addr, uint64_t size, bool to_host);
	/* cuStreamAttachMemAsync for a whole allocation. flags: one of CUmemAttach_flags. */
	CUresult (*shared_attach)(
		struct obf_stream *stream, const struct obf_mem *mem, unsigned flags);

	/* ---- virtual memory management; vmm_reserve NULL: not supported ---- */

	/* Whether the program may use it; fixed after start. NULL: yes. */
	bool (*vmm_offered)(void);
	/*
	 * Reserves r->size bytes of addresses: at `wanted` if that is not 0 and free, else at any
	 * multiple of `align`. Sets r->base and r->backend. CUDA_ERROR_OUT_OF_MEMORY: none left.
	 */
	CUresult (*vmm_reserve)(struct obf_reservation *r, uint64_t align, uint64_t wanted);
	/* Nothing is mapped there. */
	void (*vmm_unreserve)(const struct obf_reservation *r);
	/*
	 * Maps [offset, offset + size) of the memory at addr, where addresses are reserved and
	 * nothing is mapped. Sets the device of the memory. CUDA_ERROR_INVALID_VALUE: no such
	 * handle, or its memory is smaller.
	 */
	CUresult (*vmm_map)(uint64_t addr, uint64_t size, uint64_t offset,
		CUmemGenericAllocationHandle handle, int *ret_device);
	/* One or several adjacent mappings cover exactly the range. */
	CUresult (*vmm_unmap)(uint64_t addr, uint64_t size);

	/* A launch whose arguments are packed: func->param_bytes, not changed. */
	CUresult (*launch)(struct obf_stream *stream, struct obf_func *func,
		const struct obf_launch *launch, void *packed);

	/* ---- graphs ---- */

	/*
	 * Whether every part is prepared. Otherwise the front end prepares those with conditional
	 * nodes only, and puts other nodes into the stream in turn.
	 */
	bool graph_all;
	/*
	 * A condition of the part *begun, which is made if it is NULL. It is `start` before the first
	 * launch, and before each one with CU_GRAPH_COND_ASSIGN_DEFAULT in `flags`. *ret is what
	 * kernels get. May block.
	 */
	CUresult (*graph_condition)(struct obf_ctx *ctx, void **begun, unsigned start,
		unsigned flags, CUgraphConditionalHandle *ret);
	/*
	 * Prepares a part of a graph for launches; *ret is the backend's. If it fails, part->begun
	 * can only be dropped. May block.
	 */
	CUresult (*graph_make)(struct obf_ctx *ctx, const struct obf_graph_part *part, void **ret);
	void (*graph_drop)(void *made); /* or what was begun */
	CUresult (*graph_launch)(void *made, struct obf_stream *stream, bool prints);
	CUresult (*graph_upload)(void *made, struct obf_stream *stream);
	/* Later launches use these parameters of node `index`; of the same type as before. */
	CUresult (*graph_set)(void *made, uint32_t index, const struct obf_graph_task *task);
	CUresult (*graph_enable)(void *made, uint32_t index, bool on);

	/*
	 * Returns the point after all work of the stream. The caller releases it with point_drop.
	 */
	CUresult (*point_take)(struct obf_stream *stream, struct obf_point *ret);
	/*
	 * Whether that work is known to be complete. Makes no request to the device or the server.
	 */
	bool (*point_passed)(const struct obf_point *point);
	void (*point_drop)(struct obf_point *point);

	/* ---- arrays, textures, surfaces (array.h, texture.h) ---- */

	/* Allocates the memory of a checked array or mipmapped array; sets array->backend. */
	CUresult (*array_create)(struct obf_array *array);
	/*
	 * Its levels and planes were closed before. Kernels of the context are complete; other
	 * earlier work may still use the memory.
	 */
	CUresult (*array_destroy)(struct obf_array *array, bool ctx_ended);
	/* A level or a plane of array->parent; sets array->backend. */
	CUresult (*array_part)(struct obf_array *array);
	/* As copy; at least one side is an array. */
	CUresult (*array_copy)(
		struct obf_stream *stream, const struct obf_array_copy *copy, bool blocking);
	/* A texture or a surface object: sets texture->value, which kernels use, and is not 0. */
	CUresult (*texture_create)(struct obf_texture *texture);
	CUresult (*texture_destroy)(struct obf_texture *texture, bool ctx_ended);

	/* ---- texture and surface references (texref.h); all NULL: kernels do not use them ---- */

	/* A reference of a module, or a new one. */
	CUresult (*texref_open)(const struct obf_texref *ref);
	/* Of one that belongs to no module. Others end with the module or the context. */
	CUresult (*texref_close)(const struct obf_texref *ref);
	/*
	 * Later launches use `next`, which differs in one setting (enum obf_texref_setting) of one
	 * dimension.
	 */
	CUresult (*texref_set)(const struct obf_texref *ref, const struct obf_texref_state *next,
		unsigned setting, unsigned dimension);
	/* cuParamSetTexRef */
	CUresult (*texref_param)(const struct obf_texref *ref, const struct obf_func *func);

	/* A range of pinned host memory was added or removed. May be NULL. */
	void (*host_range)(const void *p, size_t size, bool added);

	/* Sharing with other processes (front/share.h). NULL: not supported. */
	const struct obf_sharing *sharing;

	/* ---- the library ---- */

	/*
	 * Tables that the front end does not provide. Returns NULL for an unknown id. May be NULL.
	 */
	const void *(*export_table)(const CUuuid *id);
	/* cuGetProcAddress: the generated table of the library's exported entry points. */
	const struct obf_proc *procs;
	size_t n_procs;
};

void obf_attach(const struct obf_backend *backend);
const struct obf_backend *obf_attached(void);

#endif
