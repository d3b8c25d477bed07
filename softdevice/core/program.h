/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_program: one PTX module, parsed and ready to run. obd_grid: one launch of a kernel of it.
 *
 * This header is the complete interface between the interpreter ("core": PTX text in, values of
 * SIMD lanes out) and the driver API above it ("api": contexts, streams, memory). The core does not
 * know CUDA handles or streams.
 *
 * Ownership: the program owns everything its accessors return. The memory of global variables comes
 * from the environment's allocator and is returned to it. Threads: the caller must serialise load
 * and free of one program. obd_grid_run may be called for one program by many threads at once.
 */
#ifndef OBD_PROGRAM_H
#define OBD_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"

/*
 * Limits. A PTX module that exceeds one of them is refused with CUDA_ERROR_INVALID_PTX and a line
 * in the log.
 */
#define OBD_PTX_MAX_TEXT           (512u << 20) /* bytes of PTX text */
#define OBD_KERNEL_MAX_PARAM_BYTES 32764u       /* limit of CUDA 12.1 and later */
#define OBD_BLOCK_MAX_THREADS      1024u
#define OBD_BLOCK_MAX_SHARED       (227u << 10) /* static + dynamic, bytes */
#define OBD_CLUSTER_MAX            16u          /* blocks */
#define OBD_PENDING_LAUNCHES       2048u        /* by device code, unless the program says more */

struct obd_program;
struct obd_textures;

/* What a program needs from the device it is loaded on. Any thread may call the callbacks. */
struct obd_env {
	void *user;
	/*
	 * Device memory. `size` in bytes, `align` a power of two. Zero-filled. NULL: out of memory.
	 */
	void *(*alloc)(void *user, size_t size, size_t align);
	void (*free)(void *user, void *p);
	/*
	 * The window contains every address that device code may access (global, shared, local,
	 * constant).
	 */
	uintptr_t window_base;
	size_t window_size;
	/*
	 * The core allocates the local memory and, for each running CTA, the shared memory from
	 * here.
	 */
	void *(*scratch_alloc)(void *user, size_t size, size_t align);
	void (*scratch_free)(void *user, void *p, size_t size);
	/*
	 * Bounds check for OUTBOARD_SOFT_MEMCHECK=1; NULL when it is off. True if [addr, addr+size)
	 * lies in one live allocation.
	 */
	bool (*check)(void *user, uintptr_t addr, size_t size);
	/* The same for the memory of a texture or surface; used only if `check` is not NULL. */
	bool (*check_texture)(void *user, uintptr_t addr, size_t size);
	/* Device heap (malloc/free in kernels). */
	void *(*heap_alloc)(void *user, size_t size);
	void (*heap_free)(void *user, void *p);
	/*
	 * Device printf. `text` is formatted text. The order of calls from different CTAs is not
	 * defined; the text of one printf is passed in one call.
	 */
	void (*print)(void *user, const char *text, size_t size);
	/*
	 * The textures and surfaces that kernels can access. Those of a program's variables are
	 * added to it. NULL: there are none.
	 */
	struct obd_textures *textures;
	/*
	 * What device code may ask: an attribute (CUdevice_attribute) or a limit (CUlimit) of the
	 * device. False: unknown. NULL: nothing is known.
	 */
	bool (*ask)(void *user, bool limit, uint32_t which, uint64_t *ret);
	int ordinal;                 /* of the device */
	unsigned compute_capability; /* 90 for 9.0 */
	unsigned sm_count;
};

struct obd_param {
	uint32_t offset, size; /* bytes */
};

struct obd_kernel {
	const char *name;
	uint32_t n_params;
	const struct obd_param *params;
	uint32_t param_bytes;
	uint32_t static_shared; /* bytes */
	uint32_t local_bytes;   /* per thread */
	uint32_t const_bytes;
	uint32_t registers;   /* an estimate, never 0 */
	uint32_t max_threads; /* .maxntid product or OBD_BLOCK_MAX_THREADS */
	uint32_t reqntid[3];  /* 0 when absent */
	uint32_t cluster[3];  /* .reqnctapercluster, 0 when absent */
	bool explicit_cluster;
	uint32_t ptx_version; /* 90 for .version 9.0 */
	uint32_t target_arch; /* 75 for sm_75 */
	/* one sentence with the line: why it cannot run on this device. NULL: it can run. */
	const char *refused;
};

struct obd_global {
	const char *name;
	void *addr;
	size_t size;
	bool is_const, is_managed;
};

