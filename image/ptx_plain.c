/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "image/ptx_plain.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"

/* ---- instructions ---- */

#define INTEGERS "u8 s8 b8 u16 s16 b16 u32 s32 b32 u64 s64 b64 "
#define FLOATS   "f32 f64 "
#define TYPES    INTEGERS FLOATS
#define SPACES   "global shared local param const "
#define ROUND    "rn rz rm rp "

/* `words` has a blank before and after each word. */
static const struct {
	const char *name, *words;
} opcodes[] = {
	{ "ld", " " SPACES "nc volatile v2 v4 " TYPES },
	{ "st", " " SPACES "volatile v2 v4 " TYPES },
	{ "mov", " pred " TYPES },
	{ "cvta", " to " SPACES "u32 u64 " },
	{ "cvt", " " ROUND "rni rzi rmi rpi sat ftz " TYPES },
	{ "add", " " ROUND "sat ftz cc " TYPES },
	{ "sub", " " ROUND "sat ftz cc " TYPES },
	{ "addc", " cc u32 s32 u64 s64 " },
	{ "subc", " cc u32 s32 u64 s64 " },
	{ "mul", " " ROUND "lo hi wide sat ftz " TYPES },
	{ "mad", " " ROUND "lo hi wide cc ftz u16 s16 u32 s32 u64 s64 f32 f64 " },
	{ "madc", " lo hi cc u32 s32 u64 s64 " },
	{ "fma", " " ROUND "ftz sat f32 f64 " },
	{ "div", " " ROUND "approx full ftz u16 s16 u32 s32 u64 s64 f32 f64 " },
	{ "rem", " u16 s16 u32 s32 u64 s64 " },
	{ "neg", " ftz s16 s32 s64 f32 f64 " },
	{ "abs", " ftz s16 s32 s64 f32 f64 " },
	{ "min", " ftz u16 s16 u32 s32 u64 s64 f32 f64 " },
	{ "max", " ftz u16 s16 u32 s32 u64 s64 f32 f64 " },
	{ "sqrt", " approx ftz " ROUND "f32 f64 " },
	{ "rcp", " approx ftz " ROUND "f32 f64 " },
	{ "rsqrt", " approx ftz f32 f64 " },
	{ "ex2", " approx ftz f32 " },
	{ "lg2", " approx ftz f32 " },
	{ "sin", " approx ftz f32 " },
	{ "cos", " approx ftz f32 " },
	{ "and", " pred b16 b32 b64 " },
	{ "or", " pred b16 b32 b64 " },
	{ "xor", " pred b16 b32 b64 " },
	{ "not", " pred b16 b32 b64 " },
	{ "shl", " b16 b32 b64 " },
	{ "shr", " b16 b32 b64 u16 u32 u64 s16 s32 s64 " },
	{ "shf", " l r wrap clamp b32 " },
	{ "prmt", " b32 " },
	{ "bfe", " u32 s32 u64 s64 " },
	{ "bfi", " b32 b64 " },
	{ "brev", " b32 b64 " },
	{ "clz", " b32 b64 " },
	{ "popc", " b32 b64 " },
	{ "bfind", " shiftamt u32 s32 u64 s64 " },
	{ "setp",
		" eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor "
		"ftz " TYPES },
	{ "selp", " " TYPES },
	{ "bra", " uni " },
	{ "call", " uni " },
	{ "ret", " uni " },
	{ "exit", " " },
	{ "trap", " " },
	{ "bar", " sync warp " },
	{ "barrier", " sync aligned " },
	{ "membar", " cta gl sys " },
	{ "shfl", " sync up down bfly idx b32 " },
	{ "vote", " sync all any ballot uni pred b32 " },
	{ "activemask", " b32 " },
	{ "atom",
		" global shared add min max and or xor exch cas inc dec u32 s32 b32 u64 b64 f32 " },
	{ "red", " global shared add min max and or xor inc dec u32 s32 b32 u64 b64 f32 " },
};

static bool word_in(const char *words, const char *word, size_t size)
{
	for (const char *p = words; (p = strchr(p, ' ')) != NULL && p[1]; p++)
		if (strncmp(p + 1, word, size) == 0 && p[1 + size] == ' ')
			return true;
	return false;
}

/* True for a name of the table whose every qualifier is in its row: "ld.global.f32". */
static bool opcode_plain(const char *text, size_t size)
{
	const char *end = text + size, *dot = memchr(text, '.', size);
	size_t name = dot ? (size_t)(dot - text) : size, row;

	for (row = 0; row < ob_count(opcodes); row++)
		if (strlen(opcodes[row].name) == name && memcmp(opcodes[row].name, text, name) == 0)
			break;
	if (row == ob_count(opcodes))
		return false;
	while (dot) {
		const char *word = dot + 1;

		dot = memchr(word, '.', (size_t)(end - word));
		if (!word_in(opcodes[row].words, word, (size_t)((dot ? dot : end) - word)))
			return false;
	}
	return true;
}

/* Looks the opcode up among those already found plain first; most are repeated. */
static bool opcode_check(struct obi_plain *plain, const char *text, size_t size)
{
	size_t h = ob_hash(OB_HASH_START, text, size) % OBI_PLAIN_SEEN;

	if (plain->seen[h].size == size && memcmp(plain->seen[h].text, text, size) == 0)
		return true;
	if (!opcode_plain(text, size))
		return false;
	plain->seen[h].text = text;
	plain->seen[h].size = size;
	return true;
}

