/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * System calls whose buffers are managed or mapped memory that a kernel has used: files, pipes, sockets,
 * streams of the C library. Before each call a kernel changes all of the memory.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"
#include "../waiting.h"

#define SIZE  (5u << 20)  /* bytes; more than one piece of a file */
#define SMALL (64u << 10) /* bytes */

extern "C" ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
extern "C" size_t __fread_chk(void *p, size_t room, size_t size, size_t n, FILE *file);

static __global__ void change(unsigned char *p, size_t n, int by)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = (unsigned char)(p[i] + by);
}

/* The memory is on the device when this returns. */
static void change_all(unsigned char *p, size_t n, int by)
{
	change<<<64, 128>>>(p, n, by);
	CU(cudaDeviceSynchronize());
}

static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i * 31 + i / 4096);
}

static void set_all(unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = byte_at(i);
}

/* Whether p[i] is byte_at(i) + by from `first` on. */
static bool all(const unsigned char *p, size_t n, int by, size_t first = 0)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (unsigned char)(byte_at(first + i) + by))
			return false;
	return true;
}

static void say(const char *name, bool ok)
{
	printf("%s: %s\n", name, ok ? "ok" : "WRONG");
	OK(ok);
}

/* The call transfers `size` bytes. */
static bool moves(ssize_t got, size_t size)
{
	if (got != (ssize_t)size)
		fprintf(stderr, "%zd bytes of %zu, errno %d\n", got, size, got < 0 ? errno : 0);
	return got == (ssize_t)size;
}

static void files(unsigned char *p, unsigned char *plain)
{
	FILE *file = tmpfile();
	int fd = fileno(file);
	struct iovec parts[3];
	bool ok;

	set_all(p, SIZE);
	change_all(p, SIZE, 1);
	ok = moves(write(fd, p, SIZE), SIZE) && moves(pread(fd, plain, SIZE, 0), SIZE) &&
		all(plain, SIZE, 1);
	say("write", ok);
	lseek(fd, 0, SEEK_SET);
	change_all(p, SIZE, 5);
	ok = moves(read(fd, p, SIZE), SIZE) && all(p, SIZE, 1);
	ok &= moves(read(fd, p, 1), 0);
	say("read", ok);
	change_all(p, SIZE, 2);
	ok = moves(pwrite(fd, p + 100, 4500000u, 100), 4500000u) &&
		moves(pread(fd, plain, SIZE, 0), SIZE) && all(plain, 100, 1) &&
		all(plain + 100, 4500000u, 3, 100) &&
		all(plain + 100 + 4500000u, 1000, 1, 100 + 4500000u);
	say("pwrite", ok);
	change_all(p, SMALL, 1);
	ok = moves(pread(fd, p + 5000, 3000, 5000), 3000) && all(p + 5000, 3000, 3, 5000) &&
		all(p, 5000, 4) && all(p + 8000, 8000, 4, 8000);
	say("pread", ok);
	set_all(p, SIZE);
	change_all(p, SIZE, 5);
	parts[0] = { p, 10000 };
	parts[1] = { plain, 5000 };
	parts[2] = { p + 15000, 70000 };
	lseek(fd, 0, SEEK_SET);
	memset(plain, 7, 5000);
	ok = moves(writev(fd, parts, 3), 85000);
	memset(plain, 0, 5000);
	change_all(p, SIZE, 1);
	ok &= moves(preadv(fd, parts, 3, 0), 85000) && all(p, 10000, 5) && plain[0] == 7 &&
		plain[4999] == 7 && all(p + 10000, 5000, 6, 10000) &&
		all(p + 15000, 70000, 5, 15000) && all(p + 85000, 100, 6, 85000);
	say("writev, preadv", ok);
	lseek(fd, 0, SEEK_SET);
	change_all(p, SIZE, 1);
	ok = moves(__read_chk(fd, p, 10000, SIZE), 10000) && all(p, 10000, 5);
	change_all(p, SIZE, 1);
	ok &= moves(pwritev(fd, parts, 1, 20), 10000) && moves(pread(fd, plain, 10020, 0), 10020) &&
		all(plain, 20, 5) && all(plain + 20, 10000, 6);
	lseek(fd, 0, SEEK_SET);
	change_all(p, SIZE, 0);
	ok &= moves(readv(fd, parts, 1), 10000) && all(p, 20, 5) && all(p + 20, 9980, 6);
	say("read with a check, pwritev, readv", ok);
	fclose(file);
}

