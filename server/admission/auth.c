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
	struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
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

static enum ob_err tokens_load(const char *path, struct ob_cause *ret_cause)
{
	struct obt_tokens fresh = { 0 };
	struct stat now = { 0 };
	int fd = obs_auth_open_tokens(path);
	bool there = fd >= 0 && fstat(fd, &now) == 0;
	enum ob_err err;

	if (fd < 0 && errno != ENOENT)
		return ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%.180s", path);
	if (there && file_same(&now)) {
		close(fd);
		return OB_ERR_NONE;
	}
	err = fd >= 0 ? obt_tokens_read_fd(fd, path, &fresh, ret_cause) : OB_ERR_NONE;
	if (err)
		return err;
	obt_tokens_fini(&file.tokens);
	file.tokens = fresh;
	file.seen = now;
	file.kept = there && time(NULL) - now.st_mtim.tv_sec > FILE_YOUNG_S;
	return OB_ERR_NONE;
}

enum ob_err obs_auth_open(const struct obs_options *options, struct ob_cause *ret_cause)
{
	return options->tokens ? tokens_load(options->tokens, ret_cause) : OB_ERR_NONE;
}

static enum ob_err token_check(
	const char *path, const char *text, struct obs_identity *ret, struct ob_cause *ret_cause)
{
	const struct obt_token *token;
	struct ob_cause cause;
	enum ob_err err;

	if (tokens_load(path, &cause)) {
		/* for the operator; the client gets less detail */
		ob_error("tokens: %s", cause.text);
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"the server cannot read its tokens; tell its operator");
	}
	err = obt_tokens_check(&file.tokens, text, (uint64_t)time(NULL), &token, ret_cause);
	if (err)
		return err;
	snprintf(ret->who, sizeof ret->who, "token %s %s", token->id, token->name);
	ret->proved = true;
	ret->scope = token->scope;
	ret->allow = token->allow;
	return OB_ERR_NONE;
}

/* What a client without an accepted proof is told. `shown`: why its certificate is not accepted. */
static enum ob_err deny(
	const struct obs_options *options, const struct ob_cause *shown, struct ob_cause *ret_cause)
{
	if (shown)
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"the client's certificate is not accepted: %s", shown->text);
	if (options->tokens && options->tls_client_ca)
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"this server wants a token (OUTBOARD_TOKEN) or a client certificate "
			"(OUTBOARD_TLS_CERT)");
	if (options->tokens)
		return ob_cause_set(ret_cause, OB_ERR_DENIED,
			"this server wants a token; set OUTBOARD_TOKEN to one from its operator");
	return ob_cause_set(ret_cause, OB_ERR_DENIED,
		"this server wants a client certificate; set OUTBOARD_TLS_CERT and "
		"OUTBOARD_TLS_KEY");
}

enum ob_err obs_auth_check(const struct obs_options *options, const struct obt_stream *stream,
	const struct obp_hello *hello, struct obs_identity *ret, struct ob_cause *ret_cause)
{
	enum ob_err err = OB_ERR_NOT_FOUND;
	char name[OBT_TLS_NAME_MAX];
	struct ob_cause cause;

	if (obs_auth_origin(stream->fd, ret) || (!options->tokens && !options->tls_client_ca))
		return OB_ERR_NONE;
	if (options->tls_client_ca)
		err = obt_tls_client_name(stream, name, sizeof name, &cause);
	if (!err) {
		snprintf(ret->who, sizeof ret->who, "certificate %s", name);
		ret->proved = true;
		return OB_ERR_NONE;
	}
	if (options->tokens && hello->token[0])
		return token_check(options->tokens, hello->token, ret, ret_cause);
	return deny(options, err == OB_ERR_CERTIFICATE && obt_tls_started(stream) ? &cause : NULL,
		ret_cause);
}
