/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Which address reads which documents. When documents that are being read take too much memory, the
 * address that holds the most loses the one that it began to read first, so that slow readers keep
 * no document from others. An address holds a document once, however many of its connections read
 * it. Embedded in the documents (documents.h); the loop's thread.
 */
#ifndef OBL_DASHBOARD_READERS_H
#define OBL_DASHBOARD_READERS_H

#include <stdbool.h>

#include "loadbalancer/dashboard/blob.h"
#include "loadbalancer/dashboard/peers.h"

#define OBL_REPLY_S 120u /* until a reader must have read a document */

/* An address that reads something. */
struct obl_holder {
	struct obl_holder *next, **link;
	struct obl_peer_key key;
	struct obl_reader *oldest, *newest;
	size_t bytes; /* of the documents that it holds */
};

/* One connection that reads one document; embedded in its reply or stream. */
struct obl_reader {
	struct obl_reader *older, *newer; /* of the same address */
	struct obl_holder *holder;
	struct obl_blob *blob; /* NULL: not begun, ended, or taken away: the connection must end */
};

struct obl_readers {
	struct obl_holder *first;
	uint32_t reply_s; /* OBL_REPLY_S */
};

/* Takes over the reference, in any case. False: no memory. */
bool obl_reader_enter(struct obl_readers *readers, struct obl_reader *reader,
	const struct obl_peer_key *key, struct obl_blob *blob);
/* Gives up the reference, if there still is one. */
void obl_reader_leave(struct obl_reader *reader);
/*
 * Takes one document away from the address that holds the most. Its bytes are free when no other
 * address reads it. False: nobody reads anything.
 */
bool obl_readers_take(struct obl_readers *readers);

#endif
