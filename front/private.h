/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Declarations for the files of the front end only: the full objects, of which front.h declares the
 * public part, and functions used by several files. The public part is the first member, so a
 * pointer to one is a pointer to the other.
 *
 * Lock order: list of libraries, library, module, context, memory map. No lock is held during a
 * function of the backend that may call the program. mod_load and func_get of the backend run under
 * the lock of the library and the module, so that each happens once.
 */
#ifndef OBF_PRIVATE_H
#define OBF_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/ids.h"
#include "base/log.h"
#include "front/backend.h"
#include "front/front.h"

/* ---- the process (device.c) ---- */

enum obf_state {
	OBF_STATE_NEW,
	OBF_STATE_STARTING,
	OBF_STATE_READY,
	OBF_STATE_FAILED,
	OBF_STATE_FORKED
};

struct obf_process {
	_Atomic int state; /* enum obf_state */
	const struct obf_backend *backend;
	int n_devices;
	_Atomic bool exiting; /* exit() was called or main has returned */
	struct obf_device devices[OBF_DEVICE_MAX];
};

extern struct obf_process obf_process;

/* For obf_ready and obf_ctx_enter. */
static inline CUresult obf_started(void)
{
	/*
	 * Acquire: pairs with the release at the end of cuInit, so that devices and contexts are
	 * visible.
	 */
	if (ob_unlikely(atomic_load_explicit(&obf_process.state, memory_order_acquire) !=
		    OBF_STATE_READY))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (ob_unlikely(obf_in_host_function))
		return CUDA_ERROR_NOT_PERMITTED;
	return CUDA_SUCCESS;
}

/* The first check of every public call except cuInit and pure look-ups. */
static inline CUresult obf_ready(void)
{
	const struct obf_backend *backend = obf_process.backend;
	CUresult result = obf_started();

	if (ob_unlikely(result != CUDA_SUCCESS))
		return result;
	if (ob_unlikely(backend->ready != NULL))
		return backend->ready();
	return backend->alive ? backend->alive() : CUDA_SUCCESS;
}

/* Reports the features that the front end offers, and the others as missing (features.c). */
void obf_device_reduce(struct obf_device *device);

static inline bool obf_device_valid(CUdevice device)
{
	return device >= 0 && device < obf_process.n_devices;
}

/* Returns a device attribute, or `otherwise` if the device does not report it. */
static inline int obf_device_attr(
	const struct obf_device *device, CUdevice_attribute attr, int otherwise)
{
	return device->attr_known[attr] ? device->attr[attr] : otherwise;
}

static inline uint32_t obf_device_cc(const struct obf_device *device)
{
	return (uint32_t)(obf_device_attr(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 7) *
			10 +
		obf_device_attr(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 5));
}

/* ---- contexts (context.c, context_calls.c) ---- */

#define OBF_CTX_STACK_MAX 128u /* contexts pushed by one thread */

#define OBF_PEERS_MAX 8u /* contexts to whose memory a context has access, as in CUDA */

/* A context to whose memory access is enabled. `id` tells it from a later one in the same object. */
struct obf_peer {
	struct obf_context *context; /* NULL: a free row */
	uint64_t id;
};

struct obf_cls_block;
struct obf_module;

struct obf_context {
	struct obf_ctx pub;
	pthread_mutex_t lock;
	uint32_t slot; /* index of the handle, and of the context's row in per-context tables */
	int usage;     /* number of retains if primary, else of attaches; under the lock */
	/* a primary context that was reset or released: calls return "destroyed", not "invalid" */
	bool was_active;
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	_Atomic size_t limit[CU_LIMIT_MAX];
	_Atomic bool limit_known[CU_LIMIT_MAX];
	struct obf_cls_block *_Atomic cls;
	struct obf_module *modules; /* under the lock */
	struct obf_stream
		*gate; /* cuCtxWaitEvent (ctx_event.c); NULL: later streams wait for nothing */
	struct obf_peer peers[OBF_PEERS_MAX]; /* cuCtxEnablePeerAccess; under the lock */
	struct obf_context *next_free;
};

