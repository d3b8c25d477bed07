/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "transport/tls_inside.h"

struct obt_tls_server {
	SSL_CTX *context;
	struct obt_tls_ticket_keys tickets;
};

/*
 * Never fails the handshake: a client with a bad certificate is refused by a message, and may have
 * a token.
 */
static int client_note(int ok, X509_STORE_CTX *store)
{
	(void)ok;
	(void)store;
	return 1;
}

struct obt_tls_server *obt_tls_server_new(
	const char *cert, const char *key, const char *client_ca, struct ob_cause *ret_cause)
{
	struct obt_tls_server *server = calloc(1, sizeof *server);
	char what[300];

	if (!server || !(server->context = obt_tls_context(true, true)) ||
		!obt_tls_ticket_init(&server->tickets, server->context)) {
		if (server)
			SSL_CTX_free(server->context);
		free(server);
		ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory for TLS");
		return NULL;
	}
	SSL_CTX_set_session_id_context(server->context, (const unsigned char *)"outboard", 8);
	snprintf(what, sizeof what, "certificate %.100s with key %.100s", cert, key);
	errno = 0;
	if (SSL_CTX_use_certificate_chain_file(server->context, cert) != 1 ||
		SSL_CTX_use_PrivateKey_file(server->context, key, SSL_FILETYPE_PEM) != 1 ||
		SSL_CTX_check_private_key(server->context) != 1)
		goto failed;
	if (client_ca) {
		snprintf(what, sizeof what, "client authorities %.200s", client_ca);
		if (SSL_CTX_load_verify_file(server->context, client_ca) != 1)
			goto failed;
		SSL_CTX_set_client_CA_list(server->context, SSL_load_client_CA_file(client_ca));
		SSL_CTX_set_verify(server->context, SSL_VERIFY_PEER, client_note);
	}
	return server;
failed:
	obt_tls_explain(ret_cause, OB_ERR_TLS, what);
	obt_tls_server_free(server);
	return NULL;
}

void obt_tls_server_free(struct obt_tls_server *server)
{
	if (server) {
		SSL_CTX_free(server->context);
		obt_tls_ticket_fini(&server->tickets);
	}
	free(server);
}

void obt_tls_server_expire(struct obt_tls_server *server)
{
	obt_tls_ticket_expire(&server->tickets);
}

enum ob_err obt_tls_accept(struct obt_tls_server *server, int fd, struct obt_stream *ret)
{
	obt_stream_adopt(ret, fd);
	return obt_tls_attach(ret, server->context, true);
}

static void name_print(X509 *cert, char *ret_name, size_t size)
{
	BIO *text = BIO_new(BIO_s_mem());
	int n = 0;

	if (text) {
		X509_NAME_print_ex(text, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253);
		n = BIO_read(text, ret_name, (int)size - 1);
	}
	ret_name[n > 0 ? n : 0] = '\0';
	BIO_free(text);
}

enum ob_err obt_tls_client_name(
	const struct obt_stream *stream, char *ret_name, size_t size, struct ob_cause *ret_cause)
{
	X509 *cert = stream->tls ? SSL_get1_peer_certificate(stream->tls->ssl) : NULL;
	long verified;

	if (!cert)
		return ob_cause_set(
			ret_cause, OB_ERR_NOT_FOUND, "the client showed no certificate");
	verified = SSL_get_verify_result(stream->tls->ssl);
	if (verified == X509_V_OK)
		name_print(cert, ret_name, size);
	X509_free(cert);
	return verified == X509_V_OK ? OB_ERR_NONE
				     : ob_cause_set(ret_cause, OB_ERR_CERTIFICATE, "%s",
					       X509_verify_cert_error_string(verified));
}

/* ---- certificates ---- */

static bool extend(X509 *cert, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
	bool added = extension && X509_add_ext(cert, extension, -1) == 1;

	X509_EXTENSION_free(extension);
	return added;
}

