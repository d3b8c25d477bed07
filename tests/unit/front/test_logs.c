/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuLogs*: what is kept, what callbacks get, and wrong uses. */
#include <unistd.h>

#include "base/log.h"
#include "front.h"

struct seen {
	int n;
	CUlogLevel level;
	char text[200];
};

static void see(void *user, CUlogLevel level, char *message, size_t length)
{
	struct seen *seen = user;

	seen->n++;
	seen->level = level;
	snprintf(seen->text, sizeof seen->text, "%s", message);
	CHECK_INT(strlen(message), length);
	message[0] = '?'; /* the program's copy */
	if (seen->n < 10)
		ob_warn("inside number %d", seen->n);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

TEST(callbacks)
{
	struct seen one = { 0 }, two = { 0 };
	CUlogsCallbackHandle a, b;

	fake_attach(NULL, 0);
	OK(obf_cuLogsRegisterCallback(see, &one, &a));
	OK(obf_cuLogsRegisterCallback(see, &two, &b));
	CHECK(a != b);
	ob_error("something %d", 5);
	/* what the callback logs is kept and does not call it again */
	CHECK(one.n == 1 && two.n == 1 && one.level == CU_LOG_LEVEL_ERROR);
	CHECK(ends_with(one.text, "something 5") && ends_with(two.text, "something 5"));
	ob_info("not a warning");
	OK(obf_cuLogsUnregisterCallback(a));
	CHECK_INT(obf_cuLogsUnregisterCallback(a), CUDA_ERROR_INVALID_VALUE);
	ob_warn("another");
	CHECK(one.n == 1 && two.n == 2 && two.level == CU_LOG_LEVEL_WARNING);
	OK(obf_cuLogsUnregisterCallback(b));
	CHECK_INT(obf_cuLogsUnregisterCallback(NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuLogsRegisterCallback(NULL, NULL, &a), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuLogsRegisterCallback(see, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(too_many_callbacks)
{
	CUlogsCallbackHandle handle;
	int n = 0;

	fake_attach(NULL, 0);
	while (obf_cuLogsRegisterCallback(see, NULL, &handle) == CUDA_SUCCESS && n < 1000)
		n++;
	CHECK_INT(n, 16);
}

TEST(dumps)
{
	char text[30000], path[] = "/tmp/outboard-logs-XXXXXX", file_text[1000];
	unsigned begin, at;
	size_t size;
	FILE *file;
	int fd;

	fake_attach(NULL, 0);
	OK(obf_cuLogsCurrent(&begin, 0));
	ob_warn("first %040d", 0);
	ob_warn("second");
	at = begin;
	size = sizeof text;
	OK(obf_cuLogsDumpToMemory(&at, text, &size, 0));
	CHECK(strlen(text) == size && strstr(text, "first 0") && ends_with(text, "second\n"));
	CHECK_INT(at, begin + 2);
	size = sizeof text;
	OK(obf_cuLogsDumpToMemory(&at, text, &size, 0));
	CHECK(size == 0 && text[0] == '\0');

	/* room for one line and for the remark that another is missing */
	at = begin;
	size = 70;
	OK(obf_cuLogsDumpToMemory(&at, text, &size, 0));
	CHECK(size < 70 && text[0] == '[' && !strstr(text, "first") && strstr(text, "second\n"));
	at = begin;
	size = 5;
	CHECK_INT(obf_cuLogsDumpToMemory(&at, text, &size, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK(size == 0 && at == begin);

	fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	OK(obf_cuLogsDumpToFile(NULL, path, 0));
	file = fopen(path, "r");
	file_text[fread(file_text, 1, sizeof file_text - 1, file)] = '\0';
	fclose(file);
	unlink(path);
	CHECK(strstr(file_text, "first 0") && ends_with(file_text, "second\n"));
	CHECK_INT(obf_cuLogsDumpToFile(NULL, "/no/such/folder/x", 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuLogsDumpToFile(NULL, path, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuLogsCurrent(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(obf_cuLogsDumpToMemory(NULL, NULL, &size, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(old_lines_go)
{
	char text[30000];
	size_t size = sizeof text;

	fake_attach(NULL, 0);
	for (int i = 0; i < 250; i++)
		ob_warn("line %d", i);
	OK(obf_cuLogsDumpToMemory(NULL, text, &size, 0));
	CHECK(text[0] == '[' && !strstr(text, "line 149\n") && strstr(text, "line 150\n") &&
		ends_with(text, "line 249\n"));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
