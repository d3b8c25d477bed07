/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * liboutboard-compilers.so: NVRTC and nvJitLink for a device that runs PTX only. The two libraries
 * make machine code for the device that the program names. With this library, which `outboard run`
 * preloads if the server's device is the software device, they return the PTX instead (ADR 39). It
 * also lowers the compute capability that Triton and PyTorch see (capability.h).
 *
 * It defines the functions of the two libraries that return machine code. Programs that link NVRTC
 * get these definitions from the loader. Programs that open it (dlopen) get them from dlsym, which
 * is defined here as well.
 *
 * A process may hold several copies of NVRTC: its own, that of CuPy, that of PyTorch. A handle
 * belongs to the copy that made it. So each function exists once for each copy, and dlsym returns
 * the one for the copy in which the name was looked up. A call of a linked function goes to the copy
 * that the caller's own library was linked with. A copy that was seen stays loaded.
 *
 *   program ── dlsym(handle, "nvrtcGetCUBIN") ──> nvrtcGetCUBIN_1 ──┐
 *   libX    ── call ──> nvrtcGetCUBIN (looks up libX's copy) ───────┴──> nvrtcGetCUBIN_on(copy, …)
 *
 * Any thread.
 */
#ifndef OBC_COPIES_H
#define OBC_COPIES_H

#include <stddef.h>

#define OBC_COPIES 4 /* of one process, NVRTC and nvJitLink together; further ones are left alone */

struct obc_copy {
	const void *base; /* where it is loaded */
	void *handle;     /* of dlopen; never closed */
};

/* One function that is replaced. */
struct obc_wrapped {
	const char *name;
	void (*thunks[OBC_COPIES])(void); /* one for each copy */
};

/* The functions of nvrtc.c and nvjitlink.c; the last has no name. */
extern const struct obc_wrapped obc_nvrtc_wrapped[], obc_nvjitlink_wrapped[];

/*
 * The library that the code belongs to, as a handle to close. NULL: it belongs to the program.
 * ret_path: the library's file, valid while it is loaded; "" for the program.
 */
void *obc_library_of(const void *code, const char **ret_path);
/* The copy of that number, which a thunk is for. */
const struct obc_copy *obc_copy_at(unsigned number);
/*
 * The copy that the code at `caller` is linked with, for a function that the loader has bound to this
 * library. NULL: there is none, or there are too many.
 */
const struct obc_copy *obc_copy_of_caller(const char *name, const void *caller);
/*
 * The copy's own function of that name. NULL: it has none. nvJitLink's functions also exist with a
 * version in their name; any of them is taken.
 */
void *obc_copy_function(const struct obc_copy *copy, const char *name);
/* The dlsym that follows this library's own. */
void *obc_dlsym(void *handle, const char *name);

#define OBC_EXPORT         __attribute__((visibility("default")))
#define OBC_ARGUMENTS(...) __VA_ARGS__
/*
 * Defines the thunks of a function, whose work is done by name_on(copy, parameters), and the function
 * itself. missing: what it returns if no copy is found.
 */
#define OBC_THUNK(name, number, parameters, arguments)                          \
	static int name##_##number(OBC_ARGUMENTS parameters)                    \
	{                                                                       \
		return name##_on(obc_copy_at(number), OBC_ARGUMENTS arguments); \
	}
#define OBC_WRAP(name, missing, parameters, arguments)                              \
	OBC_THUNK(name, 0, parameters, arguments)                                   \
	OBC_THUNK(name, 1, parameters, arguments)                                   \
	OBC_THUNK(name, 2, parameters, arguments)                                   \
	OBC_THUNK(name, 3, parameters, arguments)                                   \
	OBC_EXPORT int name(OBC_ARGUMENTS parameters);                              \
	OBC_EXPORT int name(OBC_ARGUMENTS parameters)                               \
	{                                                                           \
		const struct obc_copy *copy =                                       \
			obc_copy_of_caller(#name, __builtin_return_address(0));     \
                                                                                    \
		return copy ? name##_on(copy, OBC_ARGUMENTS arguments) : (missing); \
	}
#define OBC_ENTRY(name)                                                            \
	{                                                                          \
#name,                                                             \
		{                                                                  \
			(void (*)(void)) name##_0, (void (*)(void))name##_1,       \
				(void (*)(void))name##_2, (void (*)(void))name##_3 \
		}                                                                  \
	}

#endif
