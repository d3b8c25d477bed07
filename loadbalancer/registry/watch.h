/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The watch over all keys of a prefix: reads them, then follows the changes in one stream, and goes on
 * at another endpoint where the last stream ended. When the changes since then are gone (compaction, a
 * restored etcd, an answer that cannot be right), it reads all again. Embedded in its owner, which
 * calls the tick. Loop's thread only.
 */
#ifndef OBL_WATCH_H
#define OBL_WATCH_H

#include "loadbalancer/registry/calls.h"
#include "loadbalancer/registry/wire.h"

#define OBL_WATCH_LINE_MAX (8u << 20) /* of one message; etcd splits them at about 2 MiB */
/* A stream that is this far behind another answer's revision is replaced, but not too often: */
#define OBL_WATCH_LATE_NS  (5 * OB_SECOND)
#define OBL_WATCH_AGAIN_NS (30 * OB_SECOND)
/* The watch is reported as broken when no stream could be opened for so long. */
#define OBL_WATCH_DOWN_NS  (2 * OB_SECOND)

enum obl_watch_state {
	OBL_WATCH_IDLE,
	OBL_WATCH_READING, /* all keys */
	OBL_WATCH_OPENING, /* the stream; etcd has not confirmed it */
	OBL_WATCH_OPEN,
};

struct obl_watch {
	struct obl_calls *calls;
	const char *prefix;
	enum obl_watch_state state;
	struct obl_http_request *stream;
	uint32_t endpoint;
	struct ob_buf line;  /* the beginning of a message */
	uint64_t next;       /* the first revision that is not known; 0: all keys must be read */
	uint64_t next_ns;    /* when that was learned */
	bool synced;         /* the user has the state of a revision */
	bool partial;        /* the last message was a part of a revision's changes */
	uint64_t since;      /* ns: of the state */
	uint64_t down_since; /* ns: no stream is open; 0: one is */
	uint64_t heard,
		heard_ns; /* a revision of another answer that is not known yet, and when; 0: none */
	uint64_t replaced; /* ns: when a late stream was replaced last */
	/* Told to the user as in struct obl_watcher. kv NULL: the key was deleted. */
	void (*reset)(void *user);
	void (*changed)(void *user, const char *key, const struct obl_kv *kv);
	void (*done)(void *user, uint64_t revision);
	void *user;
};

void obl_watch_init(struct obl_watch *watch);
void obl_watch_fini(struct obl_watch *watch);
void obl_watch_tick(struct obl_watch *watch, uint64_t now);
/* The user has a state, and it is followed. */
bool obl_watch_follows(const struct obl_watch *watch, uint64_t now);
/*
 * Another answer came from a state of this revision. started_ns: the call began then, and its answer
 * must show what was known at that time (a linearizable read, a transaction); 0: it need not.
 */
void obl_watch_heard(struct obl_watch *watch, uint64_t revision, uint64_t started_ns, uint64_t now);
/* An endpoint has failed: a stream from it is opened elsewhere. */
void obl_watch_endpoint_failed(struct obl_watch *watch, uint32_t endpoint);

#endif
