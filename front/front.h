/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The front end of libcuda: the part of the driver API that does not depend on whether a server or
 * the software device executes the calls. Both libraries named libcuda.so.1 link it, so each CUDA
 * object and each check is implemented once.
 *
 *   program -> exported stubs (generated) -> obf_cu<Call>       this folder: objects, checks
 *                                               |
 *                                        struct obf_backend     backend.h: enqueue, wait, allocate
 *                                          |           |
 *                                    client-shim/   softdevice/
 *
 * A backend attaches its table from a constructor, before any call. The front end owns all obf_
 * objects. Every function may be called by any thread. The handles that the program gets are ids
 * (kind, generation, index; base/ids.h) and never pointers, so a wrong or stale handle is detected
 * and fails with the error that CUDA documents. The calls themselves (obf_cuInit and so on) are
 * declared in protocol/obf_calls.h, which is generated from the specification.
 */
#ifndef OBF_FRONT_H
#define OBF_FRONT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/cuda_types.h"
#include "front/environment.h"
#include "image/image.h"

#define OBF_DEVICE_MAX      64
#define OBF_DEVICE_ATTR_MAX 192
/*
 * Bytes. A larger upload by a call that is not "Async" waits for the stream. CUDA C++ Programming
 * Guide, "Concurrent execution".
 */
#define OBF_COPY_SMALL      (64u << 10)

/* A server's worker has loaded this driver: what concerns the program's calls, the client says. */
extern _Atomic bool obf_served;

/* For messages about a kernel that the software device refuses. */
#define OBF_REFUSED_ADVICE                                                               \
	"Other kernels run. Libraries and compilers may choose other code for an older " \
	"device: try OUTBOARD_SOFT_CC=8.0 for this program"

struct obf_device {
	char name[256];
	CUuuid uuid;
	uint64_t total_mem;                   /* bytes */
	int32_t attr[OBF_DEVICE_ATTR_MAX];    /* by CUdevice_attribute */
	bool attr_known[OBF_DEVICE_ATTR_MAX]; /* unknown: CUDA_ERROR_INVALID_VALUE */
	bool ptx_only;                        /* cannot run cubins */
};

/*
 * Kinds of ids (base/ids.h) that a program holds as handles. All kinds are distinct in both
 * libraries, so a handle of the wrong kind is detected at once.
 */
enum obf_kind {
	OBF_KIND_CTX = 1,
	OBF_KIND_MODULE = 2,
	OBF_KIND_FUNC = 3,
	OBF_KIND_LIBRARY = 4,
	OBF_KIND_KERNEL = 5,
	/* created by the front end */
	OBF_KIND_STREAM = 6,
	OBF_KIND_EVENT = 7,
	OBF_KIND_POOL = 8,
	OBF_KIND_LINK = 9,
	OBF_KIND_ARRAY = 32,
	OBF_KIND_TEXTURE = 33,
	OBF_KIND_TEXREF = 34,
	OBF_KIND_NOTICE = 40,
	OBF_KIND_GREEN = 41,
	OBF_KIND_RESOURCES = 42,
	OBF_KIND_GRAPH = 48,
	OBF_KIND_GRAPH_NODE = 49,
	OBF_KIND_GRAPH_EXEC = 50,
	OBF_KIND_USER_OBJECT = 51,
};

#define OBF_CTX_MAX                1024u /* live contexts */
/*
 * The id of a device's primary context: the same in every process, so client and server need not
 * exchange it.
 */
#define OBF_CTX_PRIMARY_ID(device) ((uint64_t)OBF_KIND_CTX << 56 | (uint32_t)(device))

/*
 * A context. Each device has one primary context, which exists from cuInit and whose handle never
 * changes.
 */
