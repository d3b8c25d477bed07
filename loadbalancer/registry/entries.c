/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/entries.h"

#include "loadbalancer/registry/alloc.h"

/*
 * The bytes of the UTF-8 character at p, 0 if there is none (RFC 3629: shortest form, no
 * surrogates). A NUL ends the text, so a truncated character is found without its length.
 */
static size_t character(const unsigned char *p)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

bool obl_text_fits(const char *text, size_t max)
{
	const unsigned char *p = (const unsigned char *)text;

	while (*p) {
		size_t n = character(p);

		if (n == 0)
			return false;
		p += n;
	}
	return (size_t)(p - (const unsigned char *)text) <= max;
}

static enum ob_err key_check(const char *key, struct ob_cause *ret_cause)
{
	if (strnlen(key, OBL_KEY_MAX + 1) > OBL_KEY_MAX)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"a key of the registry is longer than %u bytes", OBL_KEY_MAX);
	if (!*key || !obl_text_fits(key, OBL_KEY_MAX))
		return ob_cause_set(
			ret_cause, OB_ERR_ARGUMENT, "a key of the registry is empty or not UTF-8");
	if (strcmp(key, OBL_LEADER_KEY) == 0)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"the key \"%s\" is the registry's own", OBL_LEADER_KEY);
	return OB_ERR_NONE;
}

static enum ob_err change_check(const struct obl_txn *txn, uint32_t i, struct ob_cause *ret_cause)
{
	const struct obl_change *change = &txn->changes[i];
	enum ob_err err = key_check(change->key, ret_cause);

	if (err != OB_ERR_NONE)
		return err;
	for (uint32_t before = 0; before < i; before++)
		if (strcmp(txn->changes[before].key, change->key) == 0)
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"one transaction changes the key \"%s\" twice", change->key);
	if (!change->value)
		return OB_ERR_NONE;
	if (strnlen(change->value, OBL_VALUE_MAX + 1) > OBL_VALUE_MAX)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"the value of \"%s\" is longer than %u bytes", change->key, OBL_VALUE_MAX);
	if (!obl_text_fits(change->value, OBL_VALUE_MAX))
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "the value of \"%s\" is not UTF-8",
			change->key);
	return OB_ERR_NONE;
}

enum ob_err obl_txn_check(const struct obl_txn *txn, struct ob_cause *ret_cause)
{
	enum ob_err err;

	if (txn->n_compares > OBL_TXN_OPS_MAX || txn->n_changes > OBL_TXN_OPS_MAX)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"a transaction has more than %u comparisons or changes", OBL_TXN_OPS_MAX);
	for (uint32_t i = 0; i < txn->n_compares; i++) {
		err = key_check(txn->compares[i].key, ret_cause);
		if (err != OB_ERR_NONE)
			return err;
	}
	for (uint32_t i = 0; i < txn->n_changes; i++) {
		err = change_check(txn, i, ret_cause);
		if (err != OB_ERR_NONE)
			return err;
	}
	return OB_ERR_NONE;
}

enum ob_err obl_prefix_check(const char *prefix, struct ob_cause *ret_cause)
{
	if (strnlen(prefix, OBL_KEY_MAX + 1) > OBL_KEY_MAX)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"a prefix of keys is longer than %u bytes", OBL_KEY_MAX);
	if (!obl_text_fits(prefix, OBL_KEY_MAX))
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "a prefix of keys is not UTF-8");
	return OB_ERR_NONE;
}

static const char *put_text(char **at, const char *text)
{
	const char *copy = *at;
	size_t size;

	if (!text)
		return NULL;
	size = strlen(text) + 1;
	memcpy(*at, text, size);
	*at += size;
	return copy;
}

struct obl_entry *obl_entries_copy(const struct obl_entry *entries, uint32_t n)
{
	size_t size = n * sizeof *entries;
	struct obl_entry *copy;
	char *at;

	for (uint32_t i = 0; i < n; i++)
		size += strlen(entries[i].key) + 1 +
			(entries[i].value ? strlen(entries[i].value) + 1 : 0);
	copy = obl_alloc(size, 1);
	at = (char *)(copy + n);
	for (uint32_t i = 0; i < n; i++) {
		copy[i].key = put_text(&at, entries[i].key);
		copy[i].value = put_text(&at, entries[i].value);
		copy[i].revision = entries[i].revision;
	}
	return copy;
}
