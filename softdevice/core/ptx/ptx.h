/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Internal objects of the PTX front end: symbols, statements, and the function that is being built.
 * They exist while one module is loaded, in the loader's scratch arena. One thread uses them.
 *
 * Each statement is lowered as soon as it is parsed: its operations over virtual registers are
 * added to the builder. At the end of the function obd_build_finish assigns slots to the registers
 * and writes the code.
 */
#ifndef OBD_CORE_PTX_H
#define OBD_CORE_PTX_H

#include <setjmp.h>

#include "softdevice/core/arena.h"
#include "softdevice/core/code.h"
#include "softdevice/core/half.h"
#include "softdevice/core/ops.h"
#include "softdevice/core/ptx/lex.h"

#define OBD_MAX_REGISTERS   (1u << 20) /* virtual, per function */
#define OBD_MAX_OPERANDS    16u
#define OBD_MAX_ITEMS       16u /* in one { } vector */
#define OBD_MAX_TYPES       4u
#define OBD_MAX_FREE_WORDS  8u
#define OBD_MAX_WORDS       8192u /* in the parameters of one call */
#define OBD_MAX_SCOPES      64u
#define OBD_MAX_VAR_BYTES   ((uint64_t)1 << 36)
#define OBD_MAX_CODE        (1u << 22) /* operations of one function */
/* total of all kernels, over the functions that they reach */
#define OBD_MAX_SHARED_REFS (1u << 22)
#define OBD_NONE            UINT32_MAX
/*
 * Flag in an entry of `labels`: the remaining bits are the number of another label, which defines
 * the position.
 */
#define OBD_LABEL_ALIAS     0x40000000u

/* The known qualifiers; a statement has a set of them. */
/* clang-format off */
#define OBD_QUALIFIERS(Q) \
	Q(cc) Q(lo) Q(hi) Q(wide) Q(ftz) Q(sat) Q(rn) Q(rz) Q(rm) Q(rp) Q(rna) Q(rni) Q(rzi) \
	Q(rmi) Q(rpi) Q(approx) Q(full) Q(satfinite) Q(relu) Q(NaN) Q(xorsign) Q(abs) Q(uni) Q(to) \
	Q(global) Q(shared) Q(local) Q(param) Q(generic) Q(relaxed) Q(acquire) Q(release) \
	Q(acq_rel) Q(weak) Q(mmio) Q(sc) Q(cta) Q(gpu) Q(sys) Q(cluster) Q(nc) Q(ca) Q(cg) Q(cs) \
	Q(lu) Q(cv) Q(wb) Q(wt) Q(v2) Q(v4) Q(v8) Q(eq) Q(ne) Q(lt) Q(le) Q(gt) Q(ge) Q(ls) Q(hs) \
	Q(equ) Q(neu) Q(ltu) Q(leu) Q(gtu) Q(geu) Q(num) Q(nan) Q(and) Q(or) Q(xor) Q(popc) Q(add) \
	Q(inc) Q(dec) Q(min) Q(max) Q(exch) Q(cas) Q(sync) Q(arrive) Q(red) Q(aligned) Q(all) \
	Q(any) Q(ballot) Q(up) Q(down) Q(bfly) Q(idx) Q(l) Q(r) Q(clamp) Q(wrap) Q(shiftamt) \
	Q(b4e) Q(f4e) Q(rc8) Q(ecl) Q(ecr) Q(rc16) Q(noftz) Q(finite) Q(infinite) Q(number) \
	Q(notanumber) Q(normal) Q(subnormal) Q(warp) Q(wait) Q(async) Q(bulk) Q(commit_group) \
	Q(wait_group) Q(wait_all) Q(launch_dependents) Q(proxy) Q(alias) Q(mode) Q(wt_hint) \
	Q(unsupported) Q(l2) Q(oob) Q(entry) Q(divergent) Q(mbarrier_init) Q(noinc) Q(gl) \
	Q(unified) Q(mask)
/* clang-format on */

enum obd_qualifier {
#define Q(name) OBD_Q_##name,
	OBD_QUALIFIERS(Q)
#undef Q
		OBD_Q_volatile,
	OBD_Q_const,
	OBD_Q_COUNT
};

