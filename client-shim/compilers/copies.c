/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/compilers/copies.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef void *lookup_function(void *handle, const char *name);

/* What the assembly below gets in two registers. */
struct answer {
	void *symbol;
	long taken; /* 0: the C library's dlsym answers */
};

#define FOR_ASSEMBLY __attribute__((used, visibility("hidden")))

/* The next dlsym; the assembly jumps to it. */
extern lookup_function *obc_dlsym_next;
extern struct answer obc_dlsym_answer(void *handle, const char *name);

FOR_ASSEMBLY lookup_function *obc_dlsym_next;
static struct obc_copy copies[OBC_COPIES];
static unsigned n_copies;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * dlsym for all of the program. The C library's dlsym finds out who calls it by the return address,
 * on which RTLD_NEXT and RTLD_DEFAULT depend. So it is not called from here but jumped to, with the
 * registers and the stack as they were.
 */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	".cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call obc_dlsym_answer\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testq %rdx, %rdx\n"
	"	jz 1f\n"
	"	ret\n"
	"1:	jmpq *obc_dlsym_next(%rip)\n"
	".cfi_endproc\n"
	".size dlsym, . - dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	".cfi_startproc\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl obc_dlsym_answer\n"
	"	mov x2, x0\n"
	"	mov x3, x1\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	.cfi_restore 29\n"
	"	.cfi_restore 30\n"
	"	.cfi_def_cfa_offset 0\n"
	"	cbz x3, 1f\n"
	"	mov x0, x2\n"
	"	ret\n"
	"1:	adrp x16, obc_dlsym_next\n"
	"	ldr x16, [x16, #:lo12:obc_dlsym_next]\n"
	"	br x16\n"
	".cfi_endproc\n"
	".size dlsym, . - dlsym\n");
#endif

/* Other libraries look names up before this one is initialised, so that is done at the first call. */
static lookup_function *next_dlsym(void)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17" };
	lookup_function *next = __atomic_load_n(&obc_dlsym_next, __ATOMIC_ACQUIRE);

	for (size_t i = 0; !next && i < sizeof versions / sizeof *versions; i++) {
		void *found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);

		memcpy(&next, &found, sizeof next);
	}
	__atomic_store_n(&obc_dlsym_next, next, __ATOMIC_RELEASE);
	return next;
}

void *obc_dlsym(void *handle, const char *name)
{
	return next_dlsym()(handle, name);
}

const struct obc_copy *obc_copy_at(unsigned number)
{
	return &copies[number];
}

/* The library that holds this file. */
static bool is_own(const void *base)
{
	Dl_info own;

	return dladdr(&copies, &own) && base == own.dli_fbase;
}

/* The number of the copy that defines the symbol; OBC_COPIES: not one that can be had. */
static unsigned copy_number(const void *symbol)
{
	unsigned number;
	Dl_info info;

	if (!symbol || !dladdr(symbol, &info) || is_own(info.dli_fbase))
		return OBC_COPIES;
	pthread_mutex_lock(&lock);
	for (number = 0; number < n_copies; number++)
		if (copies[number].base == info.dli_fbase)
			break;
	if (number == n_copies && n_copies < OBC_COPIES) {
		void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);

		if (handle)
			copies[n_copies++] = (struct obc_copy){ info.dli_fbase, handle };
		else
			number = OBC_COPIES;
	}
	pthread_mutex_unlock(&lock);
	return number;
}

void *obc_copy_function(const struct obc_copy *copy, const char *name)
{
	static const char *const forms[] = { "%s", "__%s_12_0", "__%s_13_0", "__%s_14_0" };
	char versioned[96];
	void *found = NULL;

	for (size_t i = 0; !found && i < sizeof forms / sizeof *forms; i++) {
		snprintf(versioned, sizeof versioned, forms[i], name);
		found = next_dlsym()(copy->handle, versioned);
	}
	return found;
}

void *obc_library_of(const void *code, const char **ret_path)
{
	struct link_map *map = NULL;
	Dl_info info;

	*ret_path = "";
	if (!dladdr1(code, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !*map->l_name)
		return NULL;
	*ret_path = map->l_name;
	return dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
}

const struct obc_copy *obc_copy_of_caller(const char *name, const void *caller)
{
	struct obc_copy scope = { 0 };
	unsigned number = OBC_COPIES;
	const char *path;

	scope.handle = obc_library_of(caller, &path);
	if (scope.handle) {
		number = copy_number(obc_copy_function(&scope, name));
		dlclose(scope.handle);
	}
	if (number == OBC_COPIES) {
		/* the program itself, whose libraries are those that follow this one */
		scope.handle = RTLD_NEXT;
		number = copy_number(obc_copy_function(&scope, name));
	}
	return number < OBC_COPIES ? &copies[number] : NULL;
}

/* Whether name is `plain`, or that of a version: __nvJitLinkCreate_12_0. */
static bool name_is(const char *name, const char *plain)
{
	size_t n = strlen(plain);

	if (strcmp(name, plain) == 0)
		return true;
	return strncmp(name, "__", 2) == 0 && strncmp(name + 2, plain, n) == 0 &&
		name[2 + n] == '_' &&
		name[2 + n + 1 + strspn(name + 2 + n + 1, "0123456789_")] == 0;
}

static const struct obc_wrapped *wrapped_find(const char *name)
{
	const struct obc_wrapped *list;

	if (strncmp(name, "nvrtc", 5) == 0)
		list = obc_nvrtc_wrapped;
	else if (strncmp(name, "nvJitLink", 9) == 0 || strncmp(name, "__nvJitLink", 11) == 0)
		list = obc_nvjitlink_wrapped;
	else
		return NULL;
	while (list->name && !name_is(name, list->name))
		list++;
	return list->name ? list : NULL;
}

FOR_ASSEMBLY struct answer obc_dlsym_answer(void *handle, const char *name)
{
	lookup_function *next = next_dlsym();
	const struct obc_wrapped *wrapped = name ? wrapped_find(name) : NULL;
	unsigned number;
	Dl_info info;
	void *found;

	/* RTLD_NEXT asks for what comes after the caller, which may be a wrapper like this one. */
	if (!wrapped || handle == RTLD_NEXT)
		return (struct answer){ 0 };
	/* The C library would return the definition in this library, also if there is no other. */
	found = next(handle == RTLD_DEFAULT ? RTLD_NEXT : handle, name);
	if (found && dladdr(found, &info) && is_own(info.dli_fbase))
		found = next(RTLD_NEXT, name);
	number = copy_number(found);
	if (number < OBC_COPIES)
		memcpy(&found, &wrapped->thunks[number], sizeof found);
	return (struct answer){ found, 1 };
}
