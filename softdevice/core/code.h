/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A loaded program: what the compiler writes and the engine runs. A function is an array of
 * instructions over slots.
 *
 * A slot has 32 elements of 32 bits (128 bytes), one for each SIMD lane. A 64-bit value takes two
 * adjacent slots, as 32 elements of 64 bits. A predicate is one 32-bit word, bit i for lane i. 8-
 * and 16-bit values are stored zero-extended in 32-bit elements.
 *
 * Ownership: functions, entries and variables belong to their program. Only `native` and `varies`
 * of functions change after the load: `native` is atomic, `varies` is accessed with the lock of
 * native/compile.c held. Any thread may read the rest.
 */
#ifndef OBD_CORE_CODE_H
#define OBD_CORE_CODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softdevice/core/program.h"

#define OBD_LANES           32u
#define OBD_SLOT_BYTES      128u
#define OBD_FULL_MASK       0xffffffffu
#define OBD_MAX_SLOTS       60000u /* per function; operands are 16 bits wide */
#define OBD_MAX_WARPS       32u    /* OBD_BLOCK_MAX_THREADS / OBD_LANES */
/* extra local memory per thread of a kernel with recursion, indirect calls or alloca */
#define OBD_STACK_BYTES     (32u << 10)
#define OBD_MAX_LOCAL_BYTES (512u << 10)
/*
 * Shared memory of each block that belongs to the system, not to the program; cooperative groups
 * keep the state of groups of several warps there. Only programs that ask where it is get it.
 */
#define OBD_RESERVED_SHARED 1024u
/* upper 16 bits of a function's address as seen by device code */
#define OBD_CODE_TAG        0x4f42000000000000ull

struct obd_insn {
	uint16_t op, d, a, b, c, e;
	union {
		uint32_t imm;
		struct {
			uint16_t f, g;
		} x;
	} u;
};
_Static_assert(sizeof(struct obd_insn) == 16, "an instruction is 16 bytes");

struct obd_const {
	uint32_t slot;
	bool wide;
	uint64_t value;
};

/* Functions of the device runtime, called by name. */
enum obd_builtin {
	OBD_BUILTIN_NONE,
	OBD_BUILTIN_VPRINTF,
	OBD_BUILTIN_MALLOC,
	OBD_BUILTIN_FREE,
	OBD_BUILTIN_ASSERTFAIL,
	OBD_BUILTIN_NANOSLEEP,
	OBD_BUILTIN_CONDITION, /* cudaGraphSetConditional */
	/* the device runtime's launches and streams (engine/rt_launch.h) */
	OBD_BUILTIN_BUFFER,
	OBD_BUILTIN_LAUNCH,
	OBD_BUILTIN_STREAM_NEW,
	OBD_BUILTIN_STREAM_FREE,
	OBD_BUILTIN_STREAM_WAIT,
	OBD_BUILTIN_EVENT_NEW,
	OBD_BUILTIN_EVENT_FREE,
	OBD_BUILTIN_EVENT_RECORD,
	OBD_BUILTIN_COPY,
	OBD_BUILTIN_COPY_2D,
	OBD_BUILTIN_FILL,
	OBD_BUILTIN_FILL_2D,
	OBD_BUILTIN_LAST_ERROR,
	OBD_BUILTIN_PEEK_ERROR,
	OBD_BUILTIN_ERROR_NAME,
	OBD_BUILTIN_ERROR_TEXT,
	OBD_BUILTIN_DEVICE_COUNT,
	OBD_BUILTIN_DEVICE,
	OBD_BUILTIN_ATTRIBUTE,
	OBD_BUILTIN_LIMIT,
	OBD_BUILTIN_ALLOC,
	OBD_BUILTIN_ALLOC_FREE,
	OBD_BUILTIN_VERSION,
	OBD_BUILTIN_BLOCK_SYNC,
	OBD_BUILTIN_UNRESOLVED, /* an .extern function without a definition */
};

struct obd_func {
	const char *name;
	uint32_t index;
	bool is_entry, defined, address_taken, calls_indirect, noreturn, uses_alloca;
	enum obd_builtin builtin;
	struct obd_insn *code;
	uint32_t *lines;
	uint32_t *shapes; /* how each instruction uses its fields (shape.h) */
	uint32_t n_code;
	/*
	 * Computes what is the same in all threads of a launch, in slots that the code does not
	 * write. It runs once for each new frame, for all lanes, after the constants are filled in.
	 */
	struct obd_insn *prologue;
	uint32_t n_prologue;
	uint32_t *prologue_shapes;
	uint32_t n_slots;
	uint32_t arg_slot, n_arg_words, ret_slot, n_ret_words;
	struct obd_const *consts;
	uint32_t n_consts;
	uint32_t *tables; /* branch targets of brx.idx: instruction indices */
	uint32_t n_tables;
	uint16_t *call_ops; /* operand lists of calls: slot numbers */
	uint32_t n_call_ops;
	uint32_t local_bytes; /* local memory of this function's own frame, a multiple of 16 */
	/* The call graph, for the layout of shared memory and stacks. */
	uint32_t *callees, n_callees;
	uint32_t *shared_refs, n_shared_refs;
	const char *refused; /* why the function has no code; NULL: it has code */
	/*
	 * Machine code, by enum obd_native_kind (engine/native.h); made when the function is first
	 * run.
	 */
	struct obd_native *_Atomic native[3];
	uint8_t *varies; /* by slot: the value is not assumed to be linear */
};

struct obd_shared_var {
	const char *name;
	uint32_t size, align;
	bool dynamic; /* .extern .shared x[] */
};

/* The place of a shared variable in a kernel's shared memory. */
struct obd_shared_at {
	uint32_t var, offset;
};

/* A kernel, with the internal data that belongs to obd_kernel. */
struct obd_entry {
	struct obd_kernel pub;
	struct obd_func *func;
	struct obd_shared_at *shared; /* the variables that the kernel can reach, sorted by `var` */
	uint32_t n_shared;
	uint32_t stack_bytes; /* local memory per thread */
};

/* A variable of type .texref, .surfref or .samplerref. */
struct obd_ref {
	const char *name;
	uint64_t handle;
};

struct obd_program {
	struct obd_env env;
	struct obd_arena *arena;
	struct obd_func **funcs;
	uint32_t n_funcs;
	struct obd_entry *entries;
	uint32_t n_entries;
	struct obd_global *globals;
	uint32_t n_globals;
	struct obd_shared_var *shared;
	uint32_t n_shared;
	struct obd_ref *refs;
	uint32_t n_refs;
	uint32_t ptx_version, target_arch;
	uint32_t const_bytes;
	bool launches;        /* it calls the device runtime's launches and streams */
	bool reserved_shared; /* the code reads where the reserved shared memory is */
};

#endif