/* "a,10.0.0.1" becomes "DNS:a,IP:10.0.0.1". False: too long. */
static bool alternative_names(const char *names, char *ret, size_t size)
{
	size_t at = 0;

	while (*names) {
		size_t n = strcspn(names, ",");
		bool address = memchr(names, ':', n) || strspn(names, "0123456789.") >= n;
		int wrote = snprintf(ret + at, size - at, "%s%s:%.*s", at ? "," : "",
			address ? "IP" : "DNS", (int)n, names);

		if (n == 0 || wrote < 0 || (size_t)wrote >= size - at)
			return false;
		at += (size_t)wrote;
		names += n;
		names += *names == ',';
	}
	return at > 0;
}

static bool fill(X509 *cert, EVP_PKEY *key, const char *names, unsigned days)
{
	ASN1_INTEGER *serial = X509_get_serialNumber(cert);
	BIGNUM *number = BN_new();
	char alternatives[1024], first[65];
	X509_NAME *name = X509_get_subject_name(cert);
	bool ok;

	snprintf(first, sizeof first, "%.*s", (int)strcspn(names, ","), names);
	ok = number && BN_rand(number, 120, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
		BN_to_ASN1_INTEGER(number, serial) &&
		alternative_names(names, alternatives, sizeof alternatives) &&
		X509_set_version(cert, 2) && X509_gmtime_adj(X509_getm_notBefore(cert), -300) &&
		X509_gmtime_adj(X509_getm_notAfter(cert), (long)days * 86400) &&
		X509_NAME_add_entry_by_txt(
			name, "CN", MBSTRING_UTF8, (const unsigned char *)first, -1, -1, 0) &&
		X509_set_issuer_name(cert, name) && X509_set_pubkey(cert, key) &&
		extend(cert, NID_subject_alt_name, alternatives) &&
		extend(cert, NID_basic_constraints, "critical,CA:TRUE") &&
		X509_sign(cert, key, EVP_sha256()) > 0;
	BN_free(number);
	return ok;
}

static FILE *create(const char *path, unsigned mode, struct ob_cause *ret_cause)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (!file) {
		ob_cause_set_system(ret_cause, OB_ERR_IO, errno, "%.180s", path);
		if (fd >= 0)
			close(fd);
	}
	return file;
}

enum ob_err obt_tls_make_certificate(const char *cert_path, const char *key_path, const char *names,
	unsigned days, uint8_t ret_pin[OBT_TLS_PIN_BYTES], struct ob_cause *ret_cause)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	FILE *key_file = NULL, *cert_file = NULL;
	uint8_t pin[OBT_TLS_PIN_BYTES];
	enum ob_err err = OB_ERR_IO;
	unsigned size = 0;
	bool ok;

	if (!key || !cert || !fill(cert, key, names, days) ||
		!X509_digest(cert, EVP_sha256(), pin, &size)) {
		err = obt_tls_explain(
			ret_cause, OB_ERR_ARGUMENT, "no certificate can be made for these names");
		goto out;
	}
	if (!(key_file = create(key_path, 0600, ret_cause)) ||
		!(cert_file = create(cert_path, 0644, ret_cause)))
		goto out;
	ok = PEM_write_PrivateKey(key_file, key, NULL, NULL, 0, NULL, NULL) == 1 &&
		PEM_write_X509(cert_file, cert) == 1;
	ok = fflush(key_file) == 0 && fflush(cert_file) == 0 && ok;
	if (ok) {
		memcpy(ret_pin, pin, sizeof pin);
		err = OB_ERR_NONE;
	} else {
		ob_cause_set_system(ret_cause, err, errno, "%.180s, %.180s", cert_path, key_path);
	}
out:
	if (key_file)
		fclose(key_file);
	if (cert_file)
		fclose(cert_file);
	X509_free(cert);
	EVP_PKEY_free(key);
	return err;
}

enum ob_err obt_tls_read_pin(const char *path, uint8_t ret_pin[OBT_TLS_PIN_BYTES])
{
	FILE *file = fopen(path, "re");
	X509 *cert = file ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;
	uint8_t pin[EVP_MAX_MD_SIZE];
	unsigned size = 0;
	bool ok = cert && X509_digest(cert, EVP_sha256(), pin, &size) == 1 &&
		size == OBT_TLS_PIN_BYTES;

	if (ok)
		memcpy(ret_pin, pin, OBT_TLS_PIN_BYTES);
	X509_free(cert);
	if (file)
		fclose(file);
	ERR_clear_error();
	return ok ? OB_ERR_NONE : OB_ERR_CERTIFICATE;
}
