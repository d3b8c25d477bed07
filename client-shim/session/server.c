/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"
#include "protocol/control.h"
#include "transport/url.h"

#define PAGE 4096u /* at least the alignment of every variable */

/* The linker's names for the ends of the section. */
extern char section_begin[] __asm__("__start_obc_server") __attribute__((visibility("hidden")));
extern char section_end[] __asm__("__stop_obc_server") __attribute__((visibility("hidden")));

_Thread_local struct obc_here obc_here;

static OBC_PER_SERVER char server_name_first[OBT_URL_MAX + 1];
#define server_name OBC_HERE(server_name_first)

/* Written before the library has threads. */
static ptrdiff_t offsets[OBC_SERVERS_MAX];
static uint32_t n_servers = 1;
static struct obp_range ranges[OBC_SERVERS_MAX]; /* device addresses */
static void (*switch_hook)(uint32_t from, uint32_t to);

/* Makes the state of server i, equal to that at `from`. */
static bool server_make(uint32_t i, const char *from)
{
	size_t size = (size_t)(section_end - section_begin), into = (uintptr_t)section_begin % PAGE;
	/* The same place within a page as the section: alignments are kept. */
	char *copy =
		mmap(NULL, into + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return false;
	memcpy(copy + into, from, size);
	offsets[i] = copy + into - section_begin;
	return true;
}

bool obc_servers_make(uint32_t n)
{
	n_servers = 1;
	memset(ranges, 0, sizeof ranges);
	for (; n_servers < n; n_servers++)
		if (!server_make(n_servers, section_begin))
			return false;
	return true;
}

bool obc_servers_change(uint32_t n)
{
	/* Server 1 has not been used, other than server 0. */
	for (; n_servers < n; n_servers++)
		if (n_servers == 1 || !server_make(n_servers, section_begin + offsets[1]))
			return false;
	n_servers = n;
	return true;
}

uint32_t obc_servers_count(void)
{
	return n_servers;
}

uint32_t obc_server_enter(uint32_t number)
{
	uint32_t before = obc_here.number;

	if (number == before || number >= n_servers)
		return before;
	obc_here.offset = offsets[number];
	obc_here.number = number;
	if (switch_hook)
		switch_hook(before, number);
	return before;
}

void obc_server_enter_context(uint32_t number)
{
	obc_here.context = number;
	obc_server_enter(number);
}

void obc_server_on_switch(void (*fn)(uint32_t from, uint32_t to))
{
	switch_hook = fn;
}

void obc_server_back(const uint32_t *before)
{
	obc_server_enter(*before);
}

/* ---- the server of an argument ---- */

/* Values of obc_here.choice. */
enum { CHOICE_OFF, CHOICE_NONE, CHOICE_FIRST };

struct obc_choice_before obc_server_choice_begin(void)
{
	struct obc_choice_before before = { obc_here.number, obc_here.choice };

	obc_here.choice = CHOICE_NONE;
	return before;
}

void obc_server_choice_end(const struct obc_choice_before *before)
{
	obc_here.choice = before->choice;
	obc_server_enter(before->number);
}

CUresult obc_server_choose(uint32_t number)
{
	if (n_servers == 1)
		return CUDA_SUCCESS;
	if (obc_here.choice == CHOICE_NONE) {
		obc_here.choice = CHOICE_FIRST;
		obc_server_enter(number);
	}
	if (number == obc_here.number)
		return CUDA_SUCCESS;
	ob_warn("a call refused: its arguments are of devices of two servers, which have no access "
		"to each other's memory");
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult obc_server_choose_at(uint64_t addr)
{
	uint32_t number;

	return obc_server_find(addr, &number) ? obc_server_choose(number) : CUDA_SUCCESS;
}

void obc_server_set_range(uint64_t base, uint64_t size)
{
	ranges[obc_server_number()] = (struct obp_range){ base, size };
}

bool obc_server_find(uint64_t addr, uint32_t *ret_number)
{
	for (uint32_t i = 0; n_servers > 1 && i < n_servers; i++)
		if (addr - ranges[i].base < ranges[i].size) {
			*ret_number = i;
			return true;
		}
	return false;
}

/* ---- threads ---- */

struct start {
	void *(*fn)(void *);
	void *argument;
	uint32_t server;
};

static void *run(void *user)
{
	struct start start = *(struct start *)user;

	free(user);
	obc_server_enter(start.server);
	obc_here.home = obc_here.context = start.server;
	return start.fn(start.argument);
}

bool obc_thread_start(void *(*fn)(void *), void *argument, size_t stack, pthread_t *ret_thread)
{
	struct start *start;

	if (n_servers == 1)
		return ob_thread_start(fn, argument, stack, ret_thread);
	start = malloc(sizeof *start);
	if (!start)
		return false;
	*start = (struct start){ fn, argument, obc_server_number() };
	if (ob_thread_start(run, start, stack, ret_thread))
		return true;
	free(start);
	return false;
}

/* ---- names ---- */

const char *obc_server_name(void)
{
	return server_name;
}

void obc_server_set_name(const char *url)
{
	strncpy(server_name, url, sizeof server_name - 1);
}
