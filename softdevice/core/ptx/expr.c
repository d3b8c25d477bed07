/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/expr.h"

#include "softdevice/core/code.h"
#include "softdevice/core/ptx/token.h"

#define MAX_EXPR_DEPTH 64u

#define TWO(a, b) ((uint16_t)((uint8_t)(a) | (uint16_t)((uint8_t)(b) << 8)))

static int precedence(const struct obd_token *t)
{
	if (t->kind != OBD_TOK_PUNCT)
		return 0;
	switch (t->ch) {
	case '*':
	case '/':
	case '%':
		return 10;
	case '+':
	case '-':
		return 9;
	case TWO('<', '<'):
	case TWO('>', '>'):
		return 8;
	case '<':
	case '>':
	case TWO('<', '='):
	case TWO('>', '='):
		return 7;
	case TWO('=', '='):
	case TWO('!', '='):
		return 6;
	case '&':
		return 5;
	case '^':
		return 4;
	case '|':
		return 3;
	case TWO('&', '&'):
		return 2;
	case TWO('|', '|'):
		return 1;
	default:
		return 0;
	}
}

static uint64_t apply(struct obd_loader *ld, uint16_t op, uint64_t a, uint64_t b)
{
	switch (op) {
	case '*':
		return a * b;
	case '/':
	case '%':
		if (!b)
			obd_ptx_fail(ld, "division by zero in a constant expression");
		if (b == ~0ull)
			return op == '/' ? 0 - a : 0;
		return (uint64_t)(op == '/' ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
	case '+':
		return a + b;
	case '-':
		return a - b;
	case TWO('<', '<'):
		return b < 64 ? a << b : 0;
	case TWO('>', '>'):
		return b < 64 ? a >> b : 0;
	case '<':
		return (int64_t)a < (int64_t)b;
	case '>':
		return (int64_t)a > (int64_t)b;
	case TWO('<', '='):
		return (int64_t)a <= (int64_t)b;
	case TWO('>', '='):
		return (int64_t)a >= (int64_t)b;
	case TWO('=', '='):
		return a == b;
	case TWO('!', '='):
		return a != b;
	case '&':
		return a & b;
	case '^':
		return a ^ b;
	case '|':
		return a | b;
	case TWO('&', '&'):
		return a && b;
	default:
		return a || b;
	}
}

static uint64_t expr(struct obd_loader *ld, int least, uint32_t depth);

static uint64_t primary(struct obd_loader *ld, uint32_t depth)
{
	uint64_t v;

	if (depth > MAX_EXPR_DEPTH)
		obd_ptx_fail(ld, "a constant expression is nested more than %u levels deep",
			MAX_EXPR_DEPTH);
	if (obd_tok_accept(ld, '-'))
		return 0 - primary(ld, depth + 1);
	if (obd_tok_accept(ld, '+'))
		return primary(ld, depth + 1);
	if (obd_tok_accept(ld, '~'))
		return ~primary(ld, depth + 1);
	if (obd_tok_accept(ld, '!'))
		return !primary(ld, depth + 1);
	if (obd_tok_accept(ld, '(')) {
		/* casts to .s64 and .u64 have no effect here */
		if (obd_tok(ld)->kind == OBD_TOK_DOT) {
			obd_tok_next(ld);
			if (!obd_tok_accept(ld, ')'))
				obd_tok_unexpected(ld, "')'");
			return primary(ld, depth + 1);
		}
		v = expr(ld, 0, depth + 1);
		if (!obd_tok_accept(ld, ')'))
			obd_tok_unexpected(ld, "')'");
		return v;
	}
	if (obd_tok(ld)->kind == OBD_TOK_WORD && obd_tok_text_is(obd_tok(ld), "WARP_SZ")) {
		obd_tok_next(ld);
		return OBD_LANES;
	}
	if (obd_tok(ld)->kind != OBD_TOK_INT)
		obd_tok_unexpected(ld, "a number");
	v = obd_tok(ld)->value;
	obd_tok_next(ld);
	return v;
}

static uint64_t expr(struct obd_loader *ld, int least, uint32_t depth)
{
	uint64_t v = primary(ld, depth);

	for (;;) {
		int p = precedence(obd_tok(ld));
		uint16_t op = obd_tok(ld)->ch;

		if (p <= least)
			break;
		obd_tok_next(ld);
		v = apply(ld, op, v, expr(ld, p, depth + 1));
	}
	if (least == 0 && obd_tok_accept(ld, '?')) {
		uint64_t a = expr(ld, 0, depth + 1);

		if (!obd_tok_accept(ld, ':'))
			obd_tok_unexpected(ld, "':'");
		uint64_t b = expr(ld, 0, depth + 1);

		return v ? a : b;
	}
	return v;
}

/*
 * In initial values ',' ends an expression. A '|' between operands of setp never follows a number.
 */
uint64_t obd_expr_parse(struct obd_loader *ld)
{
	return expr(ld, 0, 0);
}

uint64_t obd_expr_primary(struct obd_loader *ld)
{
	return primary(ld, 0);
}