static inline struct obf_context *obf_context_of(const struct obf_ctx *ctx)
{
	return (struct obf_context *)(uintptr_t)ctx;
}

static inline const struct obf_device *obf_ctx_device(const struct obf_ctx *ctx)
{
	return &obf_process.devices[ctx->device];
}

/* Called once by cuInit, before the state is READY. */
CUresult obf_contexts_start(int n_devices);
/* Creates a context. It is active and not pushed. */
CUresult obf_context_new(int device, unsigned flags, struct obf_context **ret);
/* Destroys the context's contents. The handle becomes invalid, except that of a primary context. */
CUresult obf_context_end(struct obf_context *context);
/* Runs `fn` with the context current in the calling thread. */
CUresult obf_context_within(struct obf_context *context, CUresult (*fn)(struct obf_ctx *ctx));
CUresult obf_primary_retain(int device, struct obf_context **ret);
CUresult obf_primary_release(int device);
CUresult obf_primary_reset(int device);
CUresult obf_stack_push(struct obf_context *context);
/* The same under another handle of the context: that of one of its green contexts. */
CUresult obf_stack_push_as(struct obf_context *context, CUcontext handle);
/*
 * Returns the top of the stack; *ret is NULL if the stack is empty.
 * CUDA_ERROR_CONTEXT_IS_DESTROYED: the top is stale. *ret_handle is set in either case.
 */
CUresult obf_stack_top(struct obf_context **ret, CUcontext *ret_handle);
bool obf_stack_pop(CUcontext *ret_handle);
/* The handle under which the calling thread's current context was made current; NULL: none. */
CUcontext obf_stack_handle(void);
/*
 * Resolves a handle, or NULL for the current context, even if the context is inactive or has a
 * sticky error.
 */
CUresult obf_context_find(CUcontext handle, struct obf_context **ret);
/* Lets kernels of `reader` access the memory of `owner`'s pools. PEER_ACCESS_UNSUPPORTED: they cannot. */
CUresult obf_peer_open(CUdevice owner, CUdevice reader);
/*
 * Returns the active context whose handle has this index (below OBF_CTX_MAX); NULL: none. The
 * context may end at any time, but the object stays valid.
 */
struct obf_context *obf_context_at(uint32_t slot);
/* The checks of obf_ctx_enter, for a context that need not be current. */
CUresult obf_context_check(struct obf_context *context);

/* ---- context-local storage (cls.c) ---- */

typedef void (*obf_cls_dtor)(CUcontext ctx, void *key, void *value);
CUresult obf_cls_put(CUcontext ctx, void *key, void *value, obf_cls_dtor dtor);
CUresult obf_cls_delete(CUcontext ctx, void *key);
CUresult obf_cls_get(void **ret_value, CUcontext ctx, void *key);
/* Runs and removes all destructors; no lock is held while they run. */
void obf_cls_end(struct obf_context *context);

/* ---- code: one image as one kind of device takes it (code.c) ---- */

#define OBF_FILE_MAX (1u << 30) /* bytes of an image in a file */

struct obf_code {
	_Atomic int refs;
	struct obi_entry entry;
	struct obi_symbols symbols;
	void *copy; /* the bytes that entry points to, owned; NULL: the program owns them */
	bool from_text;
	pthread_mutex_t lock; /* protects the payload */
	const uint8_t *payload;
	size_t payload_size;
	void *payload_owned;
};

/*
 * keep: the program promises that the bytes remain valid. CUDA_ERROR_NO_BINARY_FOR_GPU is logged
 * with the remedy.
 */
CUresult obf_code_new(const struct obi_image *image, const struct obf_device *device, bool keep,
	struct obf_code **ret);