/* ---- statements ---- */

enum state {
	STATE_START,    /* at the start of a statement */
	STATE_GUARD,    /* after '@' */
	STATE_WORD,     /* after the first word: an opcode or a label */
	STATE_OPERANDS, /* operands of an instruction, up to the ';' */
	STATE_REST,     /* rest of a declaration, up to the ';' */
	STATE_LOC,      /* numbers, without a ';' */
};

void obi_plain_init(struct obi_plain *plain)
{
	memset(plain, 0, sizeof *plain);
	plain->ok = true;
}

void obi_plain_body(struct obi_plain *plain)
{
	plain->state = STATE_START;
}

static bool is(const char *text, size_t size, const char *name)
{
	return size == strlen(name) && memcmp(text, name, size) == 0;
}

static bool is_one_of(const char *text, size_t size, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is(text, size, names[i]))
			return true;
	return false;
}

static void start(struct obi_plain *plain, const struct obi_ptx_token *token)
{
	const char *text = token->text;
	size_t size = token->size;
	static const char *const directives[] = { ".reg", ".param", ".local", ".shared",
		".pragma" };

	switch (token->kind) {
	case OBI_PTX_WORD:
		plain->word = text;
		plain->word_size = size;
		plain->state = STATE_WORD;
		break;
	case OBI_PTX_DIRECTIVE:
		plain->is_local = is(text, size, ".local");
		plain->state = is(text, size, ".loc") ? STATE_LOC : STATE_REST;
		if (plain->state == STATE_REST &&
			!is_one_of(text, size, directives, ob_count(directives)))
			plain->ok = false;
		break;
	case OBI_PTX_PUNCT:
		if (*text == '@')
			plain->state = STATE_GUARD;
		else if (!strchr("{};", *text))
			plain->ok = false;
		break;
	default:
		plain->ok = false;
	}
}

void obi_plain_token(struct obi_plain *plain, const struct obi_ptx_lexer *lexer)
{
	const struct obi_ptx_token *token = &lexer->token;
	const char *text = token->text;
	enum obi_ptx_token_kind kind = token->kind;
	bool ends = kind == OBI_PTX_PUNCT && *text == ';';

	if (!plain->ok)
		return;
	switch ((enum state)plain->state) {
	case STATE_GUARD:
		if (kind == OBI_PTX_WORD)
			plain->state = STATE_START;
		break;
	case STATE_WORD:
		if (kind == OBI_PTX_PUNCT && *text == ':') {
			plain->state = STATE_START;
			break;
		}
		plain->ok = opcode_check(plain, plain->word, plain->word_size) &&
			kind != OBI_PTX_DIRECTIVE;
		plain->state = ends ? STATE_START : STATE_OPERANDS;
		break;
	case STATE_OPERANDS:
		plain->ok = kind != OBI_PTX_DIRECTIVE;
		if (ends)
			plain->state = STATE_START;
		break;
	case STATE_REST:
		if (plain->is_local && kind == OBI_PTX_NUMBER &&
			obi_ptx_number(lexer) > OBI_PLAIN_LOCAL)
			plain->ok = false;
		if (ends)
			plain->state = STATE_START;
		break;
	case STATE_LOC:
		if (kind == OBI_PTX_NUMBER)
			break;
		plain->state = STATE_START;
		start(plain, token);
		break;
	case STATE_START:
		start(plain, token);
	}
}

/* ---- outside of bodies ---- */

void obi_plain_outside(struct obi_plain *plain, const struct obi_ptx_lexer *lexer)
{
	static const char *const directives[] = {
		".version",
		".target",
		".address_size",
		".visible",
		".extern",
		".weak",
		".entry",
		".func",
		".global",
		".const",
		".shared",
		".param",
		".align",
		".ptr",
		".local",
		".file",
		".section",
		".loc",
		".pragma",
		".maxntid",
		".reqntid",
		".minnctapersm",
		".maxnreg",
		".noreturn",
		".v2",
		".v4",
		".b8",
		".u8",
		".s8",
		".b16",
		".u16",
		".s16",
		".b32",
		".u32",
		".s32",
		".b64",
		".u64",
		".s64",
		".f32",
		".f64",
		".reg",
		".pred",
	};
	const struct obi_ptx_token *token = &lexer->token;
	const char *text = token->text;
	size_t size = token->size;

	if (!plain->ok)
		return;
	if (token->kind == OBI_PTX_DIRECTIVE)
		plain->ok = is_one_of(text, size, directives, ob_count(directives)) ||
			(size > 7 && memcmp(text, ".debug_", 7) == 0);
	else if (token->kind == OBI_PTX_WORD)
		plain->ok = (size > 3 && memcmp(text, "sm_", 3) == 0) || is(text, size, "debug");
}

void obi_plain_extern(struct obi_plain *plain, const char *name, size_t size)
{
	/* the runtime of every device has these functions */
	static const char *const known[] = { "vprintf", "__assertfail", "malloc", "free" };

	plain->ok &= is_one_of(name, size, known, ob_count(known));
}
