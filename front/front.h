/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The front end of libcuda: all of the driver API that is the same whether a GPU server or the
 * software device executes the calls. Both libraries named libcuda.so.1 link it, so each object and
 * each check of CUDA's exists once.
 *
 *   program -> exported stubs (generated) -> obf_cu<Call>       this folder: objects, checks
 *                                               |
 *                                        struct obf_backend     backend.h: enqueue, wait, allocate
 *                                          |           |
 *                                    client-shim/   softdevice/
 *
 * A backend attaches its table from a constructor, before any call. obf_ objects are owned by the
 * front end; every function may be called by any thread. Handles that the front end gives out are
 * ids (kind, generation, index; base/ids.h), never pointers: a wrong or stale one is found and
 * answered with the error CUDA documents.
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
 * Bytes: an upload by a call that is not "Async" waits for the stream above this. CUDA C++
 * Programming Guide, "Concurrent execution".
 */
#define OBF_COPY_SMALL      (64u << 10)

struct obf_device {
	char name[256];
	CUuuid uuid;
	uint64_t total_mem;                   /* bytes */
	int32_t attr[OBF_DEVICE_ATTR_MAX];    /* by CUdevice_attribute */
	bool attr_known[OBF_DEVICE_ATTR_MAX]; /* unknown: CUDA_ERROR_INVALID_VALUE */
	bool ptx_only;                        /* runs no cubin */
};

/*
 * Kinds of ids (base/ids.h) that a program holds as handles. One space for both libraries: a handle
 * of the wrong kind is told at once.
 */
enum obf_kind {
	OBF_KIND_CTX = 1,
	OBF_KIND_MODULE = 2,
	OBF_KIND_FUNC = 3,
	OBF_KIND_LIBRARY = 4,
	OBF_KIND_KERNEL = 5,
	/* given out by the front end */
	OBF_KIND_STREAM = 6,
	OBF_KIND_EVENT = 7,
	OBF_KIND_POOL = 8,
	OBF_KIND_LINK = 9,
};

#define OBF_CTX_MAX                1024u /* live contexts */
/*
 * The primary context of a device: the same id in every process, known to both sides without a
 * message.
 */
#define OBF_CTX_PRIMARY_ID(device) ((uint64_t)OBF_KIND_CTX << 56 | (uint32_t)(device))

/*
 * A context. Primary contexts exist from the first look, one per device, with a handle that never
 * changes.
 */
struct obf_ctx {
	CUcontext handle;
	uint64_t id; /* cuCtxGetId: never repeats in a process */
	int device;
	unsigned flags;
	bool primary;
	_Atomic bool active; /* created in the backend */
	/* CUresult that every later call returns; 0: healthy. Set by the backend */
	_Atomic int sticky;
	_Atomic bool told;         /* some call has returned it */
	struct obf_stream *legacy; /* its legacy default stream */
	void *backend;             /* the backend's own */
};

/* Function attributes by CUfunction_attribute, and what launches and occupancy need. */
struct obf_func_attrs {
	int max_threads, shared_bytes, const_bytes, local_bytes, registers, ptx_version,
		binary_version;
	int cache_ca, max_dynamic_shared, carveout, cluster_must, cluster[3], non_portable_cluster,
		cluster_policy;
	/*
	 * false: guessed from the image; the backend is asked (func_attrs) before they are shown to
	 * the program
	 */
	bool exact;
};

/*
 * A kernel in one context: what CUfunction, and CUkernel once a context is known, resolve to.
 * Stable address until unload.
 */
