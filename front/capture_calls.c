/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuStreamBeginCapture and the other calls about a stream's capture. */
#include "front/captured.h"
#include "front/capture_inside.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

#define UPDATE_FLAGS ((unsigned)CU_STREAM_SET_CAPTURE_DEPENDENCIES)

/* ---- begin ---- */

/* Under the lock: may the stream be captured? */
static CUresult begin_check(const struct obf_stream *stream, CUstreamCaptureMode mode)
{
	if ((int)mode < CU_STREAM_CAPTURE_MODE_GLOBAL || (int)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return stream->capture ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

CUresult obf_cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
	struct obf_capture *capture;
	struct obf_graph *graph;
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&obf_capture_lock);
	result = begin_check(stream, mode);
	if (result == CUDA_SUCCESS)
		result = obf_graph_new(&graph);
	if (result == CUDA_SUCCESS) {
		result = obf_capture_begin(stream, graph, true, mode, &capture);
		if (result != CUDA_SUCCESS)
			obf_graph_free(graph);
	}
	pthread_mutex_unlock(&obf_capture_lock);
	return result;
}

CUresult obf_cuStreamBeginCapture(CUstream stream)
{
	return obf_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

/* Replaces (set) or extends the dependencies of the stream's next node. */
static CUresult tail_update(struct obf_stream *stream, const CUgraphNode *deps,
	const CUgraphEdgeData *edges, size_t n, bool set)
{
	const struct obf_graph *graph = stream->capture->graph;
	CUresult result = CUDA_SUCCESS;

	if (n && !deps)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		const struct obf_node *node = obf_node_find(deps[i]);

		if (!node || node->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (set)
		stream->tail->n = 0;
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
		result = obf_tail_add(stream->tail, deps[i], edges ? &edges[i] : NULL);
	return result;
}

CUresult obf_cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph_handle,
	const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode mode)
{
	struct obf_graph *graph = obf_graph_find(graph_handle);
	struct obf_capture *capture;
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&obf_capture_lock);
	result = begin_check(stream, mode);
	if (result == CUDA_SUCCESS)
		result = obf_capture_begin(stream, graph, false, mode, &capture);
	if (result == CUDA_SUCCESS) {
		result = tail_update(stream, deps, edges, n, true);
		if (result != CUDA_SUCCESS)
			obf_capture_end(capture);
	}
	pthread_mutex_unlock(&obf_capture_lock);
	return result;
}

/* ---- end ---- */

/* Marks the node and all that it depends on. */
static void ancestors_mark(struct obf_graph *graph, const struct obf_tail *tail, uint64_t mark)
{
	for (size_t i = 0; i < tail->n; i++) {
		struct obf_node *node = obf_node_find(tail->nodes[i]);

		if (node)
			node->mark = mark;
	}
	/* While it is captured, a node depends on older ones only, whatever the program adds. */
	for (bool more = true; more;) {
		more = false;
		for (size_t i = graph->n_nodes; i-- > 0;) {
			const struct obf_node *node = graph->nodes[i];

			for (size_t k = 0; node->mark == mark && k < node->in.n; k++) {
				struct obf_node *dep = node->in.list[k].node;

				more |= dep->mark != mark && dep->index > i;
				dep->mark = mark;
			}
		}
	}
}

static bool all_marked(const struct obf_tail *tail, uint64_t mark)
{
	for (size_t i = 0; i < tail->n; i++) {
		const struct obf_node *node = obf_node_find(tail->nodes[i]);

		if (node && node->mark != mark)
			return false;
	}
	return true;
}

/* Every stream that joined has been waited for by the one in which the capture began. */
static bool is_joined(const struct obf_capture *capture)
{
	uint64_t mark = obf_graph_mark();

	ancestors_mark(capture->graph, capture->origin->tail, mark);
	for (size_t i = 0; i < capture->n; i++)
		if (!all_marked(capture->members[i]->tail, mark))
			return false;
	return all_marked(&capture->ended, mark);
}

/*
 * Under the lock. *ret NULL: the capture has failed or goes on. `ret` may be NULL if the program made
 * the graph: NVIDIA's samples pass NULL then.
 */
