// SPDX-License-Identifier: Apache-2.0
/* OpenSSL, which has locks, thread-local state and error queues of its own: TLS over a pair of sockets. */
#include "rules.h"

#ifdef __SANITIZE_THREAD__
#define LACK "OpenSSL is not built for ThreadSanitizer"
#define run(place)
#elif !defined(HAS_OPENSSL)
#define LACK "no headers of OpenSSL"
#define run(place)
#else
#define LACK rule_lack()

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONGEST 20000

static SSL_CTX *server_side, *client_side;

/* A key that is made here, and a certificate which it has signed and the client trusts. */
static bool make_sides(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);

	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -60);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"weft", -1, -1,
				   0);
	X509_set_issuer_name(cert, name);
	X509_set_pubkey(cert, key);
	server_side = SSL_CTX_new(TLS_server_method());
	client_side = SSL_CTX_new(TLS_client_method());
	if (!X509_sign(cert, key, EVP_sha256()) || !server_side || !client_side ||
	    SSL_CTX_use_certificate(server_side, cert) != 1 ||
	    SSL_CTX_use_PrivateKey(server_side, key) != 1 ||
	    X509_STORE_add_cert(SSL_CTX_get_cert_store(client_side), cert) != 1)
		return false;
	SSL_CTX_set_verify(client_side, SSL_VERIFY_PEER, NULL);
	X509_free(cert);
	EVP_PKEY_free(key);
	return true;
}

static bool read_all(SSL *s, char *to, int bytes)
{
	for (int n; bytes > 0; to += n, bytes -= n)
		if ((n = SSL_read(s, to, bytes)) <= 0)
			return false;
	return true;
}

/* Sends back what comes, until nothing more does. */
static void *serves(void *fd)
{
	SSL *s = SSL_new(server_side);
	char buf[3000];
	int n;

	SSL_set_fd(s, *(int *)fd);
	if (CHECK_EQ(SSL_accept(s), 1))
		while ((n = SSL_read(s, buf, sizeof(buf))) > 0)
			CHECK_EQ(SSL_write(s, buf, n), n);
	CHECK_EQ(SSL_get_error(s, 0), SSL_ERROR_ZERO_RETURN);
	SSL_shutdown(s);
	SSL_free(s);
	return NULL;
}

static void talks(SSL *s, int nr)
{
	static const int sizes[] = { 1, 100, 5000, LONGEST };
	static _Thread_local char sent[LONGEST], back[LONGEST];

	for (int i = 0; i < 8; i++) {
		const int bytes = sizes[i % 4];

		memset(sent, 'a' + nr, (size_t)bytes);
		rule_wait();
		CHECK_EQ(SSL_write(s, sent, bytes), bytes);
		if (!CHECK(read_all(s, back, bytes)))
			return;
		CHECK(memcmp(sent, back, (size_t)bytes) == 0);
		/* The queue of errors is the thread's: what is put into it is found there. */
		ERR_put_error(ERR_LIB_USER, 0, 100 + nr, __FILE__, __LINE__);
		rule_wait();
		CHECK_EQ(ERR_GET_REASON(ERR_get_error()), 100 + nr);
		rule_turn();
	}
}

static void connects(int nr)
{
	SSL *s = SSL_new(client_side);
	pthread_t server;
	int ends[2];

	if (!CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0) ||
	    !CHECK_EQ(pthread_create(&server, NULL, serves, &ends[1]), 0))
		return;
	SSL_set_fd(s, ends[0]);
	if (CHECK_EQ(SSL_connect(s), 1)) {
		rule_turn();
		talks(s, nr);
	}
	SSL_shutdown(s);
	pthread_join(server, NULL);
	SSL_free(s);
	close(ends[0]);
	close(ends[1]);
}
static void run(enum rule_place place)
{
	if (CHECK(make_sides()))
		rule_run(place, connects, NULL);
	SSL_CTX_free(server_side);
	SSL_CTX_free(client_side);
}

#endif

TEST(tls_connections_are_as_ever_in_threads)
{
	if (LACK)
		SKIP(LACK);
	run(IN_THREADS);
}

TEST(tls_connections_are_as_ever_in_tasks)
{
	if (LACK)
		SKIP(LACK);
	run(IN_TASKS);
}

TEST(tls_connections_are_as_ever_in_fibers)
{
	if (LACK)
		SKIP(LACK);
	run(IN_FIBERS);
}