struct obf_func {
	CUfunction handle;
	struct obf_mod *mod;
	const char *name;
	const struct obi_param *params;
	uint32_t n_params, param_bytes;
	struct obf_func_attrs attrs;
	/*
	 * threads of a block that a launch may have; 0 until backend->func_load has accepted the
	 * function
	 */
	_Atomic uint32_t block_max;
	void *backend;       /* the backend's own, set by backend->func_get */
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

struct obf_image_ref { /* what the backend gets to load: the one selected entry */
	const struct obi_entry *entry;
	const struct obi_symbols *symbols;
	const uint8_t *payload; /* uncompressed PTX or cubin, valid during the call */
	size_t payload_size;
	/* the program passed PTX text or a bare cubin itself: load errors must show at this call */
	bool from_text;
	unsigned n_options; /* cuModuleLoadDataEx */
	CUjit_option *options;
	void **option_values;
};

/* One row per (name, version, flavour) sorted by name, then flavour, then since. Generated. */
struct obf_proc {
	const char *name; /* base name as asked: "cuMemAlloc" */
	void *entry;
	int since;       /* 3020 */
	uint8_t flavour; /* 0 legacy/default, 1 per-thread (ptsz/ptds) twin */
};

/* ---- for the backends ---- */

int obf_device_count(void);                          /* 0 before cuInit */
const struct obf_device *obf_device_at(int ordinal); /* NULL: no such device */

/*
 * The calling thread's current context; *ret NULL and CUDA_ERROR_INVALID_CONTEXT when there is
 * none. Checks init, alive, sticky. The hot-path entry: no lock.
 */
CUresult obf_ctx_enter(struct obf_ctx **ret);
/* The context's sticky error, which the caller is about to return; CUDA_SUCCESS: it has none. */
CUresult obf_ctx_tell(struct obf_ctx *ctx);
/*
 * What a call returns after the backend's `result`. An error that ends the context is noted: every
 * later call in the context returns it.
 */
CUresult obf_ctx_failed(struct obf_ctx *ctx, CUresult result);
static inline CUresult obf_ctx_result(struct obf_ctx *ctx, CUresult result)
{
	return ob_likely(result == CUDA_SUCCESS) ? CUDA_SUCCESS : obf_ctx_failed(ctx, result);
}
/* The same for an error that no call returns: a call that ends with it will. */
void obf_ctx_note(struct obf_ctx *ctx, CUresult result);
struct obf_ctx *obf_ctx_peek(void);                    /* current or NULL, no checks */
struct obf_ctx *obf_ctx_from_handle(CUcontext handle); /* NULL handle: current; NULL: bad handle */
/* never NULL for a valid device; may be inactive */
struct obf_ctx *obf_ctx_primary(int device);
/*
 * What a call that CUDA synchronises implicitly does first (docs/COMPATIBILITY.md has the list):
 * waits for unfinished kernels of the context, which need not be the current one, and returns their
 * error or the context's sticky one. While the process exits: nothing.
 */
CUresult obf_ctx_settle(struct obf_ctx *ctx);

/*
 * This thread runs a host function or a callback of the program, which a stream waits for. A call
 * that waited for the stream would never end, so every call but cuInit and pure look-ups is refused
 * with CUDA_ERROR_NOT_PERMITTED. The backend sets it around the program's function.
 */
extern _Thread_local bool obf_in_host_function;

/*
 * CUfunction or CUkernel (cast) -> function in the current context. CUDA_ERROR_INVALID_HANDLE
 * otherwise. Hot path: array look-up.
 */
CUresult obf_func_resolve(CUfunction handle, struct obf_ctx *ctx, struct obf_func **ret);

/*
 * The checks CUDA makes at a launch before anything runs, in its order and with its codes: zero or
 * too large grid or block dimension (CUDA_ERROR_INVALID_VALUE, or 9, cudaErrorInvalidConfiguration,
 * for code that the runtime loaded), threads per block above the device's or the function's limit,
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
 * cuLaunchKernelEx's configuration -> struct obf_launch; unknown attributes that change meaning:
 * CUDA_ERROR_NOT_SUPPORTED, hints ignored.
 */
CUresult obf_launch_from_config(const CUlaunchConfig *config, struct obf_launch *ret);
/* kernelParams or extra -> one packed buffer of func->param_bytes at dst. */
CUresult obf_launch_pack(const struct obf_func *func, void **params, void **extra, void *dst);

/*
 * The end of every launch call: CUDA_LAUNCH_BLOCKING waits for the stream and returns the kernel's
 * error here. Otherwise a load and a branch.
 */
CUresult obf_launch_wait(CUstream stream);
static inline CUresult obf_launch_end(CUresult result, CUstream stream)
{
	return ob_unlikely(obf_environment.launch_blocking) && result == CUDA_SUCCESS
		? obf_launch_wait(stream)
		: result;
}

/* ---- the allocation map: device and pinned ranges by address ---- */

enum obf_mem_kind { OBF_MEM_DEVICE = 1, OBF_MEM_HOST = 2 /* pinned by us or registered */ };

struct obf_mem {
	uint64_t base, size; /* bytes */
	enum obf_mem_kind kind;
	int device;
	struct obf_ctx *ctx;
	uint64_t buffer_id; /* unique in the process */
	unsigned flags;     /* host flags as given */
	bool registered, pooled, is_global;
	bool joins; /* cuMemMap: may be used as one with a neighbour that joins too */
	CUmemoryPool pool;
	void *backend; /* the library's own */
};

/*
 * Insert copies *mem and gives it a buffer_id; false: overlaps a live range. All three take a lock;
 * find copies out.
 */
bool obf_mem_insert(struct obf_mem *mem);
/* exact base only; false: not an allocation's start */
bool obf_mem_remove(uint64_t base, struct obf_mem *ret);
bool obf_mem_find(uint64_t addr, struct obf_mem *ret); /* the range that holds addr */
void obf_mem_remove_ctx(const struct obf_ctx *ctx, void (*gone)(const struct obf_mem *mem));
/*
 * Whole [addr, addr+size) inside one device allocation, or several that join (or size 0): 0, else
 * CUDA_ERROR_INVALID_VALUE.
 */
CUresult obf_mem_check_device(uint64_t addr, size_t size);
bool obf_mem_is_device(uint64_t addr);

#define OBF_HOST_LOWEST 65536u /* no host memory lies below: vm.mmap_min_addr */

/* [low, high) holds all addresses that device memory has ever had. */
struct obf_mem_bounds {
	_Atomic uint64_t low, high;
};
extern struct obf_mem_bounds obf_mem_bounds;

/* For backends, before start returns: these addresses are device memory or nothing. */
void obf_mem_window(uint64_t base, uint64_t size);

/* For obf_mem_side. */
CUresult obf_mem_side_slow(uint64_t addr, size_t size, bool said_device, bool *ret_device);
/*
 * Where one side of a copy lies: with unified addressing the address tells, whatever the call says
 * (said_device: it takes a CUdeviceptr). Device memory must hold all `size` > 0 bytes, pinned memory
 * too where the call takes a CUdeviceptr. CUDA_ERROR_INVALID_VALUE: neither.
 */
static inline CUresult obf_mem_side(uint64_t addr, size_t size, bool said_device, bool *ret_device)
{
	if (said_device) {
		*ret_device = true;
		if (ob_likely(obf_mem_check_device(addr, size) == CUDA_SUCCESS))
			return CUDA_SUCCESS;
	} else {
		uint64_t low = atomic_load_explicit(&obf_mem_bounds.low, memory_order_relaxed);
		uint64_t high = atomic_load_explicit(&obf_mem_bounds.high, memory_order_relaxed);

		*ret_device = false;
		if (ob_likely(addr - low >= high - low && addr >= OBF_HOST_LOWEST))
			return CUDA_SUCCESS;
	}
	return obf_mem_side_slow(addr, size, said_device, ret_device);
}

/* A copy of rows between two places, resolved and checked. */
struct obf_copy {
	bool src_device, dst_device;
	uint64_t src, dst; /* address of the first byte, offsets applied */
	size_t src_pitch, src_slice, dst_pitch, dst_slice; /* bytes between rows, between slices */
	size_t width, height, depth;                       /* bytes, rows, slices; none is 0 */
	struct obf_ctx *src_ctx, *dst_ctx;                 /* of a copy between peers; else NULL */
};

/* A fill of rows of device memory, checked. */
struct obf_fill {
	uint64_t dst;
	uint32_t value;
	unsigned element;     /* bytes: 1, 2 or 4 */
	size_t pitch;         /* bytes between rows */
	size_t width, height; /* elements, rows; neither is 0 */
	bool blocking;        /* the call is not an "Async" one; CUDA does not wait all the same */
};

/* Does it, where the memory is this process's. */
void obf_fill_rows(const struct obf_fill *fill);

/* A function of the program that a stream calls: one of the first two. */
struct obf_host_function {
	CUhostFn fn;
	CUstreamCallback callback;
	CUstream stream; /* what the callback gets */
	void *user;
};

/*
 * True when cuInit succeeded here or, before a fork, in the parent. A child of a process that had
 * initialised answers CUDA_ERROR_NOT_INITIALIZED to everything; a child of one that had not may
 * initialise. The front end sees to both by itself.
 */
bool obf_initialised(void);

/*
 * A call that is exported but not implemented: one warning per name, CUDA_ERROR_NOT_SUPPORTED. Both
 * strings must stay.
 */
CUresult obf_absent(const char *name, const char *reason);

/*
 * The calls themselves (obf_cuInit and so on) are declared in protocol/obf_calls.h, which is
 * generated from the specification.
 */

#endif
