/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_server: the servers that a program uses together, and the state that this library keeps once
 * for each of them (docs/adr/0047-several-servers.md).
 *
 * A file-level variable that is marked OBC_PER_SERVER lies in a section of its own. Server 0 uses
 * the variables themselves; each further server has a copy of the section, made before the first
 * session starts. OBC_HERE(variable) is the instance of the calling thread's current server:
 *
 *   section      | log | control | ... |      server 0, offset 0
 *   copy         | log | control | ... |      server 1, offset = copy - section
 *
 * A thread of the program has the server of its current context (obf_backend.current); without a
 * context, and in threads of this library, the server that the thread was started for. A pointer
 * into per-server state is valid in any thread. With one server the offset is always 0.
 */
#ifndef OBC_SERVER_H
#define OBC_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"

#define OBC_SERVERS_MAX 8u /* servers that one program uses together */

/*
 * For a definition without pointers to other per-server state. Such pointers would be those of
 * server 0.
 */
#define OBC_PER_SERVER __attribute__((section("obc_server")))

struct obc_here {
	ptrdiff_t offset; /* bytes from a variable of the section to its instance */
	uint32_t number;  /* of the current server */
	uint32_t home;    /* the thread's server without a context */
	uint32_t context; /* the server of the thread's current context, or `home` */
	uint32_t choice;  /* see OBC_CHOOSES_SERVER */
};

extern _Thread_local struct obc_here obc_here;

static inline void *obc_here_at(void *first)
{
	/* The compiler must not assume that the result points into the variable of server 0. */
	__asm__("" : "+r"(first));
	return (char *)first + obc_here.offset;
}

#define OBC_HERE(variable) (*(__typeof__(variable) *)obc_here_at(&(variable)))

static inline uint32_t obc_server_number(void)
{
	return obc_here.number;
}

/*
 * Makes the state of servers 1 to n - 1, each equal to that of server 0, which must not have been
 * used. False: out of memory. Before the library has threads. Called again with another number in a
 * forked child: the earlier states are dropped.
 */
bool obc_servers_make(uint32_t n);
/*
 * The program gets another number of servers, of which only server 0 has been used. False: out of
 * memory, or there was one only and there would be several.
 */
bool obc_servers_change(uint32_t n);
uint32_t obc_servers_count(void); /* at least 1 */

/* The calling thread uses this server from now on. Returns the number of the one before. */
uint32_t obc_server_enter(uint32_t number);
/* Called by obc_server_enter in the thread, before and after the change. */
void obc_server_on_switch(void (*fn)(uint32_t from, uint32_t to));

/* The thread's current context is of this server from now on; enters it. */
void obc_server_enter_context(uint32_t number);
/*
 * Whether records of the current server are executed in the thread's current context. False: it is
 * of another server, and the records name no context or concern none.
 */
static inline bool obc_server_has_context(void)
{
	return obc_here.number == obc_here.context;
}

/* Enters a server until the end of the block. */
#define OBC_AT_SERVER(number)                                                          \
	__attribute__((cleanup(obc_server_back), unused)) uint32_t obc_server_before = \
		obc_server_enter(number)
void obc_server_back(const uint32_t *before);

/*
 * For generated calls, whose arguments tell the server: within the block, obc_server_choose enters
 * the server of an argument. CUDA_ERROR_NOT_SUPPORTED: an earlier argument belongs to
 * another server; one line is logged.
 */
struct obc_choice_before {
	uint32_t number, choice;
};
struct obc_choice_before obc_server_choice_begin(void);
void obc_server_choice_end(const struct obc_choice_before *before);
#define OBC_CHOOSES_SERVER()                           \
	__attribute__((cleanup(obc_server_choice_end), \
		unused)) struct obc_choice_before obc_choice_before = obc_server_choice_begin()
CUresult obc_server_choose(uint32_t number);
/* The same for an address; one that belongs to no server chooses none. */
CUresult obc_server_choose_at(uint64_t addr);

/* The device addresses of the current server; set while it starts. */
void obc_server_set_range(uint64_t base, uint64_t size);
/* The server of an address. False: of none, or there is one server only. */
bool obc_server_find(uint64_t addr, uint32_t *ret_number);

/* As ob_thread_start; the thread uses the calling thread's server. */
bool obc_thread_start(void *(*fn)(void *), void *argument, size_t stack, pthread_t *ret_thread);

/* The server's address, for messages; "" with one server. Valid until exit. */
const char *obc_server_name(void);
void obc_server_set_name(const char *url);

#endif
