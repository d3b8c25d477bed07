/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/readers.h"

#include <stdlib.h>

static struct obl_holder *holder_find(struct obl_readers *readers, const struct obl_peer_key *key)
{
	struct obl_holder *holder = readers->first;

	while (holder && !obl_peer_key_same(&holder->key, key))
		holder = holder->next;
	return holder;
}

static struct obl_holder *holder_enter(struct obl_readers *readers, const struct obl_peer_key *key)
{
	struct obl_holder *holder = holder_find(readers, key);

	if (holder)
		return holder;
	holder = malloc(sizeof *holder);
	if (!holder)
		return NULL;
	*holder =
		(struct obl_holder){ .next = readers->first, .link = &readers->first, .key = *key };
	if (holder->next)
		holder->next->link = &holder->next;
	readers->first = holder;
	return holder;
}

static void holder_free(struct obl_holder *holder)
{
	*holder->link = holder->next;
	if (holder->next)
		holder->next->link = holder->link;
	free(holder);
}

static bool holds(const struct obl_holder *holder, const struct obl_blob *blob)
{
	const struct obl_reader *reader = holder->oldest;

	while (reader && reader->blob != blob)
		reader = reader->newer;
	return reader;
}

bool obl_reader_enter(struct obl_readers *readers, struct obl_reader *reader,
	const struct obl_peer_key *key, struct obl_blob *blob)
{
	struct obl_holder *holder = holder_enter(readers, key);

	if (!holder) {
		obl_blob_unref(blob);
		return false;
	}
	if (!holds(holder, blob))
		holder->bytes += blob->size;
	*reader = (struct obl_reader){ .older = holder->newest, .holder = holder, .blob = blob };
	*(holder->newest ? &holder->newest->newer : &holder->oldest) = reader;
	holder->newest = reader;
	return true;
}

void obl_reader_leave(struct obl_reader *reader)
{
	struct obl_holder *holder = reader->holder;
	struct obl_blob *blob = reader->blob;

	if (!blob)
		return;
	*(reader->newer ? &reader->newer->older : &holder->newest) = reader->older;
	*(reader->older ? &reader->older->newer : &holder->oldest) = reader->newer;
	*reader = (struct obl_reader){ .blob = NULL };
	if (!holds(holder, blob))
		holder->bytes -= blob->size;
	obl_blob_unref(blob);
	if (!holder->oldest)
		holder_free(holder);
}

bool obl_readers_take(struct obl_readers *readers)
{
	struct obl_holder *most = readers->first;
	struct obl_reader *reader, *newer;
	const struct obl_blob *blob;

	if (!most)
		return false;
	for (struct obl_holder *holder = most->next; holder; holder = holder->next)
		if (holder->bytes > most->bytes)
			most = holder;
	reader = most->oldest;
	blob = reader->blob;
	for (; reader; reader = newer) {
		newer = reader->newer; /* NULL with the last one, which frees the holder */
		if (reader->blob == blob)
			obl_reader_leave(reader);
	}
	return true;
}