enum obd_reg_class { OBD_CLASS_PRED, OBD_CLASS_32, OBD_CLASS_64, OBD_CLASS_128, OBD_CLASS_COUNT };

enum obd_symbol_kind {
	OBD_SYM_REGISTER, /* one register, or a family name<count> */
	OBD_SYM_GLOBAL,   /* variable in global or constant memory */
	OBD_SYM_SHARED,
	OBD_SYM_LOCAL,
	OBD_SYM_KERNEL_PARAM,
	OBD_SYM_PARAM, /* parameter of a function or of a call, stored in words */
	OBD_SYM_FUNC,
	OBD_SYM_LABEL,
	OBD_SYM_PROTO,
	OBD_SYM_TARGETS, /* .branchtargets */
};

struct obd_symbol {
	const char *name;
	uint32_t size, hash;
	uint32_t scope;
	enum obd_symbol_kind kind;
	struct obd_symbol *next_bucket, *next_scope;
	enum obd_type type;
	/* registers: number of the first, and how many (0: not a family); params: words */
	uint32_t vreg, count;
	/* global, shared, function: index in the program; label: number; targets: table */
	uint32_t index;
	uint64_t offset, bytes;
	bool is_array, is_const, is_formal, spilled, is_ret;
	void *addr; /* address of a global, once it has memory */
	struct obd_function_decl *decl;
};

struct obd_param_decl {
	const char *name;
	uint32_t name_size;
	enum obd_type type;
	uint32_t bytes, align, offset, words;
	bool is_array, is_register;
};

struct obd_function_decl {
	struct obd_func *func;
	struct obd_param_decl *params, *rets;
	uint32_t n_params, n_rets;
	bool is_weak, is_extern;
};

enum obd_operand_kind {
	OBD_OPD_NONE,
	OBD_OPD_REG,
	OBD_OPD_IMM,
	OBD_OPD_F32,
	OBD_OPD_F64,
	OBD_OPD_SYMBOL,
	OBD_OPD_ADDRESS,
	OBD_OPD_LIST,
	OBD_OPD_SREG,
	OBD_OPD_SINK,
};

struct obd_operand {
	enum obd_operand_kind kind;
	uint32_t vreg; /* register; base register of an address, or OBD_NONE */
	enum obd_type type;
	uint64_t value; /* value of an immediate; number of a special register */
	int64_t offset; /* offset from the symbol or base register */
	struct obd_symbol *sym;
	bool negated;  /* !p */
	uint32_t pair; /* second predicate of p|q, or OBD_NONE */
	bool pair_sink;
	struct obd_operand *items;
	uint32_t n_items;
};

struct obd_stmt {
	const char *op;
	uint32_t op_size;
	uint32_t line;
	uint64_t quals[(OBD_Q_COUNT + 63) / 64];
	enum obd_type types[OBD_MAX_TYPES];
	uint32_t n_types;
	uint8_t order[8]; /* comparison, boolean and operation qualifiers, in source order */
	uint32_t n_order;
	/* qualifiers that are not in the set, such as m16n8k16; only a few opcodes have some */
	struct {
		const char *text;
		uint32_t size;
	} words[OBD_MAX_FREE_WORDS];
	uint32_t n_words;
	struct obd_operand opd[OBD_MAX_OPERANDS];
	uint32_t n_opd;
};

static inline bool obd_q(const struct obd_stmt *s, enum obd_qualifier q)
{
	return (s->quals[q / 64] >> (q % 64)) & 1;
}

/*
 * How an operation uses its fields: which are virtual registers that it reads (USE) or writes
 * (DEF).
 */
enum {
	OBD_USE_A = 1,
	OBD_USE_B = 2,
	OBD_USE_C = 4,
	OBD_USE_E = 8,
	OBD_USE_F = 16,
	OBD_USE_D = 32,
	OBD_DEF_D = 64,
	OBD_DEF_G = 128,
	OBD_PARTIAL = 256,
	OBD_CALL = 512,
	OBD_BRANCH = 1024,
	OBD_STOP = 2048,
	OBD_TABLE = 4096,
	OBD_USE_G = 8192,
	OBD_DEF_B = 16384,
};

