/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <string.h>

#include "base/cause.h"
#include "tests/test.h"

TEST(code_and_text_are_recorded)
{
	struct ob_cause cause = { .system = EIO };

	CHECK_INT(ob_cause_set(&cause, OB_ERR_URL, "port %u is no port", 70000u), OB_ERR_URL);
	CHECK_INT(cause.code, OB_ERR_URL);
	CHECK_INT(cause.system, 0);
	CHECK_STR(cause.text, "port 70000 is no port");
}

TEST(a_system_call_adds_its_error)
{
	struct ob_cause cause;
	char want[128];

	CHECK_INT(
		ob_cause_set_system(&cause, OB_ERR_IO, ENOENT, "cannot open %s", "/x"), OB_ERR_IO);
	CHECK_INT(cause.code, OB_ERR_IO);
	CHECK_INT(cause.system, ENOENT);
	snprintf(want, sizeof want, "cannot open /x: %s", strerror(ENOENT));
	CHECK_STR(cause.text, want);
}

/* A caller that knows more puts it before the text. */
TEST(a_text_may_contain_the_one_before)
{
	struct ob_cause cause;

	ob_cause_set_system(&cause, OB_ERR_CONNECT, ECONNREFUSED, "cannot listen");
	ob_cause_set(&cause, OB_ERR_ARGUMENT, "address %s: %s", "a", cause.text);
	CHECK(strncmp(cause.text, "address a: cannot listen: ", 26) == 0);
	CHECK_INT(cause.code, OB_ERR_ARGUMENT);
}

TEST(no_carrier_and_texts_that_are_too_long)
{
	char longer[2 * OB_CAUSE_TEXT];
	struct ob_cause cause;

	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	CHECK_INT(ob_cause_set(NULL, OB_ERR_LIMIT, "%s", longer), OB_ERR_LIMIT);
	CHECK_INT(ob_cause_set_system(NULL, OB_ERR_IO, EIO, "%s", longer), OB_ERR_IO);
	ob_cause_set(&cause, OB_ERR_LIMIT, "%s", longer);
	CHECK_INT(strlen(cause.text), OB_CAUSE_TEXT - 1);
	longer[OB_CAUSE_TEXT - 1] = '\0';
	ob_cause_set(&cause, OB_ERR_LIMIT, "%s", longer);
	CHECK_STR(cause.text, longer); /* one byte less fits */
	memset(longer, 'x', sizeof longer - 1);
	ob_cause_set_system(&cause, OB_ERR_IO, EIO, "%s", longer);
	CHECK(strstr(cause.text, strerror(EIO))); /* the system's text is never cut */
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
