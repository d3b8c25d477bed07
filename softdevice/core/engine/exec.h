/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The run-time objects of the interpreter: warps as sets of paths, blocks, workers, launches. A
 * path is a set of lanes of a warp that have the same pc and frame. In this folder a lane is always
 * a SIMD lane.
 *
 * Ownership: blocks, warps and frames belong to the worker that runs them, and only that worker's
 * thread accesses them. Several workers share one struct obd_launch; its fields say how.
 */
#ifndef OBD_CORE_EXEC_H
#define OBD_CORE_EXEC_H

#include <setjmp.h>
#include <stdatomic.h>

#include "softdevice/core/code.h"

#define OBD_MAX_BARRIERS    25u /* 16 named ones, the cluster's, one for each warpgroup */
#define OBD_BARRIER_CLUSTER 16u
#define OBD_BARRIER_GROUP   17u
#define OBD_GROUP_WARPS     4u /* of a warpgroup */
#define OBD_MAX_CALL_DEPTH  4096u
#define OBD_APART           128u /* bytes between data of different cache lines */

/*
 * One level of the call stack. All paths of a warp that entered by the same call share it, so the
 * frames of a warp form a tree (a cactus stack).
 */
struct obd_frame {
	struct obd_frame *parent;
	const struct obd_func *func;
	const struct obd_insn *ret_pc; /* where the parent continues */
	uint16_t ret_list;             /* the parent's operand list of the call, for the results */
	uint32_t depth;
	uint32_t refs;
	struct obd_frame *next_free, *next_all;
	uint32_t *fp; /* [32] offset of each lane's stack frame in local memory */
	char *regs;   /* n_slots * OBD_SLOT_BYTES bytes, aligned */
};

/*
 * Added to obd_warp.mem_in, an address that is a multiple of 4: how the lanes access memory.
 * HALVES: the lanes of each half of the warp follow each other as lanes 0 and 1 do.
 */
enum obd_mem_form { OBD_MEM_LANES, OBD_MEM_ROW, OBD_MEM_SAME, OBD_MEM_HALVES };

enum obd_path_state {
	OBD_PATH_RUN,
	OBD_PATH_SYNC,    /* at a .sync operation, waiting for the other lanes of its member mask */
	OBD_PATH_BARRIER, /* at a block barrier */
};

struct obd_path {
	const struct obd_insn *pc;
	struct obd_frame *frame;
	uint32_t mask;
	uint8_t state;
	bool yielded;
	uint8_t barrier;
	uint32_t members; /* member mask of the .sync operation */
};

enum obd_warp_state {
	OBD_WARP_FRESH, /* of a block that has started; the warp has no path and no frame yet */
	OBD_WARP_READY,
	OBD_WARP_BLOCKED,
	OBD_WARP_DONE,
};

struct obd_warp {
	_Alignas(64) uint64_t addr[OBD_LANES]; /* the addresses of the current access */
	uint32_t cc[OBD_LANES];                /* carry flag, 0 or 1 */
	/* address of each lane's local memory, as a generic address */
	uint64_t lbase[OBD_LANES];
	uint32_t sp[OBD_LANES]; /* each lane's next free offset in local memory */
	uint32_t tid[3][OBD_LANES];
	uintptr_t window_base, window_size;
	uintptr_t shared_base; /* shared memory of the block */
	uint32_t shared_bytes;
	uint32_t stack_bytes;
	/* the run loop returns when the next instruction is at this address or above */
	uintptr_t limit;
	/*
	 * The current access; + OBD_MEM_ROW or OBD_MEM_SAME: mem_first is used and not addr;
	 * + OBD_MEM_HALVES: addr[0], addr[1] and addr[16].
	 */
	const struct obd_insn *mem_in;
	uint64_t mem_first;          /* address of lane 0 */
	const struct obd_insn *from; /* first instruction that is not counted yet */
	uint64_t count;              /* instructions executed in this run */
	uint64_t steps;              /* instructions of all runs since the block began */
	struct obd_path *cur;
	struct obd_cta *cta;
	struct obd_worker *worker;
	int64_t budget; /* backward branches left in this turn */
	bool yield;
	bool sliced; /* the last turn was a short one that reached its limit */
	bool memcheck;
	/*
	 * Only this worker's thread accesses the shared memory of the block. False where another
	 * block of a cluster can do so.
	 */
	bool shared_alone;
	/* number of strong loads and atomics of this turn that may be part of a spin loop */
	uint32_t spinning;
	uint32_t mem_mask; /* lanes of the current access */
	uint32_t id;
	uint32_t born, live; /* lanes that exist; lanes that have not exited */
	uint32_t n_paths;
	enum obd_warp_state state;
	struct obd_path paths[OBD_LANES];
	/* of each thread: what cudaGetLastError returns; only in programs that launch grids */
	uint32_t errors[OBD_LANES];
	/* lanes that have arrived at the cluster's barrier, which is not complete */
	uint32_t cluster_arrived;
};

struct obd_barrier {
	uint32_t arrived;  /* threads */
	uint32_t expected; /* threads; 0: all live threads of the block */
	uint32_t warp_arrived[OBD_MAX_WARPS];
	uint32_t red_popc;
	bool red_and, red_or;
};