struct obd_lin {
	uint16_t op, flags;
	uint16_t e_raw;
	uint8_t d_half, a_half; /* field d or a is the upper 64 bits of a 128-bit register */
	uint32_t d, a, b, c, e, f, g;
	uint32_t imm;
	uint32_t line;
};

struct obd_vreg {
	uint8_t cls, fixed, is_const, bits;
	uint32_t slot;
};

struct obd_const_ref {
	uint64_t value;
	struct obd_symbol *sym; /* its address is added to `value` once it is known; NULL: none */
	uint32_t vreg, cls;
	uint32_t next;
};

#define OBD_CONST_BUCKETS 1024u

struct obd_builder {
	struct obd_loader *ld;
	struct obd_func *func;
	struct obd_function_decl *decl;
	bool is_entry, discard;
	struct obd_lin *code;
	uint32_t n_code, cap_code;
	struct obd_vreg *vregs;
	uint32_t n_vregs, cap_vregs;
	struct obd_const_ref *consts;
	uint32_t n_consts, cap_consts;
	uint32_t const_bucket[OBD_CONST_BUCKETS];
	uint32_t *labels; /* by label number: instruction index or OBD_NONE */
	uint32_t n_labels, cap_labels;
	uint32_t *tables; /* for each table: count, label numbers */
	uint32_t n_tables, cap_tables;
	uint32_t *calls; /* for each call: n_args, n_rets, vregs */
	uint32_t n_calls, cap_calls;
	uint32_t *callees;
	uint32_t n_callees, cap_callees;
	uint32_t *shared_refs;
	uint32_t n_shared_refs, cap_shared_refs;
	/* register of the first word of the parameters, and of the results */
	uint32_t arg_vreg, ret_vreg;
	uint32_t local_bytes;
	uint32_t line;
	uint32_t guard; /* predicate that guards every emitted operation, or OBD_NONE */
	bool guard_negated;
	uint32_t round; /* enum obd_round of the emitted operations; OBD_RN: no prefix */
	/* registers from this number on are temporaries of the current statement */
	uint32_t first_temp;
	uint32_t registers; /* number of declared registers, for the reported figure */
};

struct obd_reloc {
	struct obd_reloc *next;
	struct obd_symbol *sym;
	/* not NULL: relocates a constant of this function; NULL: relocates `cell` */
	struct obd_func *func;
	uint32_t const_index;
	uint32_t size; /* bytes of the cell */
	char *cell;
	int64_t offset;
	uint64_t mask;
	uint32_t line;
};

struct obd_loader {
	struct obd_program *prog;
	struct obd_arena *arena;   /* of the program */
	struct obd_arena *scratch; /* freed when the load ends */
	struct obd_lex lex;
	struct obd_symbol **buckets;
	uint32_t n_buckets, n_symbols;
	struct obd_symbol *scopes[OBD_MAX_SCOPES];
	uint32_t scope;
	struct obd_builder *b; /* the builder while inside a function, else NULL */
	struct obd_builder *builder;
	struct obd_reloc *relocs;
	uint32_t cap_funcs, cap_entries, cap_globals, cap_shared;
	uint32_t shared_refs_left; /* what is left of OBD_MAX_SHARED_REFS */
	uint32_t stmt_line;        /* line of the statement being lowered, 0: none */
	CUresult result;
	char *log;
	size_t log_size;
	jmp_buf fail;
	bool in_body; /* `refuse` is valid */
	jmp_buf refuse;
	const char *refused; /* message of obd_ptx_refuse for the current body */
};