struct obf_ctx {
	CUcontext handle;
	uint64_t id; /* cuCtxGetId: never repeats in a process */
	int device;
	unsigned flags;
	bool primary;
	_Atomic bool active; /* created in the backend */
	/* CUresult that every later call returns; 0: no error. Set by the backend */
	_Atomic int sticky;
	_Atomic bool sticky_reported; /* some call has returned the sticky error */
	struct obf_stream *legacy;    /* its legacy default stream */
	/* existing green contexts of a primary context: one may be current in a thread */
	_Atomic unsigned greens;
	void *backend; /* owned by the backend */
};

/* Function attributes of CUfunction_attribute, and further data for launches and occupancy. */
struct obf_func_attrs {
	int max_threads, shared_bytes, const_bytes, local_bytes, registers, ptx_version,
		binary_version;
	int cache_ca, max_dynamic_shared, carveout, cluster_must, cluster[3], non_portable_cluster,
		cluster_policy;
	/*
	 * false: estimated from the image; the front end calls func_attrs before it returns them to
	 * the program
	 */
	bool exact;
};

/*
 * A kernel in one context. A CUfunction resolves to it, and a CUkernel together with a context. The
 * address does not change until the module is unloaded.
 */
struct obf_func {
	CUfunction handle;
	struct obf_mod *mod;
	const char *name;
	const struct obi_param *params;
	uint32_t n_params, param_bytes;
	uint32_t index; /* among the kernels of mod->symbols */
	struct obf_func_attrs attrs;
	/* bit mask of attributes that the program has set, by CUfunction_attribute */
	uint32_t set_mask;
	/*
	 * limit of threads per block at a launch; 0 until backend->func_load has accepted the
	 * function
	 */
	_Atomic uint32_t block_max;
	void *backend;       /* owned by the backend, set by backend->func_get */
	uint64_t backend_id; /* likewise */
};

/* A loaded module in one context. */
struct obf_mod {
	CUmodule handle;
	struct obf_ctx *ctx;
	void *backend;
	uint64_t backend_id;
	const struct obi_symbols *symbols;
};

struct obf_image_ref { /* the selected entry, which the backend loads */
	const struct obi_entry *entry;
	const struct obi_symbols *symbols;
	const uint8_t *payload; /* uncompressed PTX or cubin, valid during the call */
	size_t payload_size;
	/* the program passed PTX text or a bare cubin: this call must return load errors */
	bool from_text;
	unsigned n_options; /* cuModuleLoadDataEx */
	CUjit_option *options;
	void **option_values;
};

/* One row per (name, version, flavour) sorted by name, then flavour, then since. Generated. */
struct obf_proc {
	const char *name; /* base name, as the program asks for it: "cuMemAlloc" */
	void *entry;
	int since;       /* 3020 */
	uint8_t flavour; /* 0: legacy/default, 1: per-thread variant (ptsz/ptds) */
};

/* ---- for the backends ---- */

int obf_device_count(void);                          /* 0 before cuInit */
const struct obf_device *obf_device_at(int ordinal); /* NULL: no such device */

/*
 * Returns the calling thread's current context. If there is none, returns
 * CUDA_ERROR_INVALID_CONTEXT and sets *ret to NULL. Checks initialisation, backend->alive and the
 * sticky error. Hot path: no lock.
 */
CUresult obf_ctx_enter(struct obf_ctx **ret);
/*
 * Returns the context's sticky error, which the caller then returns to the program. CUDA_SUCCESS:
 * none.
 */
CUresult obf_ctx_report(struct obf_ctx *ctx);
/*
 * Maps the backend's `result` to the result of the call. An error that ends the context is stored,
 * and every later call in the context returns it.
 */
CUresult obf_ctx_failed(struct obf_ctx *ctx, CUresult result);
static inline CUresult obf_ctx_result(struct obf_ctx *ctx, CUresult result)
{
	return ob_likely(result == CUDA_SUCCESS) ? CUDA_SUCCESS : obf_ctx_failed(ctx, result);
}
/* Stores an error that no call has returned yet; a later call returns it. */
void obf_ctx_note(struct obf_ctx *ctx, CUresult result);
struct obf_ctx *obf_ctx_peek(void); /* the current context or NULL; no checks */
/* handle NULL: the current context; returns NULL for an invalid handle */
struct obf_ctx *obf_ctx_from_handle(CUcontext handle);
/* never NULL for a valid device; may be inactive */
struct obf_ctx *obf_ctx_primary(int device);
/*
 * The first step of a call that CUDA synchronises implicitly (list: docs/COMPATIBILITY.md). Waits
 * for unfinished kernels of the context and returns their error or the context's sticky error. The
 * context need not be current. Does nothing while the process exits.
 */
