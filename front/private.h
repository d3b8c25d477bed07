/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the files of the front end share with each other and nobody else: the full objects behind the
 * public ones of front.h (the public part is the first member, so a pointer to one is a pointer to
 * the other), and the functions that cross files.
 *
 * Lock order: libraries' list, library, module, context, memory map. No function of the backend that may call
 * back into a program is called under a lock; mod_load and func_get of the backend run under the
 * library's and module's lock, so that each happens once.
 */
#ifndef OBF_PRIVATE_H
#define OBF_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/ids.h"
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
	_Atomic bool exiting; /* exit() was called, or main has returned */
	struct obf_device devices[OBF_DEVICE_MAX];
};

extern struct obf_process obf_process;

/* The first line of every public call but cuInit and pure look-ups. */
static inline CUresult obf_ready(void)
{
	/* Acquire pairs with the release at the end of cuInit: devices and contexts are seen. */
	if (ob_unlikely(atomic_load_explicit(&obf_process.state, memory_order_acquire) !=
		    OBF_STATE_READY))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (ob_unlikely(obf_in_host_function))
		return CUDA_ERROR_NOT_PERMITTED;
	return obf_process.backend->alive ? obf_process.backend->alive() : CUDA_SUCCESS;
}

static inline bool obf_device_valid(CUdevice device)
{
	return device >= 0 && device < obf_process.n_devices;
}

/* An attribute that the front end itself needs; `otherwise` when the device does not tell. */
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

struct obf_cls_block;
struct obf_module;

