/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Descriptions of the calls that go over the wire: name, class, layout. The table is generated from
 * protocol/spec into obp_calls.c; call.c checks and prints bodies by it. Constant data, any thread.
 *
 *   body = fixed struct (obp_<name>_req or _rep, a multiple of 8 bytes), then each variable part,
 *          each padded to a multiple of 8
 */
#ifndef OBP_CALL_H
#define OBP_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cause.h"

#define OBP_VAR_MAX    16         /* variable parts of one body */
#define OBP_BAD_SIZE   UINT64_MAX /* a size that overflowed */
#define OBP_RESULT_MAX 999u       /* CUDA_ERROR_UNKNOWN: the highest CUresult */

enum obp_class { OBP_CLASS_ASYNC = 1, OBP_CLASS_SYNC, OBP_CLASS_BULK, OBP_CLASS_CACHED };

enum obp_call_flags {
	OBP_CALL_NOCTX = 1,    /* needs no current context */
	OBP_CALL_BLOCKS = 2,   /* the server may wait for the device */
	OBP_CALL_REPLIES = 4,  /* has a reply */
	OBP_CALL_STREAMED = 8, /* the reply's data arrives in pieces (OBP_REPLY_MORE) */
	/* creates a handle whose id the client may use before it knows the result */
	OBP_CALL_MAKES = 16,
};

enum obp_wire {
	OBP_U8 = 1,
	OBP_U16,
	OBP_U32,
	OBP_U64,
	OBP_I32,
	OBP_I64,
	OBP_F32,
	OBP_F64,
	OBP_BYTES,
	OBP_CSTR
};

struct obp_field {
	const char *name;
	uint16_t offset; /* bytes from the body's start */
	uint16_t count;  /* elements; bytes for OBP_BYTES */
	uint8_t type;    /* enum obp_wire */
};

struct obp_var {
	const char *name;
	uint8_t type;  /* of one element */
	bool optional; /* a string that may be absent: 0 bytes, without a NUL */
};

struct obp_call_info {
	const char *name; /* "mem_alloc", "cuStreamWriteValue32_v2" */
	uint16_t opcode;
	uint8_t klass;               /* enum obp_class */
	uint8_t flags;               /* enum obp_call_flags */
	uint16_t req_size, rep_size; /* bytes of the fixed parts */
	uint8_t n_req, n_rep;        /* fields */
	uint8_t n_req_vars, n_rep_vars;
	const struct obp_field *req, *rep;
	const struct obp_var *req_vars, *rep_vars;
	/*
	 * Computes the bytes of each variable part of a request. req must hold the whole fixed
	 * part. False: a number exceeds its maximum. NULL: nothing to check.
	 */
	bool (*sizes)(const void *req, uint64_t *ret_bytes);
	/*
	 * True if the numbers of a reply's fixed part are within their bounds. NULL: they have
	 * none.
	 */
	bool (*rep_bounds)(const void *rep);
};

/* NULL: no such call. */
const struct obp_call_info *obp_call_info(uint16_t opcode);
/* NULL: no such call. */
const struct obp_call_info *obp_call_find(const char *name);

/*
 * Checks a request: size of the fixed part and of the variable parts, every number that has a
 * maximum, terminators of strings. `size` = record size - header.
 */
bool obp_check_req(uint16_t opcode, const void *body, uint32_t size);

struct obp_reply; /* protocol/format.h */

/*
 * Checks a reply's header against what `opcode` can return: flags, results, size. `got`: body bytes
 * received in earlier pieces (OBP_REPLY_MORE). `capacity`: what the call asked for, which is the
 * size of all pieces of a streamed reply and the maximum body of any other. OB_ERR_NONE: valid, and
 * got + reply->body <= capacity. OB_ERR_PROTOCOL: *ret_cause.
 */
enum ob_err obp_check_reply(uint16_t opcode, const struct obp_reply *reply, uint64_t got,
	uint64_t capacity, struct ob_cause *ret_cause);
/*
 * Checks every number with a maximum in a complete reply body. False: one exceeds it. A body
 * shorter than the fixed part has no numbers and is valid.
 */
bool obp_check_rep(uint16_t opcode, const void *body, uint64_t size);

/*
 * Prints a call as one line without a newline, cut at `capacity`: "mem_alloc(addr=0x7000,
 * size=4096, device=0)". The body may be invalid. Returns the bytes written without the final NUL.
 */
size_t obp_print_call(char *dst, size_t capacity, uint16_t opcode, const void *body, uint32_t size);
/* "mem_info = 0 (free=1, total=2)". `result` is the reply's CUresult. */
size_t obp_print_reply(char *dst, size_t capacity, uint16_t opcode, uint32_t result,
	const void *body, uint32_t size);

/*
 * Arithmetic on sizes: overflow gives OBP_BAD_SIZE, and any operation on OBP_BAD_SIZE gives it
 * again.
 */
static inline uint64_t obp_add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return a == OBP_BAD_SIZE || b == OBP_BAD_SIZE || __builtin_add_overflow(a, b, &sum)
		? OBP_BAD_SIZE
		: sum;
}

static inline uint64_t obp_sub(uint64_t a, uint64_t b)
{
	return a == OBP_BAD_SIZE || b > a ? OBP_BAD_SIZE : a - b;
}

static inline uint64_t obp_mul(uint64_t a, uint64_t b)
{
	uint64_t product;
	return a == OBP_BAD_SIZE || b == OBP_BAD_SIZE || __builtin_mul_overflow(a, b, &product)
		? OBP_BAD_SIZE
		: product;
}

/* Rounds up to a multiple of 8; for sizes below 2^32. */
static inline uint64_t obp_pad(uint64_t size)
{
	return (size + 7) & ~(uint64_t)7;
}

/*
 * An array of structs is sent as one array for each member. `first` is the member in the first
 * struct, `stride` the size of a struct, `width` that of the member, `n` > 0 the number of structs.
 */
void obp_gather(void *dst, const void *first, size_t stride, size_t width, uint64_t n);
void obp_scatter(void *first, size_t stride, const void *src, size_t width, uint64_t n);

#endif
