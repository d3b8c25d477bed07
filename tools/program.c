/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tools/program.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define HEADERS_MAX 128u  /* program headers that are read */
#define DYNAMIC_MAX 4096u /* entries of the dynamic section */
#define NAME_BYTES  256u

/* As execvp: a name without a slash is searched for in PATH. */
static void find(const char *command, char *ret_path)
{
	const char *path = getenv("PATH");
	struct stat st;

	snprintf(ret_path, OBX_PROGRAM_PATH, "%s", command);
	if (strchr(command, '/'))
		return;
	for (const char *at = path ? path : "/bin:/usr/bin"; at;
		at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		int n = (int)strcspn(at, ":");
		char joined[OBX_PROGRAM_PATH];

		if (snprintf(joined, sizeof joined, "%.*s%s%s", n, at, n ? "/" : "", command) <
				(int)sizeof joined &&
			stat(joined, &st) == 0 && S_ISREG(st.st_mode) &&
			access(joined, X_OK) == 0) {
			memcpy(ret_path, joined, sizeof joined);
			return;
		}
	}
}

static bool read_at(int fd, void *ret, size_t size, uint64_t at)
{
	return at < INT64_MAX && pread(fd, ret, size, (off_t)at) == (ssize_t)size;
}

/* A string of at most NAME_BYTES - 1 bytes. */
static bool read_name(int fd, char ret[NAME_BYTES], uint64_t at)
{
	ssize_t n = at < INT64_MAX ? pread(fd, ret, NAME_BYTES - 1, (off_t)at) : -1;

	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

struct elf {
	int fd;
	Elf64_Phdr headers[HEADERS_MAX];
	unsigned n;
};

/* Returns the file offset of an address of the program; UINT64_MAX: not in the file. */
static uint64_t offset_of(const struct elf *elf, uint64_t address)
{
	for (unsigned i = 0; i < elf->n; i++) {
		const Elf64_Phdr *h = &elf->headers[i];

		if (h->p_type == PT_LOAD && address - h->p_vaddr < h->p_filesz)
			return h->p_offset + (address - h->p_vaddr);
	}
	return UINT64_MAX;
}

static bool is_sanitizer(const char *name)
{
	return strncmp(name, "libasan.so", 10) == 0 || strncmp(name, "libclang_rt.asan", 16) == 0;
}

static bool needs_sanitizer(const struct elf *elf, const Elf64_Phdr *dynamic)
{
	uint64_t strings = UINT64_MAX;
	unsigned n = dynamic->p_filesz / sizeof(Elf64_Dyn) < DYNAMIC_MAX
		? (unsigned)(dynamic->p_filesz / sizeof(Elf64_Dyn))
		: DYNAMIC_MAX;
	char name[NAME_BYTES];
	Elf64_Dyn entry;

	for (unsigned i = 0; i < n &&
		read_at(elf->fd, &entry, sizeof entry, dynamic->p_offset + i * sizeof entry);
		i++)
		if (entry.d_tag == DT_STRTAB)
			strings = offset_of(elf, entry.d_un.d_ptr);
	if (strings == UINT64_MAX)
		return false;
	for (unsigned i = 0; i < n &&
		read_at(elf->fd, &entry, sizeof entry, dynamic->p_offset + i * sizeof entry);
		i++)
		if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < UINT32_MAX &&
			read_name(elf->fd, name, strings + entry.d_un.d_val) && is_sanitizer(name))
			return true;
	return false;
}

enum obx_program obx_program_look(const char *command, char *ret_path)
{
	const Elf64_Phdr *interpreter = NULL, *dynamic = NULL;
	struct elf elf = { .n = 0 };
	char name[NAME_BYTES];
	Elf64_Ehdr head;

	find(command, ret_path);
	OB_CLEANUP(ob_closep) int fd = open(ret_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || !read_at(fd, &head, sizeof head, 0) ||
		memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return OBX_PROGRAM_PLAIN;
	if (head.e_ident[EI_CLASS] == ELFCLASS32)
		return OBX_PROGRAM_NARROW;
	elf.fd = fd;
	for (; elf.n < head.e_phnum && elf.n < HEADERS_MAX &&
		head.e_phentsize == sizeof elf.headers[0];
		elf.n++) {
		Elf64_Phdr *h = &elf.headers[elf.n];

		if (!read_at(fd, h, sizeof *h, head.e_phoff + elf.n * sizeof *h))
			return OBX_PROGRAM_PLAIN;
		if (h->p_type == PT_INTERP)
			interpreter = h;
		else if (h->p_type == PT_DYNAMIC)
			dynamic = h;
	}
	if (!elf.n)
		return OBX_PROGRAM_PLAIN;
	if (!interpreter)
		return OBX_PROGRAM_STATIC;
	if (read_name(fd, name, interpreter->p_offset) && strstr(name, "ld-musl"))
		return OBX_PROGRAM_MUSL;
	return dynamic && needs_sanitizer(&elf, dynamic) ? OBX_PROGRAM_SANITIZER
							 : OBX_PROGRAM_PLAIN;
}
