/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/table.h"

#include "loadbalancer/registry/alloc.h"

void obl_table_init(struct obl_table *table)
{
	*table = (struct obl_table){ 0 };
}

static void row_fini(struct obl_row *row)
{
	free(row->key);
	free(row->value);
}

void obl_table_fini(struct obl_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		row_fini(&table->rows[i]);
	free(table->rows);
	*table = (struct obl_table){ 0 };
}

void obl_table_copy(struct obl_table *ret_copy, const struct obl_table *table)
{
	*ret_copy = *table;
	ret_copy->capacity = table->n;
	ret_copy->rows = obl_alloc(table->n, sizeof *table->rows);
	for (size_t i = 0; i < table->n; i++) {
		ret_copy->rows[i] = table->rows[i];
		ret_copy->rows[i].key = obl_copy_text(table->rows[i].key);
		ret_copy->rows[i].value = obl_copy_text(table->rows[i].value);
	}
}

/* The index of the first row whose key is not less. */
static size_t lower(const struct obl_table *table, const char *key)
{
	size_t first = 0, end = table->n;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (strcmp(table->rows[middle].key, key) < 0)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

static bool is_at(const struct obl_table *table, size_t at, const char *key)
{
	return at < table->n && strcmp(table->rows[at].key, key) == 0;
}

const struct obl_row *obl_table_find(const struct obl_table *table, const char *key)
{
	size_t at = lower(table, key);

	return is_at(table, at, key) ? &table->rows[at] : NULL;
}

size_t obl_table_prefix(const struct obl_table *table, const char *prefix, size_t *ret_n)
{
	size_t first = lower(table, prefix), end = first, length = strlen(prefix);

	while (end < table->n && strncmp(table->rows[end].key, prefix, length) == 0)
		end++;
	*ret_n = end - first;
	return first;
}

void obl_table_put(struct obl_table *table, const char *key, const char *value, uint64_t revision,
	const void *owner)
{
	size_t at = lower(table, key);

	if (is_at(table, at, key)) {
		free(table->rows[at].value);
	} else {
		if (table->n == table->capacity) {
			table->capacity = table->capacity ? table->capacity * 2 : 64;
			table->rows =
				obl_realloc(table->rows, table->capacity, sizeof *table->rows);
		}
		memmove(&table->rows[at + 1], &table->rows[at],
			(table->n - at) * sizeof *table->rows);
		table->n++;
		table->rows[at].key = obl_copy_text(key);
	}
	table->rows[at].value = obl_copy_text(value);
	table->rows[at].revision = revision;
	table->rows[at].owner = owner;
}

bool obl_table_remove(struct obl_table *table, const char *key)
{
	size_t at = lower(table, key);

	if (!is_at(table, at, key))
		return false;
	row_fini(&table->rows[at]);
	table->n--;
	memmove(&table->rows[at], &table->rows[at + 1], (table->n - at) * sizeof *table->rows);
	return true;
}

bool obl_table_holds(const struct obl_table *table, const struct obl_txn *txn)
{
	for (uint32_t i = 0; i < txn->n_compares; i++) {
		const struct obl_row *row = obl_table_find(table, txn->compares[i].key);

		if ((row ? row->revision : 0) != txn->compares[i].revision)
			return false;
	}
	return true;
}
