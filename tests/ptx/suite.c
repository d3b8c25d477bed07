/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/ptx/suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *grown(void *old, size_t n, size_t *cap)
{
	if (n < *cap)
		return old;
	size_t bigger = *cap ? *cap * 2 : 64;
	void *p = pt_alloc(bigger * sizeof(void *));
	if (n)
		memcpy(p, old, n * sizeof(void *));
	free(old);
	*cap = bigger;
	return p;
}

static void bad_spec(const char *types)
{
	fprintf(stderr, "ptx-conformance: bad operand types \"%s\"\n", types);
	abort();
}

/* Parses types such as "s32,u32/shift" up to end; at most PT_MAX_OPERANDS. */
static unsigned parse_types(
	const char *spec, const char *p, const char *end, enum pt_type *t, enum pt_domain *d)
{
	unsigned n = 0;
	while (p < end) {
		size_t len = strcspn(p, ",:/");
		if (n == PT_MAX_OPERANDS || !(t[n] = pt_type_parse(p, len)))
			bad_spec(spec);
		p += len;
		if (*p == '/') {
			len = strcspn(++p, ",:");
			if (!d || !pt_domain_parse(p, len, &d[n]))
				bad_spec(spec);
			p += len;
		}
		n++;
		if (p < end)
			p++;
	}
	return n;
}

static char *default_body(const struct pt_row *row)
{
	static const char *const in[] = { "%a", "%b", "%c", "%e" };
	struct pt_text t = { 0 };
	pt_text_add(&t, "%s %%d0", row->name);
	for (unsigned i = 1; i < row->n_out; i++)
		pt_text_add(&t, "|%%d%u", i);
	for (unsigned i = 0; i < row->n_in; i++)
		pt_text_add(&t, ", %s", in[i]);
	pt_text_add(&t, ";");
	return t.p;
}

struct pt_row *pt_row_add(
	struct pt_suite *s, pt_ref_fn *ref, const char *types, const char *format, ...)
{
	struct pt_row *row = pt_alloc(sizeof *row);
	char name[128];
	va_list ap;
	va_start(ap, format);
	vsnprintf(name, sizeof name, format, ap);
	va_end(ap);
	row->name = pt_format("%s", name);
	row->group = s->group;
	row->ref = ref;
	const char *colon = strchr(types, ':');
	if (!colon)
		bad_spec(types);
	row->n_out = parse_types(types, types, colon, row->out, NULL);
	row->n_in = parse_types(types, colon + 1, types + strlen(types), row->in, row->domain);
	row->body = default_body(row);
	s->rows = grown(s->rows, s->n_rows, &s->cap_rows);
	s->rows[s->n_rows++] = row;
	return row;
}

struct pt_case *pt_case_add(
	struct pt_suite *s, bool (*run)(struct pt_run *), const char *name, const char *ptx)
{
	struct pt_case *c = pt_alloc(sizeof *c);
	c->name = pt_format("%s", name);
	c->group = s->group;
	c->ptx = ptx ? pt_format("%s", ptx) : NULL;
	c->run = run;
	c->target = PT_TARGET;
	s->cases = grown(s->cases, s->n_cases, &s->cap_cases);
	s->cases[s->n_cases++] = c;
	return c;
}

bool pt_selected(const struct pt_suite *s, const char *group, const char *name)
{
	if (s->options.group && strcmp(s->options.group, group))
		return false;
	return !s->options.only || strstr(name, s->options.only);
}

/*
 * Where an NVIDIA H200 (driver 580.159.04) does something else than the PTX ISA says, or than the
 * software device does. Not looked at on the software device.
 */
static const struct {
	const char *name, *message; /* the name begins with it; the message contains it */
} known_on_gpu[] = {
	/* what ptxas makes of a guarded one changes the result of inactive lanes */
	{ "set.", "inactive lane" },
	{ "testp.", "inactive lane" },
	/* a comparison that only decides a branch does not flush subnormal numbers */
	{ "setp.", "(branch," },
	/* the input is not flushed */
	{ "cvt.rm.ftz.f16.f32", "" },
	{ "cvt.rp.ftz.f16.f32", "" },
	{ "cvt.rp.ftz.sat.f16.f32", "" },
	/* a NaN whose upper bits are those of infinity becomes infinity */
	{ "cvt.rna.tf32.f32", "0x7f800000" },
	/* vprintf knows neither %zu nor * */
	{ "vprintf long", "" },
	{ "vprintf star", "" },
	/* does not end */
	{ "fault: call of address 0", "" },
};

static bool is_known(const struct pt_suite *s, const char *name, const char *message)
{
	if (strncmp(s->driver.name, "NVIDIA", 6) != 0)
		return false;
	for (size_t i = 0; i < sizeof known_on_gpu / sizeof known_on_gpu[0]; i++)
		if (strncmp(name, known_on_gpu[i].name, strlen(known_on_gpu[i].name)) == 0 &&
			strstr(message, known_on_gpu[i].message))
			return true;
	return false;
}

void pt_result(struct pt_suite *s, const char *name, const char *message)
{
	s->n_run++;
	if (!message)
		return;
	if (is_known(s, name, message)) {
		s->n_known++;
		printf("known %s: %s\n", name, message);
		return;
	}
	s->n_failed++;
	printf("FAIL %s: %s\n", name, message);
	fflush(stdout);
}

void pt_suite_free(struct pt_suite *s)
{
	for (size_t i = 0; i < s->n_rows; i++) {
		free(s->rows[i]->name);
		free(s->rows[i]->body);
		free(s->rows[i]);
	}
	for (size_t i = 0; i < s->n_cases; i++) {
		free(s->cases[i]->name);
		free(s->cases[i]->ptx);
		free(s->cases[i]);
	}
	free(s->rows);
	free(s->cases);
}
