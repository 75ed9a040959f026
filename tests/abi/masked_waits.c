// SPDX-License-Identifier: Apache-2.0
/*
 * Waits of the kernel's own that let in a signal for as long as they last, io_pgetevents and io_uring_enter: sent to the
 * thread or to the process, before the wait or in it. None is made again after a handler, whatever its flags say.
 */
#include "beside.h"

#include <linux/aio_abi.h>
#include <sys/mman.h>

#define GETEVENTS 1
#define EXT_ARG 8

static aio_context_t ctx;
static int ring = -1;
static pthread_t waiter;
static int nr_handled, is_ready;

static void on_signal(int sig)
{
	(void)sig;
	CHECK(pthread_equal(pthread_self(), waiter));
	ADD(&nr_handled, 1);
}

static long wait_aio(const uint64_t *mask)
{
	struct {
		const uint64_t *mask;
		size_t bytes;
	} arg = { mask, sizeof(*mask) };
	struct io_event e;

	return CALL(io_pgetevents, ctx, 1L, 1L, &e, NULL, mask ? &arg : NULL);
}

static long wait_ring(const uint64_t *mask)
{
	return CALL(io_uring_enter, ring, 0, 1, GETEVENTS, mask, (long)sizeof(*mask));
}

static long wait_ring_extended(const uint64_t *mask)
{
	struct {
		uint64_t mask;
		uint32_t bytes, min_wait;
		uint64_t ts;
	} arg = { (uintptr_t)mask, sizeof(*mask), 0, 0 };

	return CALL(io_uring_enter, ring, 0, 1, GETEVENTS | EXT_ARG, &arg, (long)sizeof(arg));
}

struct kind {
	long (*wait)(const uint64_t *mask);
	int masks, restarts;
};

static void block(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(how, &set, NULL);
}

static void *waits(void *arg)
{
	const struct kind *k = arg;
	uint64_t none = 0;
	sigset_t after;

	waiter = pthread_self();
	if (!k->masks)
		block(SIG_UNBLOCK);
	STORE(&is_ready, 1);
	if (k->masks) {
		CHECK_ERRNO(k->wait(&none), EINTR);
		CHECK_EQ(LOAD(&nr_handled), 1);
		pthread_sigmask(SIG_BLOCK, NULL, &after);
		CHECK_EQ(sigismember(&after, SIGUSR1), 1);
	} else { /* it may be handled before the wait begins: then another one ends that */
		CHECK_ERRNO(k->wait(NULL), EINTR);
	}
	STORE(&is_ready, 2);
	return NULL;
}

static void forget_pending(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	while (sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 }) == SIGUSR1)
		;
}

static void interrupt(struct kind k)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = k.restarts ? SA_RESTART : 0 };

	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	for (int i = 0; i < 4; i++) {
		pthread_t t;

		forget_pending();
		nr_handled = is_ready = 0;
		t = start(waits, &k);
		while (!LOAD(&is_ready))
			sched_yield();
		if (i & 1)
			let_others_block();
		do {
			if (i & 2)
				CHECK_SYS(kill(getpid(), SIGUSR1));
			else
				CHECK_PT(pthread_kill(t, SIGUSR1));
			if (!k.masks)
				sleep_ns(MS);
		} while (!k.masks && LOAD(&is_ready) != 2);
		join(t);
	}
}

static void check_all(long (*wait)(const uint64_t *), const char *what)
{
	for (int i = 0; i < 4; i++)
		interrupt((struct kind){ wait, i & 1, i >> 1 });
	ok(what);
}

/* Data that are there already are taken, and the signal stays blocked or is handled: both as if it had come at another moment. */
static void *submits(void *arg)
{
	struct iocb cb = { .aio_lio_opcode = IOCB_CMD_PREAD,
			   .aio_fildes = (uint32_t)(intptr_t)arg };
	struct iocb *list[1] = { &cb };
	uint64_t none = 0;
	struct {
		const uint64_t *mask;
		size_t bytes;
	} mask = { &none, sizeof(none) };
	struct io_event e = { 0 };

	waiter = pthread_self();
	nr_handled = 0;
	CHECK_EQ(CALL(io_submit, ctx, 1L, list), 1);
	CHECK_PT(pthread_kill(pthread_self(), SIGUSR1));
	CHECK_EQ(CALL(io_pgetevents, ctx, 1L, 1L, &e, NULL, &mask), 1);
	CHECK_EQ(e.obj, (uintptr_t)&cb);
	CHECK_EQ(nr_handled, 1);
	CHECK_EQ(CALL(io_pgetevents, ctx, 0L, 1L, &e, &(struct timespec){ 0, 0 }, &mask), 0);
	mask.bytes = 5;
	CHECK_ERRNO(CALL(io_pgetevents, ctx, 1L, 1L, &e, NULL, &mask), EINVAL);
	CHECK_ERRNO(CALL(io_pgetevents, ctx, 1L, 1L, &e, NULL, (void *)8), EFAULT);
	return NULL;
}

int main(void)
{
	static uint64_t params[15]; /* struct io_uring_params */
	int has_aio = CALL(io_setup, 8, &ctx) == 0, fd = (int)CHECK_SYS(memfd_create("empty", 0));

	if (!has_aio)
		CHECK(is_refused(-1) || errno == EAGAIN);
	ring = (int)CALL(io_uring_setup, 8, params);
	block(SIG_BLOCK);
	if (has_aio && (wait_aio((void *)8) != -1 || errno == EFAULT)) {
		check_all(wait_aio, "io_pgetevents");
		forget_pending();
		join(start(submits, (void *)(intptr_t)fd));
		ok("with something to take");
	}
	if (ring >= 0) {
		check_all(wait_ring, "io_uring_enter");
		if (params[2] >> 32 & 1u << 8) /* IORING_FEAT_EXT_ARG */
			check_all(wait_ring_extended, "with an argument of its own");
	}
	return finish();
}