static void streams(unsigned char *p, unsigned char *plain)
{
	FILE *file = tmpfile();
	bool ok;

	set_all(p, SIZE);
	change_all(p, SIZE, 3);
	ok = fwrite(p, 1000, SIZE / 1000, file) == SIZE / 1000 && fwrite(p, 7, 3, file) == 3;
	rewind(file);
	ok &= fread(plain, 1, SIZE / 1000 * 1000, file) == SIZE / 1000 * 1000 &&
		all(plain, SIZE / 1000 * 1000, 3) && fread(plain, 7, 5, file) == 3 && feof(file) &&
		all(plain, 21, 3);
	say("fwrite", ok);
	rewind(file);
	change_all(p, SIZE, 1);
	ok = fread(p, 4096, SIZE / 4096, file) ==
		SIZE / 4096 - 1 + (SIZE / 1000 * 1000 + 21) / SIZE;
	ok &= all(p, SIZE / 1000 * 1000, 3);
	rewind(file);
	change_all(p, SIZE, 1);
	ok &= __fread_chk(p, SIZE, 1, 100000, file) == 100000 && all(p, 100000, 3) &&
		all(p + 100000, 1000, 4, 100000);
	change_all(p, SIZE, 1);
	ok &= fread_unlocked(p, 1, 100000, file) == 100000 && all(p, 100000, 3, 100000);
	ok &= fread(p, 0, 5, file) == 0;
	say("fread", ok);
	fclose(file);
}

static void pipes(unsigned char *p)
{
	unsigned char bytes[3000];
	int ends[2];
	bool ok;

	CU(pipe(ends) == 0 ? cudaSuccess : cudaErrorUnknown);
	set_all(p, SMALL);
	change_all(p, SMALL, 9);
	ok = moves(write(ends[1], p, 3000), 3000);
	change_all(p, SMALL, 1);
	/* What there is, although there is room for more. */
	ok &= moves(read(ends[0], p, SMALL), 3000) && all(p, 3000, 9) &&
		all(p + 3000, 100, 10, 3000);
	change_all(p, SMALL, 1);
	ok &= moves(write(ends[1], p, 3000), 3000) && moves(read(ends[0], bytes, 3000), 3000) &&
		all(bytes, 3000, 10);
	errno = 0;
	change_all(p, SMALL, 1);
	ok &= read(-1, p, 10) == -1 && errno == EBADF && all(p, 10, 11);
	say("pipes", ok);
	close(ends[0]);
	close(ends[1]);
}

static void sockets(unsigned char *p, int type, const char *name)
{
	struct iovec parts[2] = { { p, 2000 }, { p + 6000, 1000 } };
	struct msghdr message = {};
	int ends[2];
	bool ok;

	CU(socketpair(AF_UNIX, type, 0, ends) == 0 ? cudaSuccess : cudaErrorUnknown);
	message.msg_iov = parts;
	message.msg_iovlen = 2;
	set_all(p, SMALL);
	change_all(p, SMALL, 1);
	ok = moves(send(ends[0], p, 5000, 0), 5000);
	change_all(p, SMALL, 1);
	ok &= moves(recv(ends[1], p, 10000, 0), 5000) && all(p, 5000, 1) &&
		all(p + 5000, 9, 2, 5000);
	change_all(p, SMALL, 1);
	ok &= moves(sendto(ends[0], p, 5000, 0, NULL, 0), 5000);
	change_all(p, SMALL, 1);
	ok &= moves(recvfrom(ends[1], p, 5000, MSG_PEEK, NULL, NULL), 5000) && all(p, 5000, 2);
	change_all(p, SMALL, 1);
	ok &= moves(recvfrom(ends[1], p, 5000, 0, NULL, NULL), 5000) && all(p, 5000, 2);
	set_all(p, SMALL);
	change_all(p, SMALL, 1);
	ok &= moves(sendmsg(ends[0], &message, 0), 3000);
	change_all(p, SMALL, 1);
	message.msg_flags = 77;
	ok &= moves(recvmsg(ends[1], &message, 0), 3000) && message.msg_flags == 0 &&
		message.msg_iov == parts && all(p, 2000, 1) && all(p + 2000, 4000, 2, 2000) &&
		all(p + 6000, 1000, 1, 6000) && all(p + 7000, 10, 2, 7000);
	if (type == SOCK_DGRAM) {
		change_all(p, SMALL, 1);
		ok &= moves(send(ends[0], p, 5000, 0), 5000);
		change_all(p, SMALL, 1);
		/* The length of the message, of which the first part comes. */
		ok &= moves(recv(ends[1], p, 100, MSG_TRUNC), 5000) && all(p, 100, 2) &&
			all(p + 100, 1000, 3, 100);
	}
	say(name, ok);
	close(ends[0]);
	close(ends[1]);
}

