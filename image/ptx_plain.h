/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_plain: is PTX plain, that is, does every driver that knows its version take it? A
 * conservative judgement over the tokens that ptx_scan.c sees anyway: each instruction must be of a
 * short list of what compilers make of ordinary C++, with qualifiers of that list, each directive
 * likewise. What is not known is not plain. Plain says nothing of the .version and .target, nor of
 * memory.
 *
 * It judges text that a compiler has made; operands are not checked, so text by hand must not be
 * trusted on its word. Lives inside the scan, one thread.
 */
#ifndef OBI_PTX_PLAIN_H
#define OBI_PTX_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Above these a compiler may refuse a module. Bytes. */
#define OBI_PLAIN_SHARED (48u << 10) /* static shared memory of a kernel */
#define OBI_PLAIN_CONST  (60u << 10) /* constant variables of the module */
#define OBI_PLAIN_PARAM  4096u       /* parameters of a kernel */
#define OBI_PLAIN_LOCAL  (16u << 10) /* one local variable */

enum obi_plain_kind {
	OBI_PLAIN_WORD,
	OBI_PLAIN_DIRECTIVE,
	OBI_PLAIN_NUMBER,
	OBI_PLAIN_PUNCT,
	OBI_PLAIN_OTHER
};

#define OBI_PLAIN_SEEN 256u

struct obi_plain {
	bool ok; /* so far */
	uint8_t state;
	bool is_local;    /* a .local declaration */
	const char *word; /* the first of a statement: an opcode or a label */
	size_t word_size;
	/* opcodes found plain, by hash */
	struct {
		const char *text;
		size_t size;
	} seen[OBI_PLAIN_SEEN];
};

void obi_plain_init(struct obi_plain *plain);
/* One token of a function's body, its braces included. `value`: of a number. */
void obi_plain_token(struct obi_plain *plain, enum obi_plain_kind kind, const char *text,
	size_t size, uint64_t value);
/* A body begins. */
void obi_plain_body(struct obi_plain *plain);
/* A directive, or a word, outside of bodies. */
void obi_plain_outside(
	struct obi_plain *plain, enum obi_plain_kind kind, const char *text, size_t size);
/* A function that is declared .extern. */
void obi_plain_extern(struct obi_plain *plain, const char *name, size_t size);

#endif