struct obf_context {
	struct obf_ctx pub;
	pthread_mutex_t lock;
	uint32_t slot; /* index of the handle: rows of per-context tables */
	int usage;     /* primary: retains; else attaches; under the lock */
	/* a primary context that was reset or released: calls say destroyed, not invalid */
	bool was_active;
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	_Atomic size_t limit[CU_LIMIT_MAX];
	_Atomic bool limit_known[CU_LIMIT_MAX];
	struct obf_cls_block *_Atomic cls;
	struct obf_module *modules; /* under the lock */
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
/* A new context, active, not pushed. */
CUresult obf_context_new(int device, unsigned flags, struct obf_context **ret);
/* Destroys what is in it; a created context's handle ends, a primary one's stays. */
CUresult obf_context_end(struct obf_context *context);
/* Runs `fn` with the context current in the calling thread. */
CUresult obf_context_within(struct obf_context *context, CUresult (*fn)(struct obf_ctx *ctx));
CUresult obf_primary_retain(int device, struct obf_context **ret);
CUresult obf_primary_release(int device);
CUresult obf_primary_reset(int device);
CUresult obf_stack_push(struct obf_context *context);
/*
 * The top; *ret NULL when the stack is empty. CUDA_ERROR_CONTEXT_IS_DESTROYED when it is stale;
 * *ret_handle is set all the same.
 */
CUresult obf_stack_top(struct obf_context **ret, CUcontext *ret_handle);
bool obf_stack_pop(CUcontext *ret_handle);
/* A handle or NULL for the current one, no matter whether active or sticky. */
CUresult obf_context_find(CUcontext handle, struct obf_context **ret);
/*
 * The active context whose handle has this index below OBF_CTX_MAX; NULL: none. It may end
 * meanwhile; the object stays.
 */
struct obf_context *obf_context_at(uint32_t slot);
/* The checks of obf_ctx_enter for a context that need not be the current one. */
CUresult obf_context_check(struct obf_context *context);

/* ---- context-local storage (cls.c) ---- */

typedef void (*obf_cls_dtor)(CUcontext ctx, void *key, void *value);
CUresult obf_cls_put(CUcontext ctx, void *key, void *value, obf_cls_dtor dtor);
CUresult obf_cls_delete(CUcontext ctx, void *key);
CUresult obf_cls_get(void **ret_value, CUcontext ctx, void *key);
/* Runs and forgets all destructors; no lock is held while they run. */
void obf_cls_end(struct obf_context *context);

/* ---- code: one image as one kind of device takes it (code.c) ---- */

#define OBF_FILE_MAX (1u << 30) /* bytes of an image in a file */

struct obf_code {
	_Atomic int refs;
	struct obi_entry entry;
	struct obi_symbols symbols;
	void *copy; /* owned bytes behind entry, or NULL: the program keeps them */
	bool from_text;
	pthread_mutex_t lock; /* the payload */
	const uint8_t *payload;
	size_t payload_size;
	void *payload_owned;
};

/* keep: the program promises that the bytes stay. NO_BINARY_FOR_GPU is logged with the remedy. */
CUresult obf_code_new(const struct obi_image *image, const struct obf_device *device, bool keep,
	struct obf_code **ret);
struct obf_code *obf_code_ref(struct obf_code *code);
void obf_code_unref(struct obf_code *code);
/* The uncompressed bytes until the matching drop. Serialises loads of one code. */
CUresult obf_code_payload_take(struct obf_code *code);
void obf_code_payload_drop(struct obf_code *code);
/*
 * Logs why the device takes none of the image's code: whose it is, what it holds, what helps
 * (explain.c).
 */
void obf_explain_no_binary(const struct obi_image *image, const struct obf_device *device);
/* A whole file, with a NUL after it; free() it. FILE_NOT_FOUND, OUT_OF_MEMORY. */
CUresult obf_file_read(const char *path, void **ret_data, size_t *ret_size);

/* ---- modules and functions (module.c, function.c) ---- */

struct obf_library;

struct obf_function {
	struct obf_func pub;
	const struct obi_kernel *kernel;
	const struct obf_device *device;
	bool dense;        /* the parameters leave no gaps */
	uint32_t set_mask; /* attributes the program has set, by CUfunction_attribute */
	int set_value[CU_FUNC_ATTRIBUTE_MAX];
	_Atomic bool exact; /* pub.attrs.exact, published */
	/* backend->func_load said that it can never run; the module's lock */
	CUresult refused;
};

struct obf_global {
	CUdeviceptr addr;
	size_t size;
	bool known, inserted;
};

struct obf_module {
	struct obf_mod pub;
	struct obf_code *code;
	struct obf_library *library; /* NULL: loaded by cuModuleLoad and its kin */
	bool from_runtime;           /* loaded through the runtime's private interface */
	pthread_mutex_t lock;
	struct obf_function *_Atomic *functions; /* by kernel of the symbols */
	struct obf_global *globals;              /* by variable of the symbols */
	struct obf_module *next;                 /* of the context */
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
CUresult obf_module_global(
	struct obf_module *module, const char *name, CUdeviceptr *ret_addr, size_t *ret_size);

/* A launch needs it: asks the backend once whether it can run; then pub.block_max is set. Not hot. */
CUresult obf_function_load(struct obf_function *function);
/* The function of the module's kernel number `index`, made at first use. */
CUresult obf_function_get(struct obf_module *module, size_t index, struct obf_function **ret);
void obf_function_free(struct obf_function *function);
struct obf_function *obf_function_find(CUfunction handle);
/* A function or a kernel in the current context, for calls other than launches. */
CUresult obf_function_enter(CUfunction handle, struct obf_function **ret);
CUresult obf_function_exact(struct obf_function *function);
CUresult obf_function_get_attr(struct obf_function *function, CUfunction_attribute attr, int *ret);
CUresult obf_function_set_attr(struct obf_function *function, CUfunction_attribute attr, int value);
/* CUDA_SUCCESS, or why the program may not set this. */
CUresult obf_function_settable(
	const struct obf_function *function, CUfunction_attribute attr, int value);
/* What can be said of a kernel before any context has it. */
void obf_func_attrs_guess(const struct obi_kernel *kernel, const struct obi_symbols *symbols,
	const struct obf_device *device, struct obf_func_attrs *ret);
int *obf_func_attr_at(struct obf_func_attrs *attrs, CUfunction_attribute attr);

/* ---- libraries and kernels (library.c, kernel.c) ---- */

/* contexts whose function of a kernel is found without a second look-up */
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
	struct obf_func *_Atomic *_Atomic more; /* OBF_CTX_MAX rows, made when first needed */
	/* attributes set per device; under the library's lock */
	struct obf_override *overrides;
};

struct obf_library {
	CUlibrary handle;
	pthread_mutex_t lock;
	struct obf_code *code[OBF_DEVICE_MAX]; /* by device; NULL: nothing in it runs there */
	struct obf_code *first;                /* one of them: names and kernels of the library */
	struct obf_kern *_Atomic *kerns;       /* by kernel of first's symbols */
	struct obf_module **modules;           /* by context slot, grown on demand */
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
 * A context has come: with CUDA_MODULE_LOADING=EAGER loads every library there. No lock of the
 * front end's is held.
 */
CUresult obf_libraries_load(struct obf_context *context);
/* A context goes: forgets every library's module and functions in it, and frees the modules. */
void obf_libraries_forget(struct obf_context *context);

/* ---- the rest ---- */

/* Resident blocks per multiprocessor; 0 when the block cannot run at all. */
int obf_occupancy_blocks(
	const struct obf_function *function, uint32_t threads, size_t dynamic_shared);
/*
 * Takes out one range of a context at or above *from, which moves on, but no mapping of cuMemMap; kind 0: any. False: none
 * left.
 */
bool obf_mem_take_next(
	const struct obf_ctx *ctx, enum obf_mem_kind kind, uint64_t *from, struct obf_mem *ret);
/* Frees pinned memory of a context that ends. */
void obf_hostmem_end(const struct obf_ctx *ctx);
const void *obf_export_table_find(const CUuuid *id);

#endif
