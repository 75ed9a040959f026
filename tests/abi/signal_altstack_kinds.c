// SPDX-License-Identifier: Apache-2.0
/*
 * The answers of sigaltstack() in and out of handlers, what a handler's return makes of it, and stacks that disarm
 * themselves. The plain kernel says what is to be printed.
 */
#include "check.h"

#define AUTODISARM (1 << 31)

static char stack[65536], other[65536];
static stack_t seen;

static void looks(int sig)
{
	(void)sig;
	sigaltstack(NULL, &seen);
}

static void sets(int sig)
{
	stack_t to_other = { .ss_sp = other, .ss_size = sizeof(other) };
	int ret = sigaltstack(&to_other, &seen);

	(void)sig;
	printf("in a handler: %d, errno %d\n", ret, ret ? errno : 0);
}

static void show(const char *what, const stack_t *s)
{
	printf("%s: stack %d, flags %x, %zu bytes\n", what,
	       s->ss_sp == stack   ? 1
	       : s->ss_sp == other ? 2
				   : 0,
	       s->ss_flags, s->ss_size);
}

static void show_now(const char *what)
{
	stack_t now;

	sigaltstack(NULL, &now);
	show(what, &now);
}

static void *body(void *arg)
{
	struct sigaction act = { .sa_handler = looks, .sa_flags = SA_ONSTACK };
	stack_t fresh = { .ss_sp = stack, .ss_size = sizeof(stack) };

	sigaction(SIGUSR1, &act, NULL);
	act = (struct sigaction){ .sa_handler = sets };
	sigaction(SIGUSR2, &act, NULL);
	show_now("at first");
	raise(SIGUSR2);
	show_now("a handler has set one");
	CHECK_SYS(sigaltstack(&fresh, NULL));
	raise(SIGUSR1);
	show("on it", &seen);
	show_now("back");
	raise(SIGUSR2);
	show_now("a handler on the thread's stack has set the other");
	act.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &act, NULL);
	raise(SIGUSR2);
	show_now("a handler on it has tried to");

	fresh.ss_flags = AUTODISARM;
	CHECK_SYS(sigaltstack(&fresh, NULL));
	show_now("disarms itself");
	raise(SIGUSR1);
	show("on it", &seen);
	show_now("back");
	raise(SIGUSR2);
	show_now("a handler on it has set the other");

	fresh.ss_flags = SS_ONSTACK;
	CHECK_SYS(sigaltstack(&fresh, NULL));
	show_now("asked for as if on it");
	fresh.ss_flags = 3;
	CHECK_ERRNO(sigaltstack(&fresh, NULL), EINVAL);
	fresh.ss_flags = 0;
	fresh.ss_size = 100;
	CHECK_ERRNO(sigaltstack(&fresh, NULL), ENOMEM);
	fresh.ss_size = 2048;
	CHECK_SYS(sigaltstack(&fresh, NULL));
	fresh.ss_flags = SS_DISABLE;
	CHECK_SYS(sigaltstack(&fresh, NULL));
	show_now("none");
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	const stack_t none = { .ss_flags = SS_DISABLE };

	join(start(nothing, NULL));
	/* Else what a handler's return does depends on whether a thread of some ancestor has made the next one. */
	CHECK_SYS(sigaltstack(&none, NULL));
	body(NULL);
	join(start(body, NULL));
	return finish();
}