struct obf_code *obf_code_ref(struct obf_code *code);
void obf_code_unref(struct obf_code *code);
/* Makes the uncompressed bytes available until the matching drop. Serialises loads of one code. */
CUresult obf_code_payload_take(struct obf_code *code);
void obf_code_payload_drop(struct obf_code *code);
/*
 * Logs why the device cannot use any code of the image: its origin, its contents and the remedy
 * (explain.c).
 */
void obf_explain_no_binary(const struct obi_image *image, const struct obf_device *device);
/* Logs once that the software device has too little memory for an allocation of that size. */
void obf_explain_memory(const struct obf_device *device, uint64_t size);
/* Logs why an image could not be opened, and returns the CUDA error. */
CUresult obf_explain_refused(enum ob_err err);
/*
 * Reads a whole file and appends a NUL. The caller frees it with free(). Errors:
 * CUDA_ERROR_FILE_NOT_FOUND, CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult obf_file_read(const char *path, void **ret_data, size_t *ret_size);

/* ---- modules and functions (module.c, function.c) ---- */

struct obf_library;
struct obf_texref;

struct obf_function {
	struct obf_func pub;
	const struct obi_kernel *kernel;
	const struct obf_device *device;
	bool dense; /* there are no gaps between the parameters */
	int set_value[CU_FUNC_ATTRIBUTE_MAX];
	_Atomic bool exact; /* pub.attrs.exact, published */
	/*
	 * the error if backend->func_load reported that it can never run; under the module's lock
	 */
	CUresult refused;
	struct obf_launch_old *_Atomic old; /* set by the calls of launch_old.c; NULL: nothing */
};

struct obf_global {
	CUdeviceptr addr;
	size_t size;
	bool known, inserted;
	bool shared; /* managed, and the program can access it */
};

struct obf_module {
	struct obf_mod pub;
	struct obf_code *code;
	struct obf_library *library; /* NULL: loaded by cuModuleLoad or a similar call */
	pthread_mutex_t lock;
	struct obf_function *_Atomic *functions; /* by index of the kernel in the symbols */
	struct obf_global *globals;              /* by index of the variable in the symbols */
	/* by index in the symbols; NULL: the program has not asked for it; under the lock */
	struct obf_texref **refs;
	struct obf_module *next, *prev; /* in context->modules, under its lock */
};

static inline struct obf_function *obf_function_of(const struct obf_func *func)
{
	return (struct obf_function *)(uintptr_t)func;
}

static inline struct obf_module *obf_module_of(const struct obf_mod *mod)
{
	return (struct obf_module *)(uintptr_t)mod;
}

struct obf_jit {
	unsigned n;
	CUjit_option *options;
	void **values;
};

CUresult obf_module_load(struct obf_context *context, struct obf_code *code,
	struct obf_library *library, const struct obf_jit *jit, struct obf_module **ret);
void obf_module_free(struct obf_module *module);
struct obf_module *obf_module_find(CUmodule handle);
/* Frees the modules that the context still holds. */
void obf_modules_end(struct obf_context *context);
/* Finds a kernel by name. CUDA_ERROR_INVALID_VALUE: no name; CUDA_ERROR_NOT_FOUND. */
CUresult obf_kernel_index(const struct obi_symbols *symbols, const char *name, size_t *ret);
CUresult obf_module_global(
	struct obf_module *module, const char *name, CUdeviceptr *ret_addr, size_t *ret_size);

/*
 * Called before a launch: asks the backend once whether the function can run, and sets
 * pub.block_max. Not a hot path.
 */
CUresult obf_function_load(struct obf_function *function);
/* Returns the function of kernel `index` of the module; created at first use. */
CUresult obf_function_get(struct obf_module *module, size_t index, struct obf_function **ret);
void obf_function_free(struct obf_function *function);
struct obf_function *obf_function_find(CUfunction handle);
/* Resolves a function or a kernel in the current context, for calls other than launches. */
CUresult obf_function_enter(CUfunction handle, struct obf_function **ret);
CUresult obf_function_exact(struct obf_function *function);
CUresult obf_function_get_attr(struct obf_function *function, CUfunction_attribute attr, int *ret);
CUresult obf_function_set_attr(struct obf_function *function, CUfunction_attribute attr, int value);
/* CUDA_SUCCESS, or the error with which the program may not set this. */
CUresult obf_function_settable(
	const struct obf_function *function, CUfunction_attribute attr, int value);