/* Ends the load with an error. The message and the current line go to the log. */
_Noreturn void obd_ptx_fail(struct obd_loader *ld, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
_Noreturn void obd_ptx_fail_with(struct obd_loader *ld, CUresult result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * refuse.c: valid PTX that this device does not implement. Ends the current function. The kernels
 * that reach it cannot run; the rest of the module can.
 */
_Noreturn void obd_ptx_refuse(struct obd_loader *ld, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Is this the name of an instruction of the PTX manual, without qualifiers, that this device does
 * not implement?
 */
bool obd_ptx_unimplemented(const char *name, uint32_t size);
/* The same for a qualifier. */
bool obd_ptx_unimplemented_word(const char *word, uint32_t size);
void *obd_ptx_alloc(struct obd_loader *ld, size_t size); /* from the program's arena; never NULL */
void *obd_ptx_scratch(struct obd_loader *ld, size_t size);
/* Makes room for one more element in the array. */
void obd_ptx_grow(struct obd_loader *ld, void *array_pointer, uint32_t *cap, uint32_t n,
	size_t size, uint32_t most);

/* symbols.c */
struct obd_symbol *obd_sym_find(struct obd_loader *ld, const char *name, uint32_t size);
struct obd_symbol *obd_sym_add(
	struct obd_loader *ld, const char *name, uint32_t size, enum obd_symbol_kind kind);
void obd_sym_push(struct obd_loader *ld);
void obd_sym_pop(struct obd_loader *ld);
/*
 * The vreg of a register, or of a member of a family. *ret_type is its declared type. OBD_NONE:
 * there is no such register.
 */
uint32_t obd_sym_register(
	struct obd_loader *ld, const char *name, uint32_t size, enum obd_type *ret_type);

/* types */
enum obd_type obd_type_named(const char *text, uint32_t size); /* OBD_T_NONE: no type */
uint32_t obd_type_bytes(enum obd_type t);
enum obd_reg_class obd_type_class(enum obd_type t);
/* lower_float.c: value of field e for operations on halves */
uint16_t obd_half_how(enum obd_type t);
bool obd_type_signed(enum obd_type t);
bool obd_type_float(enum obd_type t);

/* compile/module.c */
void obd_ptx_parse(struct obd_loader *ld);
/* stmt.c */
void obd_stmt_parse(struct obd_loader *ld);
void obd_ptx_branchtargets(struct obd_loader *ld, const struct obd_token *name);
uint64_t obd_ptx_const_expr(struct obd_loader *ld);
/* a use of the label */
struct obd_symbol *obd_ptx_label(struct obd_loader *ld, const char *name, uint32_t size);
void obd_ptx_label_define(struct obd_loader *ld, const char *name, uint32_t size);
/* compile/variable.c */
void obd_ptx_variable(struct obd_loader *ld, const char *space, uint32_t space_size, bool is_extern,
	bool is_weak);

/* build.c */
void obd_build_init(struct obd_builder *b, struct obd_loader *ld, struct obd_func *f);
void obd_build_fini(struct obd_builder *b);
uint32_t obd_vreg_new(struct obd_builder *b, enum obd_reg_class cls);
uint32_t obd_vreg_range(struct obd_builder *b, enum obd_reg_class cls, uint32_t count);
uint32_t obd_const_new(
	struct obd_builder *b, enum obd_reg_class cls, uint64_t value, struct obd_symbol *sym);
/*
 * Emits an operation with result d and operands a, bb, c; OBD_NONE for those it does not have. The
 * pointer is valid until the next emit.
 */
struct obd_lin *obd_emit(
	struct obd_builder *b, uint32_t op, uint32_t d, uint32_t a, uint32_t bb, uint32_t c);
struct obd_lin *obd_emit_raw(struct obd_builder *b, uint32_t op);
uint32_t obd_label_new(struct obd_builder *b);
void obd_label_here(struct obd_builder *b, uint32_t label);
void obd_build_finish(struct obd_builder *b);
void obd_build_shared_ref(struct obd_builder *b, uint32_t index);
void obd_build_callee(struct obd_builder *b, uint32_t index);

/*
 * regalloc.c: assigns a slot to every vreg. Returns the number of slots used, from `first_slot` on.
 */
uint32_t obd_regalloc(struct obd_builder *b, uint32_t first_slot);

/* lower*.c: lowers one statement. */
void obd_lower(struct obd_builder *b, struct obd_stmt *s);
/*
 * The value of an operand as a register. The type t selects the register class and how an immediate
 * is read.
 */
uint32_t obd_src(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, enum obd_type t);
uint32_t obd_src_of(struct obd_builder *b, const struct obd_operand *o, enum obd_type t);
uint32_t obd_dst(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, enum obd_type t);
uint32_t obd_dst_of(struct obd_builder *b, const struct obd_operand *o, enum obd_type t);
uint32_t obd_pred(struct obd_builder *b, const struct obd_stmt *s, uint32_t i, bool *ret_negated);
uint32_t obd_pred_value(struct obd_builder *b, const struct obd_stmt *s, uint32_t i);
uint32_t obd_temp(struct obd_builder *b, enum obd_type t);
void obd_want(struct obd_builder *b, const struct obd_stmt *s, uint32_t least, uint32_t most);
enum obd_type obd_type_at(struct obd_builder *b, const struct obd_stmt *s, uint32_t i);
/* Ends the load with an error: the instruction is not valid PTX. */
_Noreturn void obd_bad(struct obd_builder *b, const struct obd_stmt *s, const char *what);
/*
 * Refuses the function (obd_ptx_refuse): the form of the instruction is valid PTX that this device
 * does not implement.
 */
_Noreturn void obd_lacks(struct obd_builder *b, const struct obd_stmt *s, const char *what);

typedef void (*obd_lower_fn)(struct obd_builder *b, struct obd_stmt *s, uint32_t arg);
struct obd_opcode {
	const char *name;
	obd_lower_fn fn;
	uint32_t arg;
};
extern const struct obd_opcode obd_opcodes_int[], obd_opcodes_float[], obd_opcodes_mem[],
	obd_opcodes_atomic[], obd_opcodes_ctl[], obd_opcodes_cvt[], obd_opcodes_warp[],
	obd_opcodes_matrix[];

enum obd_kind { OBD_KIND_GLOBAL, OBD_KIND_SHARED, OBD_KIND_LOCAL };
/*
 * lower_mem.c: the base register of [address]; *ret_offset is the rest. *kind (0 flat, 1 shared, 2
 * local) is the space that the instruction states. The space of the symbol may change it.
 */
uint32_t obd_lower_address(
	struct obd_builder *b, const struct obd_operand *o, uint32_t *kind, uint32_t *ret_offset);
uint32_t obd_lower_space(const struct obd_stmt *s);
/* lower_mem.c: the elements of the { } of a vector access, or the single operand. */
const struct obd_operand *obd_lower_elements(
	struct obd_builder *b, const struct obd_stmt *s, uint32_t i, uint32_t *ret_n);
/* lower_mem.c: combines n (2 or 4) parts of equal size into one value of 2, 4 or 8 bytes. */
void obd_lower_combine(
	struct obd_builder *b, uint32_t d, uint32_t bytes, const uint32_t *part, uint32_t n);
/* lower_mem.c: stores a loaded value of type t, zero-extended in `raw`, in the operand. */
void obd_lower_put(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t,
	const struct obd_operand *o, uint32_t raw);

/*
 * An access that other threads may observe: n elements of `type` at base + offset in `space` (enum
 * obd_kind, not local).
 */
struct obd_strong {
	uint32_t base, offset, space, n;
	enum obd_type type;
};
/* lower_atomic.c: must this ld or st of n elements be atomic as a whole? */
bool obd_lower_is_strong(const struct obd_stmt *s, uint32_t n);
void obd_lower_load_strong(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_strong *a, const struct obd_operand *list);
void obd_lower_store_strong(struct obd_builder *b, const struct obd_stmt *s,
	const struct obd_strong *a, const struct obd_operand *list);
/* lower_ctl.c: replaces a guard by a branch around the statement; the second function ends it. */
uint32_t obd_lower_around(struct obd_builder *b);
void obd_lower_end_around(struct obd_builder *b, uint32_t label);
/* Appends to the operand list of an operation that has one, such as a call. */
void obd_build_list(struct obd_builder *b, uint32_t v);
bool obd_type_is16(enum obd_type t);

#endif
