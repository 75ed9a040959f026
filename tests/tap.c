// SPDX-License-Identifier: Apache-2.0
/*
 * The test harness: registers, runs and reports the tests of one program.
 *
 * Called by: constructors made by TEST(), and the checks, from any OS thread and any stack.
 *
 * Invariant: everything that a check or the alarm touches is atomic or constant, and nothing here jumps or takes a lock.
 */
#include "tap.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_S 60

void (*tap_on_hang)(void);

static struct tap_test *first;
static struct tap_test **last = &first;

static int nr_failed_checks;    /* atomic: of the running test */
static const char *skip_reason; /* atomic: of the running test, NULL when it is not skipped */

/* Written before a test starts, because the alarm may not format. */
static char hang_message[256];
static int hang_message_len;

void tap_add(struct tap_test *test)
{
	*last = test;
	last = &test->next;
}

static void write_all(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

/* One line, one write: lines of several OS threads do not mix. */
static void say(const char *prefix, const char *format, va_list args)
{
	char line[512];
	int len = snprintf(line, sizeof(line) - 1, "%s", prefix);

	len += vsnprintf(line + len, sizeof(line) - 1 - (size_t)len, format, args);
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	line[len++] = '\n';
	write_all(line, (size_t)len);
}

void tap_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("# ", format, args);
	va_end(args);
}

__attribute__((format(printf, 1, 2))) static void report(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("", format, args);
	va_end(args);
}

static void count_failure(void)
{
	__atomic_add_fetch(&nr_failed_checks, 1, __ATOMIC_RELAXED);
}

bool tap_check(bool is_true, const char *expr, const char *file, int line)
{
	if (is_true)
		return true;
	count_failure();
	tap_note("%s:%d: not true: %s", file, line, expr);
	return false;
}

bool tap_check_eq(long long a, long long b, const char *expr_a, const char *expr_b,
		  const char *file, int line)
{
	if (a == b)
		return true;
	count_failure();
	tap_note("%s:%d: %s is %lld (0x%llx), %s is %lld (0x%llx)", file, line, expr_a, a, a,
		 expr_b, b, b);
	return false;
}

bool tap_check_str_eq(const char *a, const char *b, const char *expr_a, const char *expr_b,
		      const char *file, int line)
{
	if (a == b || (a && b && strcmp(a, b) == 0))
		return true;
	count_failure();
	tap_note("%s:%d: %s is \"%s\", %s is \"%s\"", file, line, expr_a, a ? a : "(null)", expr_b,
		 b ? b : "(null)");
	return false;
}

void tap_skip(const char *reason)
{
	__atomic_store_n(&skip_reason, reason, __ATOMIC_RELAXED);
}

static void on_alarm(int sig)
{
	(void)sig;
	write_all(hang_message, (size_t)hang_message_len);
	if (tap_on_hang)
		tap_on_hang();
	_exit(124);
}

static void arm(void)
{
	const char *text = getenv("WEFT_TEST_TIMEOUT");
	int seconds = text ? atoi(text) : DEFAULT_TIMEOUT_S;
	/* An automatic run may be on a machine that does much else; the same in the Python tests. */
	const int patience = getenv("CI") ? 4 : 1;
	struct sigaction action = { 0 };
	sigset_t set;

	if (seconds <= 0)
		return;
	action.sa_handler = on_alarm;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	alarm((unsigned int)(seconds * patience));
}

/* NAME: those that have it in theirs. -NAME: all others. */
static bool is_wanted(const struct tap_test *test, int argc, char **argv)
{
	if (argc == 2 && argv[1][0] == '-')
		return !strstr(test->name, argv[1] + 1);
	for (int i = 1; i < argc; i++) {
		if (strstr(test->name, argv[i]))
			return true;
	}
	return argc < 2;
}

/* Returns whether the test passed or was skipped. */
static bool run_one(const struct tap_test *test, int number)
{
	const char *reason;
	int nr_failed;

	__atomic_store_n(&nr_failed_checks, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&skip_reason, NULL, __ATOMIC_RELAXED);
	hang_message_len = snprintf(hang_message, sizeof(hang_message),
				    "not ok %d - %.150s\n# hung: the program's time is over\n",
				    number, test->name);
	test->run();

	nr_failed = __atomic_load_n(&nr_failed_checks, __ATOMIC_RELAXED);
	reason = __atomic_load_n(&skip_reason, __ATOMIC_RELAXED);
	if (nr_failed > 0)
		report("not ok %d - %s", number, test->name);
	else if (reason)
		report("ok %d - %s # SKIP %s", number, test->name, reason);
	else
		report("ok %d - %s", number, test->name);
	return nr_failed == 0;
}

int main(int argc, char **argv)
{
	bool is_list = argc == 2 && strcmp(argv[1], "--list") == 0;
	int nr_tests = 0;
	int number = 0;
	int nr_failed = 0;

	for (struct tap_test *test = first; test; test = test->next) {
		if (is_list)
			report("%s", test->name);
		else if (is_wanted(test, argc, argv))
			nr_tests++;
	}
	if (is_list)
		return 0;

	report("1..%d", nr_tests);
	arm();
	for (struct tap_test *test = first; test; test = test->next) {
		if (is_wanted(test, argc, argv) && !run_one(test, ++number))
			nr_failed++;
	}
	return nr_failed > 0;
}