CUresult obf_ctx_settle(struct obf_ctx *ctx);

/*
 * Runs `fn` with the context current in the calling thread. CUDA_ERROR_OUT_OF_MEMORY: the thread's
 * stack of contexts is full.
 */
CUresult obf_ctx_run(
	struct obf_ctx *ctx, CUresult (*fn)(struct obf_ctx *ctx, void *user), void *user);

/*
 * Makes a context current in the calling thread until obf_ctx_visit_end, in the place of the one
 * that is. For a backend, within one of its functions; the context need not be active.
 */
struct obf_visit {
	struct obf_context *context;
	CUcontext handle;
	bool pushed;
};
void obf_ctx_visit(struct obf_ctx *ctx, struct obf_visit *ret);
void obf_ctx_visit_end(const struct obf_visit *visit);

/*
 * True while this thread runs a host function or a callback of the program. The stream waits for
 * that function, so a call that waited for the stream would deadlock. Therefore every call except
 * cuInit and pure look-ups fails with CUDA_ERROR_NOT_PERMITTED. The backend sets it around the
 * function's call.
 */
extern _Thread_local bool obf_in_host_function;

/*
 * Resolves a CUfunction or a cast CUkernel to the function in `ctx`. Fails with
 * CUDA_ERROR_INVALID_HANDLE. Hot path: an array look-up.
 */
CUresult obf_func_resolve(CUfunction handle, struct obf_ctx *ctx, struct obf_func **ret);

/*
 * The checks that CUDA makes at a launch, in CUDA's order and with its error codes: zero or too
 * large grid or block dimension (CUDA_ERROR_INVALID_VALUE, or 9, cudaErrorInvalidConfiguration, for
 * code that the runtime loaded), threads per block above the device's or the function's limit,
 * shared memory above what is allowed for this function, cooperative grid larger than what can be
 * resident (CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE).
 */
struct obf_launch {
	uint32_t grid[3], block[3], dynamic_shared, cluster[3];
	bool cooperative;
	int priority;
	bool has_priority;
};
CUresult obf_launch_check(
	const struct obf_ctx *ctx, const struct obf_func *func, const struct obf_launch *launch);
/*
 * Converts the configuration of cuLaunchKernelEx to struct obf_launch. Hints are ignored. Other
 * attributes fail with CUDA_ERROR_NOT_SUPPORTED, unknown ones with CUDA_ERROR_INVALID_VALUE.
 */
CUresult obf_launch_from_config(const CUlaunchConfig *config, struct obf_launch *ret);
/* Packs kernelParams or extra into one buffer of func->param_bytes at dst. */
CUresult obf_launch_pack(const struct obf_func *func, void **params, void **extra, void *dst);

/*
 * The end of every launch call: with CUDA_LAUNCH_BLOCKING, waits for the stream and returns the
 * kernel's error. Otherwise this costs a load and a branch.
 */
CUresult obf_launch_wait(CUstream stream);
static inline CUresult obf_launch_end(CUresult result, CUstream stream)
{
	return ob_unlikely(obf_environment.launch_blocking) && result == CUDA_SUCCESS
		? obf_launch_wait(stream)
		: result;
}

/* ---- the allocation map: device and pinned ranges by address ---- */

/* allocated by cuMemHostAlloc and similar calls, or registered */
enum obf_mem_kind { OBF_MEM_DEVICE = 1, OBF_MEM_HOST = 2 };