static CUresult end_capture(struct obf_stream *stream, CUgraph *ret)
{
	struct obf_capture *capture = stream->capture;
	struct obf_graph *graph;
	CUresult result = CUDA_SUCCESS;
	bool own;

	if (!capture || capture == &obf_capture_implicit)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (!ret && capture->own)
		return CUDA_ERROR_INVALID_VALUE;
	if (capture->origin != stream) {
		capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		capture->thread != obf_capture_thread())
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (capture->invalid)
		result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!is_joined(capture))
		result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	graph = capture->graph;
	own = capture->own;
	obf_capture_end(capture);
	if (result == CUDA_SUCCESS && ret)
		*ret = graph->handle;
	else if (result != CUDA_SUCCESS && own)
		obf_graph_free(graph);
	return result;
}

CUresult obf_cuStreamEndCapture(CUstream handle, CUgraph *ret)
{
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (ret)
		*ret = NULL;
	pthread_mutex_lock(&obf_capture_lock);
	result = end_capture(stream, ret);
	pthread_mutex_unlock(&obf_capture_lock);
	return result;
}

/* ---- queries ---- */

static bool has_edge_data(const struct obf_tail *tail)
{
	bool any = false;

	for (size_t i = 0; i < tail->n; i++)
		any |= tail->edges[i].type || tail->edges[i].from_port || tail->edges[i].to_port;
	return any;
}

CUresult obf_cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *ret_status,
	cuuint64_t *ret_id, CUgraph *ret_graph, const CUgraphNode **ret_dependencies,
	const CUgraphEdgeData **ret_edges, size_t *ret_n)
{
	const struct obf_capture *capture;
	struct obf_stream *stream;
	const struct obf_tail *tail;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_status || (ret_edges && !ret_dependencies))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&obf_capture_lock);
	capture = stream->capture;
	tail = stream->tail;
	if (capture == &obf_capture_implicit) {
		result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	} else if (capture && ret_dependencies && !ret_edges && has_edge_data(tail)) {
		result = CUDA_ERROR_LOSSY_QUERY;
	} else {
		*ret_status = !capture     ? CU_STREAM_CAPTURE_STATUS_NONE
			: capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
		if (*ret_status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
			capture = NULL;
		if (ret_id)
			*ret_id = capture ? capture->id : 0;
		if (ret_graph)
			*ret_graph = capture ? capture->graph->handle : NULL;
		if (ret_dependencies)
			*ret_dependencies = capture ? tail->nodes : NULL;
		if (ret_edges)
			*ret_edges = capture ? tail->edges : NULL;
		if (ret_n)
			*ret_n = capture ? tail->n : 0;
	}
	pthread_mutex_unlock(&obf_capture_lock);
	return result;
}

CUresult obf_cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *ret_status,
	cuuint64_t *ret_id, CUgraph *ret_graph, const CUgraphNode **ret_dependencies, size_t *ret_n)
{
	return obf_cuStreamGetCaptureInfo_v3(
		handle, ret_status, ret_id, ret_graph, ret_dependencies, NULL, ret_n);
}

CUresult obf_cuStreamGetCaptureInfo(
	CUstream handle, CUstreamCaptureStatus *ret_status, cuuint64_t *ret_id)
{
	return obf_cuStreamGetCaptureInfo_v3(handle, ret_status, ret_id, NULL, NULL, NULL, NULL);
}

CUresult obf_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *ret_status)
{
	return obf_cuStreamGetCaptureInfo_v3(handle, ret_status, NULL, NULL, NULL, NULL, NULL);
}

CUresult obf_cuStreamUpdateCaptureDependencies_v2(
	CUstream handle, CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n, unsigned flags)
{
	struct obf_capture *capture;
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (flags & ~UPDATE_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&obf_capture_lock);
	if (!stream->capture)
		result = CUDA_ERROR_ILLEGAL_STATE;
	else
		result = obf_capture_enter(stream, &capture);
	if (result == CUDA_SUCCESS)
		result = tail_update(
			stream, deps, edges, n, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	pthread_mutex_unlock(&obf_capture_lock);
	return result;
}

CUresult obf_cuStreamUpdateCaptureDependencies(
	CUstream stream, CUgraphNode *deps, size_t n, unsigned flags)
{
	return obf_cuStreamUpdateCaptureDependencies_v2(stream, deps, NULL, n, flags);
}
