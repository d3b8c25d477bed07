/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/admission/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "protocol/control.h"
#include "server/admission/address.h"
#include "server/common/options.h"
#include "transport/tls.h"

bool obs_auth_origin(int fd, struct obs_identity *ret)
{
	struct sockaddr_storage peer;
	socklen_t length = sizeof peer;
	char host[64], port[8];

	*ret = (struct obs_identity){
		.who = "anonymous", .from = "unknown", .scope = OBT_SCOPE_USE
	};
	if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0)
		return false;
	if (peer.ss_family == AF_UNIX) {
		struct ucred peer_user;

		length = sizeof peer_user;
		ret->local = true;
		snprintf(ret->from, sizeof ret->from, "unix");
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer_user, &length) == 0)
			snprintf(ret->who, sizeof ret->who, "uid %u", (unsigned)peer_user.uid);
		return true;
	}
	if (getnameinfo((struct sockaddr *)&peer, length, host, sizeof host, port, sizeof port,
		    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(ret->from, sizeof ret->from,
			peer.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	ret->local = obs_address_loopback(&peer);
	return false;
}

/*
 * The token file is read again when it has changed. A change within the timestamp's granularity
 * after a reading is invisible, so tokens from a recently changed file are not cached.
 */
#define FILE_YOUNG_S 2

static struct {
	struct obt_tokens tokens;
	struct stat seen;
	bool kept;
} file;

static bool file_same(const struct stat *now)
{
	return file.kept && now->st_ino == file.seen.st_ino && now->st_dev == file.seen.st_dev &&
		now->st_size == file.seen.st_size &&
		now->st_mtim.tv_sec == file.seen.st_mtim.tv_sec &&
		now->st_mtim.tv_nsec == file.seen.st_mtim.tv_nsec;
}

static int open_plainly(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC);
}

int (*obs_auth_open_tokens)(const char *path) = open_plainly;

static bool tokens_load(const char *path, char *ret_why, size_t why_size)
{
	struct obt_tokens fresh = { 0 };
	struct stat now = { 0 };
	int fd = obs_auth_open_tokens(path);
	bool there = fd >= 0 && fstat(fd, &now) == 0;

	if (fd < 0 && errno != ENOENT) {
		snprintf(ret_why, why_size, "%.180s: %s", path, strerror(errno));
		return false;
	}
	if (there && file_same(&now)) {
		close(fd);
		return true;
	}
	if (fd >= 0 && !obt_tokens_read_fd(fd, path, &fresh, ret_why, why_size))
		return false;
	obt_tokens_fini(&file.tokens);
	file.tokens = fresh;
	file.seen = now;
	file.kept = there && time(NULL) - now.st_mtim.tv_sec > FILE_YOUNG_S;
	return true;
}

bool obs_auth_open(const struct obs_options *options, char *ret_why, size_t why_size)
{
	return !options->tokens || tokens_load(options->tokens, ret_why, why_size);
}

static bool token_check(const char *path, const char *text, struct obs_identity *ret, char *ret_why,
	size_t why_size)
{
	const struct obt_token *token;
	const char *why = NULL;
	char problem[256];

	if (!tokens_load(path, problem, sizeof problem)) {
		ob_error("tokens: %s", problem); /* for the operator; the client gets less detail */
		snprintf(ret_why, why_size, "the server cannot read its tokens; tell its operator");
		return false;
	}
	token = obt_tokens_check(&file.tokens, text, (uint64_t)time(NULL), &why);
	if (!token) {
		snprintf(ret_why, why_size, "%s", why);
		return false;
	}
	snprintf(ret->who, sizeof ret->who, "token %s %s", token->id, token->name);
	ret->proved = true;
	ret->scope = token->scope;
	ret->allow = token->allow;
	return true;
}

bool obs_auth_check(const struct obs_options *options, const struct obt_stream *stream,
	const struct obp_hello *hello, struct obs_identity *ret, char *ret_why, size_t why_size)
{
	const char *certificate_why;
	char name[OBT_TLS_NAME_MAX];

	if (obs_auth_origin(stream->fd, ret) || (!options->tokens && !options->tls_client_ca))
		return true;
	if (options->tls_client_ca &&
		obt_tls_client_name(stream, name, sizeof name, &certificate_why)) {
		snprintf(ret->who, sizeof ret->who, "certificate %s", name);
		ret->proved = true;
		return true;
	}
	if (options->tokens && hello->token[0])
		return token_check(options->tokens, hello->token, ret, ret_why, why_size);
	if (options->tls_client_ca && obt_tls_started(stream) && certificate_why)
		snprintf(ret_why, why_size, "the client's certificate is not accepted: %s",
			certificate_why);
	else if (options->tokens && options->tls_client_ca)
		snprintf(ret_why, why_size,
			"this server wants a token (OUTBOARD_TOKEN) or a client certificate "
			"(OUTBOARD_TLS_CERT)");
	else if (options->tokens)
		snprintf(ret_why, why_size,
			"this server wants a token; set OUTBOARD_TOKEN to one from its operator");
	else
		snprintf(ret_why, why_size,
			"this server wants a client certificate; set OUTBOARD_TLS_CERT and "
			"OUTBOARD_TLS_KEY");
	return false;
}
