/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/leftover.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"

static pid_t parent_of(const char *pid)
{
	char path[64], text[512];
	const char *after;
	size_t n;
	FILE *file;
	int parent = 0;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	n = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[n] = '\0';
	after = strrchr(text, ')'); /* the name before it may contain anything */
	return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* In a /proc of another namespace the numbers are those of other processes. */
static bool proc_usable(void)
{
	char target[32];
	ssize_t n = readlink("/proc/self", target, sizeof target - 1);

	if (n <= 0)
		return false;
	target[n] = '\0';
	return atol(target) == getpid() && parent_of(target) == getppid();
}

/* The next child of this process; 0: no more. */
static pid_t next_child(DIR *folder)
{
	const struct dirent *entry;

	while ((entry = readdir(folder)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
			parent_of(entry->d_name) == getpid())
			return (pid_t)atol(entry->d_name);
	return 0;
}

static void closedirp(DIR **folder)
{
	if (*folder)
		closedir(*folder);
}

void obx_earlier_add(struct obx_earlier *earlier, pid_t pid)
{
	pid_t *list = reallocarray(earlier->list, earlier->n + 1, sizeof *list);

	if (!list) {
		earlier->known = false; /* rather none is ended than a wrong one */
		return;
	}
	earlier->list = list;
	list[earlier->n++] = pid;
}

void obx_earlier_note(struct obx_earlier *earlier)
{
	OB_CLEANUP(closedirp) DIR *folder = proc_usable() ? opendir("/proc") : NULL;
	pid_t pid;

	*earlier = (struct obx_earlier){ .known = folder != NULL };
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	while (folder && (pid = next_child(folder)))
		obx_earlier_add(earlier, pid);
}

static bool is_earlier(const struct obx_earlier *earlier, pid_t pid)
{
	for (size_t i = 0; i < earlier->n; i++)
		if (earlier->list[i] == pid)
			return true;
	return false;
}

void obx_earlier_drop(struct obx_earlier *earlier, pid_t pid)
{
	size_t kept = 0;

	for (size_t i = 0; i < earlier->n; i++)
		if (earlier->list[i] != pid)
			earlier->list[kept++] = earlier->list[i];
	earlier->n = kept;
}

size_t obx_leftover_kill(const struct obx_earlier *earlier, int number)
{
	OB_CLEANUP(closedirp) DIR *folder = earlier->known ? opendir("/proc") : NULL;
	size_t n = 0;
	pid_t pid;

	while (folder && (pid = next_child(folder)))
		if (!is_earlier(earlier, pid)) {
			kill(pid, number);
			n++;
		}
	return n;
}