/*
 * Parses a module. `text` need not end in NUL. Global and constant variables are allocated and
 * initialised at once. Function bodies may be lowered lazily, but syntax errors and opcodes that do
 * not exist in PTX are detected here. Valid code that this device does not implement is not an
 * error of the module: the kernels that reach it are marked (obd_kernel.refused) and must not be
 * run.
 *
 * Results: CUDA_SUCCESS; CUDA_ERROR_INVALID_PTX (218); CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222);
 * CUDA_ERROR_NO_BINARY_FOR_GPU (209: .target above the device); CUDA_ERROR_OUT_OF_MEMORY. `log`
 * (may be NULL) receives messages of the form "line N: what is wrong", NUL-terminated and cut to
 * log_size.
 */
CUresult obd_program_load(const char *text, size_t size, const struct obd_env *env,
	struct obd_program **ret, char *log, size_t log_size);
void obd_program_free(struct obd_program *p);

size_t obd_program_kernel_count(const struct obd_program *p);
const struct obd_kernel *obd_program_kernel_at(const struct obd_program *p, size_t i);
/* NULL: none */
const struct obd_kernel *obd_program_kernel(const struct obd_program *p, const char *name);
size_t obd_program_global_count(const struct obd_program *p);
const struct obd_global *obd_program_global_at(const struct obd_program *p, size_t i);
const struct obd_global *obd_program_global(const struct obd_program *p, const char *name);
/* The handle of a variable of type .texref or .surfref (texture.h). 0: there is none. */
uint64_t obd_program_ref(const struct obd_program *p, const char *name);

/*
 * Grids that name the same limit run on at most `most` threads of the pool together, and one of
 * them runs on the thread that called obd_grid_run. Such a call waits while all are taken. The
 * owner sets `most` (at least 1) before a grid names it; the memory must outlive the grids.
 */
struct obd_limit {
	_Atomic unsigned most;
	unsigned running, waiting; /* the pool's lock */
};

struct obd_grid {
	struct obd_program *program;
	const struct obd_kernel *kernel;
	uint32_t grid[3], block[3];
	uint32_t dynamic_shared; /* bytes */
	uint32_t cluster[3];     /* 0 or 1: the kernel's own, if it has one */
	/* grids launched by device code that have not started yet; 0: OBD_PENDING_LAUNCHES */
	uint32_t pending_launches;
	bool cooperative; /* all CTAs are resident at once; grid sync is allowed */
	/* kernel->param_bytes bytes; obd_grid_run copies them before the grid starts */
	const void *params;
	uint64_t grid_id;
	/*
	 * Another thread sets it to a non-zero value to stop the grid as soon as possible. The
	 * result is then 702.
	 */
	_Atomic int *abort;
	struct obd_limit *limit; /* NULL: all threads of the pool */
};

/* Why a grid failed. obd_grid_run fills it in when it returns an error. */
struct obd_fault {
	/*
	 * 700 illegal address, 710 assert, 715 illegal instruction, 716 misaligned, 717 address
	 * space, 718 pc, 719 launch failure (trap)
	 */
	CUresult result;
	uint32_t block[3], thread[3];
	uintptr_t address;
	uint32_t access_bytes;
	bool is_write;
	uint32_t ptx_line;
	char text[256]; /* one sentence, with the kernel's name */
};

struct obd_pool; /* worker threads that run CTAs */

/* n_threads 0: one per online core. NULL: no threads could be started. */
struct obd_pool *obd_pool_new(unsigned n_threads);
void obd_pool_free(struct obd_pool *pool);
unsigned obd_pool_threads(const struct obd_pool *pool);

/*
 * Runs a grid to its end, and the grids that it launches. Blocks. The calling thread may be used as
 * one of the workers. Several grids may run at once on one pool. Returns CUDA_SUCCESS or
 * ret_fault->result. SIGSEGV, SIGBUS and SIGFPE caused inside the window are caught. The core
 * installs its handlers once and passes other faults on to the previous handlers.
 */
CUresult obd_grid_run(
	struct obd_pool *pool, const struct obd_grid *grid, struct obd_fault *ret_fault);

/*
 * The instruction set that runs, of those that were compiled: "avx512", "avx2", "sse4.1",
 * "baseline". OUTBOARD_SOFT_ISA selects a lower one.
 */
const char *obd_core_isa(void);

/* For tests and benchmarks: if false, kernels that start now run in the interpreter. */
extern bool obd_native_on;

/*
 * Lane instructions (one instruction in one SIMD lane) executed since the program started, summed
 * over threads. For benchmarks.
 */
uint64_t obd_core_lane_instructions(void);
/*
 * The number of instructions of each launch's longest warp, summed over launches since the program
 * started. It estimates the time of the launches, run one after another, on a device that has room
 * for all warps of a launch at once.
 */
uint64_t obd_core_longest_instructions(void);

#endif