/* Estimates the attributes of a kernel that no context has loaded. */
void obf_func_attrs_estimate(const struct obi_kernel *kernel, const struct obi_symbols *symbols,
	const struct obf_device *device, struct obf_func_attrs *ret);
int *obf_func_attr_at(struct obf_func_attrs *attrs, CUfunction_attribute attr);

/* ---- libraries and kernels (library.c, kernel.c) ---- */

/* number of contexts whose function of a kernel is found without a second look-up */
#define OBF_KERN_INLINE 8u

struct obf_override {
	int device;
	CUfunction_attribute attr;
	int value;
	struct obf_override *next;
};

struct obf_kern {
	CUkernel handle;
	struct obf_library *library;
	char *name;
	struct obf_func *_Atomic by_slot[OBF_KERN_INLINE];
	struct obf_func *_Atomic *_Atomic more; /* OBF_CTX_MAX rows, allocated when first needed */
	/* attributes set per device; under the library's lock */
	struct obf_override *overrides;
};

struct obf_library {
	CUlibrary handle;
	pthread_mutex_t lock;
	struct obf_code *code[OBF_DEVICE_MAX]; /* by device; NULL: no code for that device */
	/* one of `code`: has the names and kernels of the library */
	struct obf_code *first;
	struct obf_kern *_Atomic *kerns; /* by index of the kernel in first->symbols */
	struct obf_module **modules;     /* by context slot; grows on demand */
	size_t n_modules;
	struct obf_library *next, **link; /* all libraries */
};

struct obf_kern *obf_kern_find(CUkernel handle);
/* Slow path of obf_func_resolve. */
CUresult obf_kern_function(
	struct obf_kern *kern, struct obf_context *context, struct obf_function **ret);
void obf_kern_forget(struct obf_kern *kern, uint32_t slot);
CUresult obf_kern_new(struct obf_library *library, const char *name, struct obf_kern **ret);
void obf_kern_free(struct obf_kern *kern);
struct obf_library *obf_library_find(CUlibrary handle);
CUresult obf_library_kern(struct obf_library *library, size_t index, struct obf_kern **ret);
/* The library's module in a context, loaded at first use. Takes the library's lock. */
CUresult obf_library_module(struct obf_library *library, struct obf_context *context,
	const struct obf_jit *jit, struct obf_module **ret);
/*
 * A context was created: with CUDA_MODULE_LOADING=EAGER, loads every library in it. The caller
 * holds no lock of the front end.
 */
CUresult obf_libraries_load(struct obf_context *context);
/* A context ends: removes every library's module and functions in it, and frees the modules. */
void obf_libraries_forget(struct obf_context *context);

/* ---- the rest ---- */

/* Resident blocks per multiprocessor; 0: the block cannot run at all. */
int obf_occupancy_blocks(
	const struct obf_function *function, uint32_t threads, size_t dynamic_shared);
/*
 * Removes from the map the first range of a context at or above *from and advances *from. Skips
 * mappings of cuMemMap. kind 0: any. False: none left.
 */
bool obf_mem_take_next(
	const struct obf_ctx *ctx, enum obf_mem_kind kind, uint64_t *from, struct obf_mem *ret);
/* Does any range of the map overlap [base, base + size)? size > 0, base + size does not wrap. */
bool obf_mem_overlaps(uint64_t base, uint64_t size);
/* Frees the pinned memory of a context that ends. */
void obf_hostmem_end(const struct obf_ctx *ctx);
/* Adds a line of our log to what cuLogs* return, and calls the program's callbacks (logs.c). */
void obf_logs_put(enum ob_log_level level, const char *text, size_t size);
const void *obf_export_table_find(const CUuuid *id);

#endif
