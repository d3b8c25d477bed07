/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The inside of obd_family, shared by its two files: family.c (nodes: start, end, running) and
 * family_stream.c (what device code calls). The pool's lock guards everything.
 */
#ifndef OBD_CORE_FAMILY_INSIDE_H
#define OBD_CORE_FAMILY_INSIDE_H

#include "softdevice/core/engine/family.h"
#include "softdevice/core/engine/pool.h"

#define OBD_FAMILY_BUCKETS 1024u

enum obd_node_kind { OBD_NODE_GRID, OBD_NODE_ROWS, OBD_NODE_MARK };

struct obd_edge {
	struct obd_edge *next;
	struct obd_node *to;
};

struct obd_node {
	struct obd_launch l; /* of a grid */
	struct obd_grid grid;
	struct obd_rows rows;
	enum obd_node_kind kind;
	struct obd_family *family;
	struct obd_node *parent;
	uint64_t number, block; /* block: index of the one that launched it */
	uint32_t waits;         /* nodes that must be over before this one starts */
	uint32_t unfinished;    /* children that are not over, without those in `tail` */
	/* of a grid: counted in `pending`; offered to the workers; its blocks have run */
	bool counted, started, ended;
	struct obd_edge *after;
	struct obd_node *tail, **tail_end; /* children to start when all others are over */
	struct obd_node *next;             /* in a bucket of buffers, a tail, or a queue */
	struct obd_node *next_number;      /* in a bucket of `numbers` */
};

/* A stream or an event. */
struct obd_order {
	uint64_t last; /* number of a node, 0: none */
	bool used, is_event;
	uint32_t next_free;
};

struct obd_family_text {
	struct obd_family_text *next;
	const char *from; /* a literal */
	char *copy;
	size_t size;
};

struct obd_family {
	struct obd_pool *pool;
	struct obd_node *root;
	bool over;
	uint64_t numbers_given;
	uint32_t n_nodes;                             /* in `numbers` */
	struct obd_node *numbers[OBD_FAMILY_BUCKETS]; /* nodes that are not over */
	struct obd_node *buffers[OBD_FAMILY_BUCKETS]; /* not launched yet, by address */
	struct obd_node *ready, **ready_end;          /* copies and marks to be done now */
	bool settling;                                /* a thread works on `ready` */
	struct obd_order *orders;
	uint32_t n_orders, max_orders, free_order; /* free_order: index + 1 */
	uint32_t pending, limit;                   /* launches that have not started */
	struct obd_family_text *texts;
	bool failed;
	struct obd_fault fault;
};

/* Runs the root and all below it, and frees the family. */
CUresult obd_family_run(struct obd_family *f, struct obd_fault *ret_fault);
/* Locked. A node of this number that is not over; NULL: none. */
struct obd_node *obd_family_find(const struct obd_family *f, uint64_t number);
/* A new grid: its launch belongs to the node. */
void obd_family_node_init(struct obd_node *n);
/* Locked. Gives the node its number and its parent. */
void obd_family_adopt(struct obd_node *n, struct obd_node *parent);
/* Locked. The node waits for `on`, which may be NULL. False: out of memory. */
bool obd_family_depend(struct obd_node *n, struct obd_node *on);
/* Locked. Takes back the last call, in which `on` was the same. */
void obd_family_depend_undo(struct obd_node *on);
/* Locked. Starts the node if it waits for nothing. */
void obd_family_start(struct obd_node *n);
/* Locked. Does the copies and marks that are ready. It releases the lock for copies. */
void obd_family_settle(struct obd_family *f);
/* Is there a grid that a worker in `l` could run instead of waiting? Locked. */
bool obd_family_can_help(const struct obd_launch *l);
/* Has this thread nested as many workers as it may? */
bool obd_family_is_deep(void);
/* Locked. Keeps the first fault, and stops all grids of the family. */
void obd_family_fail(struct obd_family *f, const struct obd_fault *fault);

#endif