/* Device memory that the program accesses directly; of backend->shared_alloc. */
enum obf_shared {
	OBF_SHARING_NONE,
	OBF_SHARING_MANAGED, /* cuMemAllocManaged */
	OBF_SHARING_MAPPED,  /* host memory that kernels can access */
};

struct obf_mem {
	uint64_t base, size; /* bytes */
	enum obf_mem_kind kind;
	int device;
	struct obf_ctx *ctx;
	uint64_t buffer_id; /* unique in the process */
	unsigned flags;     /* host flags as given */
	bool registered, pooled, is_global;
	bool imported; /* another process's memory (share.h) */
	enum obf_shared sharing;
	bool sync_memops; /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, which changes nothing */
	bool graph;       /* of an allocation node: its end is up to the graphs (graph_memory.c) */
	/* mapped by cuMemMap: a range may span this and adjacent allocations with `joins` set */
	bool joins;
	CUmemoryPool pool;
	void *backend; /* owned by the backend */
};

/*
 * Inserts a copy of *mem and assigns its buffer_id. False: it overlaps an existing range, or out of
 * memory. The functions of the map take a lock.
 */
bool obf_mem_insert(struct obf_mem *mem);
/* base must be the start of an allocation. False: it is not */
bool obf_mem_remove(uint64_t base, struct obf_mem *ret);
void obf_mem_remove_ctx(const struct obf_ctx *ctx, void (*removed)(const struct obf_mem *mem));

/* Sets how the program uses the range that begins at base. False: there is none. */
bool obf_mem_share(uint64_t base, enum obf_shared sharing, struct obf_mem *ret);
/* Sets sync_memops of the range that contains addr. False: there is none. */
bool obf_mem_sync_memops(uint64_t addr, bool on);

#define OBF_HOST_LOWEST 65536u /* no host memory is below this: vm.mmap_min_addr */

/* What lies at an address of this process. */
enum obf_place_kind {
	OBF_PLACE_INVALID, /* no memory can be there */
	OBF_PLACE_HOST,    /* pageable host memory, or nothing */
	OBF_PLACE_PINNED,  /* a range of kind OBF_MEM_HOST */
	OBF_PLACE_DEVICE,  /* a range of kind OBF_MEM_DEVICE */
	OBF_PLACE_UNUSED,  /* an address that only device memory can have; there is none */
};

struct obf_place {
	enum obf_place_kind kind;
	/*
	 * Pinned and device memory: bytes from the address to the end of the range. Ranges that
	 * join count as one, and are followed until `size` bytes are found. Otherwise 0.
	 */
	uint64_t left;
};

/*
 * Classifies an address. Every check of an address in the front end uses this function. `ret` (may
 * be NULL) receives the range if the kind is pinned or device.
 */
struct obf_place obf_mem_classify(uint64_t addr, uint64_t size, struct obf_mem *ret);

/* The range that contains addr; false: none does. */
static inline bool obf_mem_find(uint64_t addr, struct obf_mem *ret)
{
	enum obf_place_kind kind = obf_mem_classify(addr, 1, ret).kind;

	return kind == OBF_PLACE_PINNED || kind == OBF_PLACE_DEVICE;
}

/* [low, high) contains all addresses that device memory has ever had. */
struct obf_mem_bounds {
	_Atomic uint64_t low, high;
};
extern struct obf_mem_bounds obf_mem_bounds;

/* [low, high) contains all addresses that pinned memory has ever had. */
extern struct obf_mem_bounds obf_pinned_bounds;

/* Memory that the process has had and that launches must consider: a set of these bits. */
#define OBF_WATCH_PINNED 1u /* pinned memory: a parameter may point to it */
#define OBF_WATCH_SHARED 2u /* memory that the program and kernels both access */
#define OBF_WATCH_APART  4u /* the backend looks at parameters (params_look) */
extern _Atomic unsigned obf_launch_watched;
/* The backend's params_look. */
void obf_launch_look(
	const struct obf_stream *stream, const struct obf_func *func, void *const *params);

