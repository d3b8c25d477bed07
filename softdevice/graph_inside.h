/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Graphs (softdevice/graph.h): what graph.c, which makes them, and graph_run.c, which launches
 * them, have in common.
 */
#ifndef OBD_GRAPH_INSIDE_H
#define OBD_GRAPH_INSIDE_H

#include "softdevice/core/program.h"
#include "softdevice/graph.h"
#include "softdevice/op.h"

struct obd_alloc;
struct obd_module;

struct obd_body {
	uint32_t first, n; /* tasks */
};

/* One node. Shared by the plans that have it. */
struct obd_task {
	_Atomic int refs;
	int kind; /* OBF_TASK_* */
	struct obd_module *module;
	struct obd_grid grid;
	struct obf_copy copy;
	struct obf_fill fill;
	CUgraphConditionalNodeType type;
	const _Atomic uint32_t *condition;
	struct obd_body *bodies; /* owned */
	uint32_t n_bodies;
	_Alignas(16) unsigned char params[];
};

struct obd_condition {
	struct obd_alloc *word;
	uint32_t start;
	unsigned flags;
};

struct obd_graph {
	_Atomic int refs;              /* of its owner and of the plans */
	struct obd_ctx *ctx;           /* NULL: it has ended */
	struct obd_graph *next, *prev; /* in ctx->graphs; the context's lock */
	struct obd_condition *conditions;
	uint32_t n_conditions;
	struct obd_plan *plan; /* NULL: obd_graph_make has not succeeded */
	struct obd_op *last;   /* of its launches; one reference */
};

/* The nodes of a launch. Changed only while no launch has it. */
struct obd_plan {
	_Atomic int refs;
	struct obd_graph *graph;
	uint32_t n, n_top;                /* those that are in no body come first */
	struct obd_condition *conditions; /* owned; those of the graph when the plan was made */
	uint32_t n_conditions;
	struct {
		struct obd_task *task;
		bool disabled;
	} nodes[];
};

void obd_plan_unref(struct obd_plan *plan); /* may be NULL */
/* Whether all addresses are memory that may be accessed now. */
CUresult obd_graph_copy_check(const struct obf_copy *copy);
CUresult obd_graph_fill_check(const struct obf_fill *fill);

#endif
