/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * User objects: reference counts with a destructor of the program. Graphs hold references; a clone
 * and an executable graph take one each for every object of the graph.
 */
#include <stdlib.h>

#include "front/graph.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

#define USER_OBJECTS_MAX (1u << 20)
#define COUNT_MAX        ((unsigned)INT32_MAX)

struct user_object {
	CUuserObject handle;
	CUhostFn destroy;
	void *ptr;
	uint64_t refs; /* under the lock */
};

struct obf_graph_user {
	struct user_object *object;
	uint64_t count;
};

static struct ob_ids object_ids = OB_IDS_INIT(OBF_KIND_USER_OBJECT, USER_OBJECTS_MAX);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct user_object *object_find(CUuserObject handle)
{
	return ob_ids_get(&object_ids, (uint64_t)(uintptr_t)handle);
}

/* False: there are fewer references. */
static bool object_drop(struct user_object *object, uint64_t count)
{
	bool fits, last;

	pthread_mutex_lock(&lock);
	fits = count <= object->refs;
	if (fits)
		object->refs -= count;
	last = fits && object->refs == 0;
	pthread_mutex_unlock(&lock);
	if (last) {
		bool inside = obf_in_host_function;

		ob_ids_remove(&object_ids, (uint64_t)(uintptr_t)object->handle);
		/* As in CUDA, a destructor must not make calls. */
		obf_in_host_function = true;
		object->destroy(object->ptr);
		obf_in_host_function = inside;
		free(object);
	}
	return fits;
}

static void object_add(struct user_object *object, uint64_t count)
{
	pthread_mutex_lock(&lock);
	object->refs += count;
	pthread_mutex_unlock(&lock);
}

CUresult obf_cuUserObjectCreate(
	CUuserObject *ret, void *ptr, CUhostFn destroy, unsigned count, unsigned flags)
{
	struct user_object *object;
	CUresult result = obf_ready();
	uint64_t id;

	if (result != CUDA_SUCCESS)
		return result;
	/* CUDA requires the flag: there is no other way to destroy an object yet. */
	if (!ret || !destroy || !count || count > COUNT_MAX ||
		flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	object = calloc(1, sizeof *object);
	id = object ? ob_ids_add(&object_ids, object) : 0;
	if (!id) {
		free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*object = (struct user_object){ (CUuserObject)(uintptr_t)id, destroy, ptr, count };
	*ret = object->handle;
	return CUDA_SUCCESS;
}

CUresult obf_cuUserObjectRetain(CUuserObject handle, unsigned count)
{
	struct user_object *object = object_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!object || !count || count > COUNT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	object_add(object, count);
	return CUDA_SUCCESS;
}

CUresult obf_cuUserObjectRelease(CUuserObject handle, unsigned count)
{
	struct user_object *object = object_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!object || !count || count > COUNT_MAX || !object_drop(object, count))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* ---- the references of graphs ---- */

static CUresult user_add(struct obf_graph *graph, struct user_object *object, uint64_t count)
{
	struct obf_graph_user *users;

	for (size_t i = 0; i < graph->n_users; i++) {
		if (graph->users[i].object != object)
			continue;
		graph->users[i].count += count;
		return CUDA_SUCCESS;
	}
	users = realloc(graph->users, (graph->n_users + 1) * sizeof *users);
	if (!users)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->users = users;
	users[graph->n_users++] = (struct obf_graph_user){ object, count };
	return CUDA_SUCCESS;
}

CUresult obf_graph_users_clone(const struct obf_graph *from, struct obf_graph *to)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < from->n_users && result == CUDA_SUCCESS; i++) {
		result = user_add(to, from->users[i].object, 1);
		if (result == CUDA_SUCCESS)
			object_add(from->users[i].object, 1);
	}
	return result;
}

void obf_graph_users_end(struct obf_graph *graph)
{
	for (size_t i = 0; i < graph->n_users; i++)
		object_drop(graph->users[i].object, graph->users[i].count);
	free(graph->users);
	graph->users = NULL;
	graph->n_users = 0;
}

CUresult obf_cuGraphRetainUserObject(
	CUgraph graph_handle, CUuserObject handle, unsigned count, unsigned flags)
{
	struct obf_graph *graph = obf_graph_find(graph_handle);
	struct user_object *object = object_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!graph || !object || !count || count > COUNT_MAX ||
		flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	result = user_add(graph, object, count);
	/* MOVE: the caller's own references become the graph's. */
	if (result == CUDA_SUCCESS && !(flags & CU_GRAPH_USER_OBJECT_MOVE))
		object_add(object, count);
	return result;
}

CUresult obf_cuGraphReleaseUserObject(CUgraph graph_handle, CUuserObject handle, unsigned count)
{
	struct obf_graph *graph = obf_graph_find(graph_handle);
	const struct user_object *object = object_find(handle);
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!graph || !object || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < graph->n_users; i++) {
		struct obf_graph_user user = graph->users[i];

		if (user.object != object || user.count < count)
			continue;
		graph->users[i].count -= count;
		if (!graph->users[i].count)
			graph->users[i] = graph->users[--graph->n_users];
		object_drop(user.object, count);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}