/*
 * For backends: declares that these addresses, which no other window contains, are device memory or
 * unused. False: out of memory; unused addresses count as host memory then.
 */
bool obf_mem_window(uint64_t base, uint64_t size);
/* The window at base ends. */
void obf_mem_window_end(uint64_t base);

/* For obf_mem_side: the part that needs the map. */
CUresult obf_mem_side_listed(uint64_t addr, size_t size, bool said_device, bool *ret_device);
/*
 * Whether one side of a copy is in device memory. With unified addressing the address decides, not
 * the type of the parameter (said_device: the parameter is a CUdeviceptr). All `size` > 0 bytes
 * must be inside device memory, or for a CUdeviceptr inside pinned memory.
 * CUDA_ERROR_INVALID_VALUE: they are not.
 */
static inline CUresult obf_mem_side(uint64_t addr, size_t size, bool said_device, bool *ret_device)
{
	if (!said_device) {
		uint64_t low = atomic_load_explicit(&obf_mem_bounds.low, memory_order_relaxed);
		uint64_t high = atomic_load_explicit(&obf_mem_bounds.high, memory_order_relaxed);

		*ret_device = false;
		if (ob_likely(addr - low >= high - low && addr >= OBF_HOST_LOWEST))
			return CUDA_SUCCESS;
	}
	return obf_mem_side_listed(addr, size, said_device, ret_device);
}

/* A copy of rows between two places, resolved and checked. */
struct obf_copy {
	bool src_device, dst_device;
	uint64_t src, dst; /* address of the first byte, offsets applied */
	size_t src_pitch, src_slice, dst_pitch, dst_slice; /* bytes between rows, between slices */
	size_t width, height, depth;                       /* bytes, rows, slices; none is 0 */
	/* set only for a copy between peers, else NULL */
	struct obf_ctx *src_ctx, *dst_ctx;
};

/* A copy of one row of `size` bytes. The caller sets which sides are in device memory. */
static inline struct obf_copy obf_copy_row(uint64_t dst, uint64_t src, size_t size)
{
	return (struct obf_copy){
		.src = src,
		.dst = dst,
		.src_pitch = size,
		.src_slice = size,
		.dst_pitch = size,
		.dst_slice = size,
		.width = size,
		.height = 1,
		.depth = 1,
	};
}

/* A fill of rows of device memory, checked. */
struct obf_fill {
	uint64_t dst;
	uint32_t value;
	unsigned element;     /* bytes: 1, 2 or 4 */
	size_t pitch;         /* bytes between rows */
	size_t width, height; /* elements, rows; neither is 0 */
	bool blocking;        /* the call is not an "Async" one; CUDA does not wait for it either */
};

/* A word of device memory that a stream writes or waits for, checked. */
struct obf_value {
	uint64_t addr, value;
	unsigned bytes; /* 4 or 8 */
	unsigned flags; /* CUstreamWaitValue_flags or CUstreamWriteValue_flags */
	bool wait;
};

/* Executes the fill; dst is in this process's memory. */
void obf_fill_rows(const struct obf_fill *fill);

/* A function of the program that a stream calls. Either fn or callback is set. */
struct obf_host_function {
	CUhostFn fn;
	CUstreamCallback callback;
	CUstream stream; /* passed to the callback */
	void *user;
	struct obf_ctx *ctx; /* of the stream that calls it */
};

/*
 * Calls the function; for the backend, on a thread that may wait. If status is an error, only a
 * callback is called.
 */
void obf_host_function_run(const struct obf_host_function *function, CUresult status);

/*
 * True when cuInit succeeded here or, before a fork, in the parent. In the child of an initialised
 * process every call fails with CUDA_ERROR_NOT_INITIALIZED. The child of any other process may
 * initialise. The front end handles both cases.
 */
bool obf_initialised(void);

/*
 * For a call that is exported but not implemented: logs one warning per name and returns
 * CUDA_ERROR_NOT_SUPPORTED. Both strings must remain valid.
 */
CUresult obf_absent(const char *name, const char *reason);

#endif