struct waiter {
	int fd;
	unsigned char *p;
	ssize_t got;
};

static void *wait_for_bytes(void *user)
{
	struct waiter *waiter = (struct waiter *)user;

	waiter->got = read(waiter->fd, waiter->p, 1000);
	return NULL;
}

/* A thread waits in a call while kernels use the memory; another one is cancelled in it. */
static void waiting(unsigned char *p)
{
	struct waiter waiter = { 0, p, 0 };
	unsigned char bytes[1000];
	pthread_t thread;
	void *end = NULL;
	int ends[2];
	bool ok;

	CU(pipe(ends) == 0 ? cudaSuccess : cudaErrorUnknown);
	waiter.fd = ends[0];
	set_all(p, SMALL);
	CU(pthread_create(&thread, NULL, wait_for_bytes, &waiter) == 0 ? cudaSuccess
								       : cudaErrorUnknown);
	for (int i = 0; i < 20; i++)
		change_all(p, SMALL, 1);
	set_all(bytes, sizeof bytes);
	ok = moves(write(ends[1], bytes, sizeof bytes), sizeof bytes);
	pthread_join(thread, NULL);
	ok &= moves(waiter.got, 1000) && all(p, 1000, 0) && all(p + 1000, 1000, 20, 1000);
	change_all(p, SMALL, 1);
	CU(pthread_create(&thread, NULL, wait_for_bytes, &waiter) == 0 ? cudaSuccess
								       : cudaErrorUnknown);
	pthread_cancel(thread);
	pthread_join(thread, &end);
	ok &= end == PTHREAD_CANCELED && all(p, 1000, 1);
	say("waiting threads", ok);
	close(ends[0]);
	close(ends[1]);
}

static void everything(unsigned char *p, unsigned char *plain)
{
	files(p, plain);
	streams(p, plain);
	pipes(p);
	sockets(p, SOCK_STREAM, "stream sockets");
	sockets(p, SOCK_DGRAM, "datagram sockets");
	waiting(p);
}

static void CUDART_CB line_add(void *file)
{
	let_pass(50000, "the call that writes to the file comes meanwhile");
	fputs("a line\n", (FILE *)file);
}

/* A function in a stream uses the file while this thread writes to it; either may come first. */
static void function_with_file(unsigned char *p, unsigned char *plain)
{
	FILE *file = tmpfile();
	unsigned char *bytes;

	set_all(p, SMALL);
	change_all(p, SMALL, 1);
	CU(cudaLaunchHostFunc(0, line_add, file));
	OK(fwrite(p, 1, SMALL, file) == SMALL);
	CU(cudaDeviceSynchronize());
	rewind(file);
	OK(fread(plain, 1, SMALL + 7, file) == SMALL + 7);
	bytes = memcmp(plain, "a line\n", 7) == 0 ? plain + 7 : plain;
	say("function with a file",
		all(bytes, SMALL, 1) &&
			memcmp(bytes == plain ? plain + SMALL : plain, "a line\n", 7) == 0);
	fclose(file);
}

int main(void)
{
	unsigned char *managed, *mapped, *plain = (unsigned char *)malloc(SIZE);
	int fd = -1;

	CU(cudaMallocManaged((void **)&managed, SIZE));
	everything(managed, plain);
	CU(cudaHostAlloc((void **)&mapped, SIZE, cudaHostAllocMapped));
	puts("mapped memory");
	everything(mapped, plain);
	function_with_file(mapped, plain);
	CU(cudaFreeHost(mapped));
	CU(cudaFree(managed));
	OK(read(fd, plain, 10) == -1 && errno == EBADF);
	free(plain);
	return verdict("managed_io");
}
