/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cuLogs*: the errors and warnings of this library, as CUDA's error log. The last LOGS_MAX lines are
 * kept. A line's number is its iterator: lines count from 0 and never repeat in a process.
 *
 * One lock, not held while a callback of the program runs.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

#define LOGS_MAX      100u
#define LOGS_LINE     256u /* bytes, with the NUL: LOGS_MAX lines are CUDA's 25600 bytes */
#define CALLBACKS_MAX 16u

static const char cut[] = "[earlier lines are missing]\n";

struct line {
	char text[LOGS_LINE];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct line lines[LOGS_MAX]; /* line n is at n % LOGS_MAX; under the lock */
static unsigned n_lines;            /* so far; likewise */

static struct callback {
	CUlogsCallback call; /* NULL: unused */
	void *user;
} callbacks[CALLBACKS_MAX]; /* under the lock; a handle points to its element */

/* a callback is running: what it causes to be logged must not call it again */
static _Thread_local bool calling;

void obf_logs_put(enum ob_log_level level, const char *text, size_t size)
{
	struct callback now[CALLBACKS_MAX];
	char copy[OB_LOG_LINE_MAX];

	pthread_mutex_lock(&lock);
	snprintf(lines[n_lines % LOGS_MAX].text, LOGS_LINE, "%s", text);
	n_lines++;
	memcpy(now, callbacks, sizeof now);
	pthread_mutex_unlock(&lock);
	if (calling)
		return;
	calling = true;
	snprintf(copy, sizeof copy, "%s", text); /* the program may change it */
	for (unsigned i = 0; i < CALLBACKS_MAX; i++)
		if (now[i].call)
			now[i].call(now[i].user,
				level == OB_LOG_ERROR ? CU_LOG_LEVEL_ERROR : CU_LOG_LEVEL_WARNING,
				copy, ob_min(size, sizeof copy - 1));
	calling = false;
}

CUresult obf_cuLogsRegisterCallback(CUlogsCallback call, void *user, CUlogsCallbackHandle *handle)
{
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (!call || !handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < CALLBACKS_MAX && result != CUDA_SUCCESS; i++)
		if (!callbacks[i].call) {
			callbacks[i] = (struct callback){ call, user };
			*handle = (CUlogsCallbackHandle)(void *)&callbacks[i];
			result = CUDA_SUCCESS;
		}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult obf_cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < CALLBACKS_MAX; i++)
		if ((void *)handle == (void *)&callbacks[i] && callbacks[i].call) {
			callbacks[i].call = NULL;
			result = CUDA_SUCCESS;
		}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult obf_cuLogsCurrent(unsigned *iterator, unsigned flags)
{
	if (!iterator || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*iterator = n_lines;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* The bytes of the lines [first, n_lines), with a newline each. Under the lock. */
static size_t lines_size(unsigned first)
{
	size_t size = 0;

	for (unsigned i = first; i != n_lines; i++)
		size += strlen(lines[i % LOGS_MAX].text) + 1;
	return size;
}

/*
 * Where to begin for `room` bytes, at the iterator or with all lines. *ret_cut: lines are missing, and
 * the text begins by saying so. Under the lock.
 */
static unsigned lines_first(const unsigned *iterator, size_t room, bool *ret_cut)
{
	unsigned oldest = n_lines > LOGS_MAX ? n_lines - LOGS_MAX : 0;
	unsigned wanted = iterator ? ob_min(*iterator, n_lines) : 0, first;

	first = ob_max(wanted, oldest);
	while (first != n_lines &&
		lines_size(first) + (first != wanted ? sizeof cut - 1 : 0) > room)
		first++;
	*ret_cut = first != wanted;
	return first;
}

/* Under the lock. */
static size_t lines_copy(unsigned first, bool is_cut, char *ret)
{
	char *at = ret;

	if (is_cut)
		at = stpcpy(at, cut);
	for (unsigned i = first; i != n_lines; i++) {
		at = stpcpy(at, lines[i % LOGS_MAX].text);
		*at++ = '\n';
	}
	*at = '\0';
	return (size_t)(at - ret);
}

CUresult obf_cuLogsDumpToMemory(unsigned *iterator, char *buffer, size_t *size, unsigned flags)
{
	CUresult result = CUDA_SUCCESS;
	unsigned first;
	bool is_cut;

	if (!buffer || !size || !*size || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	first = lines_first(iterator, *size - 1, &is_cut);
	if (first == n_lines) {
		/* nothing to say, or no room for the last line */
		result = is_cut ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
		*size = 0;
		buffer[0] = '\0';
	} else {
		*size = lines_copy(first, is_cut, buffer);
	}
	if (iterator && result == CUDA_SUCCESS)
		*iterator = n_lines;
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult obf_cuLogsDumpToFile(unsigned *iterator, const char *path, unsigned flags)
{
	char text[LOGS_MAX * LOGS_LINE + sizeof cut];
	size_t size = sizeof text;
	CUresult result;
	FILE *file;
	bool ok;

	if (!path || flags)
		return CUDA_ERROR_INVALID_VALUE;
	file = fopen(path, "we");
	if (!file)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_cuLogsDumpToMemory(iterator, text, &size, 0);
	ok = fwrite(text, 1, size, file) == size;
	if (fclose(file) != 0 || !ok)
		result = CUDA_ERROR_OPERATING_SYSTEM;
	return result;
}
