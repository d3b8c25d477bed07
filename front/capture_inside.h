/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Shared by capture.c and capture_calls.c: the captures and their lock. */
#ifndef OBF_CAPTURE_INSIDE_H
#define OBF_CAPTURE_INSIDE_H

#include <pthread.h>

#include "front/graph.h"
#include "front/stream.h"

/* Nodes, with the data of the edges from them. */
struct obf_tail {
	CUgraphNode *nodes;
	CUgraphEdgeData *edges;
	size_t n, room;
};

struct obf_capture {
	struct obf_capture *next;
	unsigned long long id; /* never repeats */
	struct obf_graph *graph;
	bool own; /* made by the capture, else the program's */
	bool invalid;
	CUstreamCaptureMode mode;
	uint64_t thread; /* that began it */
	struct obf_stream *origin, **members;
	size_t n, room;
	struct obf_tail ended; /* the last nodes of members that have been destroyed */
};

/* What an event recorded in a captured stream. */
struct obf_captured {
	unsigned long long id; /* of the capture */
	struct obf_tail tail;
};

extern pthread_mutex_t obf_capture_lock;
/* The mark of a legacy stream. */
extern struct obf_capture obf_capture_implicit;

/* The calling thread's number. */
uint64_t obf_capture_thread(void);
/* Like all below: the caller has the lock. NULL: it is not under way. */
struct obf_capture *obf_capture_find(unsigned long long id);
/* CUDA_ERROR_OUT_OF_MEMORY */
CUresult obf_tail_add(struct obf_tail *tail, CUgraphNode node, const CUgraphEdgeData *edge);
void obf_tail_free(struct obf_tail *tail);
CUresult obf_capture_join(struct obf_capture *capture, struct obf_stream *stream);
/* Ends the capture. The graph is the caller's. */
void obf_capture_end(struct obf_capture *capture);
CUresult obf_capture_begin(struct obf_stream *stream, struct obf_graph *graph, bool own,
	CUstreamCaptureMode mode, struct obf_capture **ret);
/* The stream's capture, if work can be added to it; legacy streams: see captured.h. */
CUresult obf_capture_enter(struct obf_stream *stream, struct obf_capture **ret);

#endif