struct obd_cta {
	struct obd_launch *launch;
	struct obd_worker *worker;
	struct obd_cta *next;
	uint32_t ctaid[3];
	uint32_t first_thread[3]; /* ctaid * ntid */
	uint64_t index;
	uint32_t n_warps, n_threads, n_live;
	uint32_t arrived; /* bit i: threads have arrived at barrier i */
	char *shared;
	char *local;
	size_t local_size;
	struct obd_barrier barriers[OBD_MAX_BARRIERS];
	uint32_t first_sp[OBD_LANES]; /* of a warp that starts */
	struct obd_cluster *cluster;  /* NULL: the launch has none */
	uint32_t rank;                /* in the cluster */
	uint64_t null_last; /* the last work on the block's NULL stream (family.h); 0: none */
	struct obd_mbarrier_wait *waits;
	struct obd_warp *warps;
};

/* A grid that is running. */
struct obd_launch {
	const struct obd_grid *grid;
	struct obd_program *program;
	const struct obd_entry *entry;
	const struct obd_func *func;
	size_t params_size; /* bytes of params and workspace */
	char *params;       /* in the window, so that cvta.param works */
	char *workspace;    /* for the cooperative grid barrier; in the window */
	uint64_t n_ctas;
	/*
	 * The numbers of blocks are handed out in order. All workers write next_cta; what they only
	 * read is in other cache lines.
	 */
	char before_next[OBD_APART];
	_Atomic uint64_t next_cta;
	char after_next[OBD_APART];
	_Atomic int stop; /* set after a fault or an abort; workers return as soon as they see it */
	_Atomic int fault_taken;
	/* Written by the thread that set fault_taken. Read after all workers have returned. */
	struct obd_fault fault;
	_Atomic uint64_t longest; /* instructions of the warp that executed most */
	/* blocks of a cluster, 1: no clusters; then all sides are 1 */
	uint32_t cluster_size, cluster[3];
	/* a worker takes at most 1 / n_parts of the blocks that are left, but at least one */
	uint32_t n_parts;
	uint8_t native; /* enum obd_native_kind: which machine code of the functions runs */
	uint32_t shared_size;
	uint32_t reserved_at;    /* offset of the reserved shared memory, behind the program's */
	uint32_t resident_limit; /* number of blocks that one worker may hold at once */
	uint32_t pool_refs;      /* number of workers that use the launch; the pool's lock */
	/*
	 * Of a launch whose code launches grids (family.h), else NULL. `joined` and `left` are
	 * called with the pool's lock held when a worker enters or has left the launch; `help` by a
	 * worker that `wants_help`.
	 */
	struct obd_node *node;
	void (*joined)(struct obd_launch *l);
	void (*left)(struct obd_launch *l);
	void (*help)(struct obd_launch *l);
	/* The functions of the device runtime that launch, as obd_rt_call. */
	bool (*runtime)(struct obd_warp *w, const struct obd_insn *in, const struct obd_func *f,
		char *regs, uint32_t m);
	/* For the memory checker: memory that belongs to the family. */
	bool (*owns)(const struct obd_launch *l, uintptr_t at, size_t size);
	struct obd_launch *next;
};

/* One thread's state while it runs blocks of one launch. */
struct obd_worker {
	struct obd_launch *launch;
	struct obd_cta *ctas, *free_ctas;
	uint32_t n_ctas;
	uint64_t next_cta, end_cta; /* numbers of the blocks that it starts next */
	/* of a launch with clusters: all, and those without running blocks; they own the blocks */
	struct obd_cluster *clusters, *free_clusters;
	struct obd_frame **free_frames; /* by function index; the constants are filled in */
	struct obd_frame *all_frames;
	/* the registers of a warp that has ended, as a new warp needs them; NULL: there are none */
	struct obd_frame *first_frame;
	struct obd_warp *cur_warp;
	uint64_t lane_instructions;
	uint64_t longest; /* instructions of the warp that executed most */
	uint32_t n_run;
	/* device code waits for grids that were launched: run one before the next turn */
	bool wants_help;
	sigjmp_buf jmp;
};

typedef const struct obd_insn *(*obd_handler)(
	const struct obd_insn *in, char *regs, uint32_t m, struct obd_warp *w, uintptr_t limit);

/* The name of a function that is compiled once per instruction set. */
#define OBD_CAT2(a, b)    a##_##b
#define OBD_CAT(a, b)     OBD_CAT2(a, b)
#define OBD_FOR_ISA(name) OBD_CAT(name, OBD_ISA)

/* A handler returns this to leave the run loop, after it has stored the pc in the path. */
#define OBD_LEAVE ((const struct obd_insn *)UINTPTR_MAX)

/* One compiled instruction set. */
struct obd_isa {
	const char *name;
	/* Runs the path w->cur until a handler returns OBD_LEAVE. */
	void (*run)(struct obd_warp *w);
	const obd_handler *full; /* by operation: the handler for all lanes */
	bool native;             /* there is machine code for this instruction set (native/) */
	bool chains;             /* a handler goes on to the next one, up to its limit */
	/* Executes f's prologue for all lanes of new registers. */
	void (*prepare)(struct obd_warp *w, const struct obd_func *f, char *regs);
};

/* Set once, when the library is loaded. Hidden: handlers read it without the GOT. */
extern bool obd_fullmask __attribute__((visibility("hidden")));
extern const struct obd_isa obd_isa_baseline, obd_isa_sse41, obd_isa_avx2, obd_isa_avx512;
extern const struct obd_isa *obd_isa_current;

#endif
