/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * pt_suite: all tests and their results.
 *
 * A *row* is one opcode with its qualifiers, its operand types and a scalar reference;
 * elementwise.c generates the kernel and the operands. A *case* is a separate kernel with a
 * function that launches it and checks the result: memory, control flow, warps, blocks, atomics,
 * the device runtime. The functions in groups.h make both; the suite owns them. One thread.
 */
#ifndef OB_TESTS_PTX_SUITE_H
#define OB_TESTS_PTX_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/ptx/driver.h"
#include "tests/ptx/operand.h"
#include "tests/ptx/text.h"

#define PT_MAX_OPERANDS 4
#define PT_MAX_ARGS     8
#define PT_MODULE_ROWS  64
#define PT_TARGET       "sm_90"
#define PT_HEADER_FOR   ".version 8.7\n.target %s\n.address_size 64\n"
#define PT_HEADER       ".version 8.7\n.target " PT_TARGET "\n.address_size 64\n"

struct pt_row;
struct pt_run;

struct pt_want {
	uint64_t out[PT_MAX_OPERANDS];
	uint64_t alt[PT_MAX_OPERANDS]; /* also correct; the caller sets it to out before the call */
	bool has_alt;
	double real[PT_MAX_OPERANDS]; /* used instead of out in rows with a tolerance */
	/* the ISA does not define the result: the opcode is executed, any result is accepted */
	bool open;
};

/* Fills want for one tuple of operands. Operands are zero-extended bits of their types. */
typedef void pt_ref_fn(const struct pt_row *row, const uint64_t *in, struct pt_want *want);

struct pt_row {
	char *name; /* unique: the opcode, and a note if two rows have the same opcode */
	const char *group;
	/* statements separated by newlines; registers %d0.. out, %a %b %c %e in; owned */
	char *body;
	const char *decl; /* further registers, or NULL */
	unsigned n_in, n_out;
	enum pt_type in[PT_MAX_OPERANDS], out[PT_MAX_OPERANDS];
	enum pt_domain domain[PT_MAX_OPERANDS];
	pt_ref_fn *ref;
	int arg[PT_MAX_ARGS]; /* for the reference */
	/* If not both 0, a tolerance: |got - real| <= rel * |real| + abs. */
	double rel, abs;
	uint64_t care;   /* bits of the results that are compared; 0: all */
	bool strict_nan; /* the ISA defines the NaN's bits: compare them too */
	bool no_guard;   /* the body cannot have a guard predicate (labels, calls) */
};

struct pt_case {
	char *name;
	const char *group;
	char *ptx;          /* module text without the header; owned; NULL: none */
	const char *target; /* of the header: PT_TARGET unless the caller changes it */
	bool (*run)(struct pt_run *run);
	/*
	 * Runs in a separate child process, because it makes the context unusable or prints. Then
	 * the function check tests what the child printed.
	 */
	bool child;
	bool optional; /* a driver need not support the module: a refusal is no failure */
	bool (*check)(struct pt_run *run, const char *out, const char *err);
	int arg[PT_MAX_ARGS];
};

struct pt_options {
	const char *library, *only, *group, *ptxas, *child;
	const char *program; /* to run children */
	uint64_t seed;
	bool list, all_failures;
};

struct pt_suite {
	struct pt_options options;
	struct pt_driver driver;
	const char *group; /* group being built */
	struct pt_row **rows;
	size_t n_rows, cap_rows;
	struct pt_case **cases;
	size_t n_cases, cap_cases;
	size_t n_run, n_failed, n_known, n_absent;
};

/*
 * Adds a row. types: "OUT[,OUT]:IN[,IN]", each a type with an optional "/domain", as in
 * "s32:s32,u32/shift". The format gives the name. If no body is set later, the body is the name and
 * the operands.
 */
struct pt_row *pt_row_add(struct pt_suite *s, pt_ref_fn *ref, const char *types, const char *format,
	...) __attribute__((format(printf, 4, 5)));

/* Adds a case. The string ptx is copied. */
struct pt_case *pt_case_add(
	struct pt_suite *s, bool (*run)(struct pt_run *), const char *name, const char *ptx);

bool pt_selected(const struct pt_suite *s, const char *group, const char *name);

void pt_suite_free(struct pt_suite *s);

/* Counts a test. message: NULL if it passed, else printed. */
void pt_result(struct pt_suite *s, const char *name, const char *message);

/* Run all selected rows, or all selected cases. */
void pt_rows_run(struct pt_suite *s);
void pt_cases_run(struct pt_suite *s);

/* Returns the text of a module with rows [first, first+n). */
void pt_rows_text(struct pt_suite *s, struct pt_row *const *rows, size_t n, struct pt_text *ret);

#endif
