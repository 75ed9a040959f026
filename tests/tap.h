// SPDX-License-Identifier: Apache-2.0
/*
 * The test harness: a program of TEST()s that reports in the Test Anything Protocol.
 *
 * Used by: the C and C++ test programs; tap.c holds main().
 *
 * Invariant: a failed check prints and counts, but never jumps. A check may run on any stack and on any
 * OS thread, and a jump out of there would leave the scheduler under test in the middle of a switch.
 *
 *	TEST(a_sentence_that_is_true)
 *	{
 *		CHECK_EQ(1 + 1, 2);
 *	}
 *
 * Arguments of the program: parts of test names; only tests whose name contains one of them run. `-NAME` alone runs all others.
 * `--list` prints the names. A program that takes longer than 60 s (WEFT_TEST_TIMEOUT seconds; 0 for no limit; with CI set four
 * times that) says which test hung, calls tap_on_hang and exits with 124.
 */
#ifndef WEFT_TESTS_TAP_H
#define WEFT_TESTS_TAP_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tap_test {
	const char *name;
	void (*run)(void);
	struct tap_test *next;
};

/* Called from the alarm's signal handler before the program exits: dump what helps to explain the hang. */
extern void (*tap_on_hang)(void);

void tap_add(struct tap_test *test);
bool tap_check(bool is_true, const char *expr, const char *file, int line);
bool tap_check_eq(long long a, long long b, const char *expr_a, const char *expr_b,
		  const char *file, int line);
bool tap_check_str_eq(const char *a, const char *b, const char *expr_a, const char *expr_b,
		      const char *file, int line);
void tap_skip(const char *reason);

/* A line of diagnosis, written with one write(). Not for signal handlers. */
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#define TEST(name_)                                                                                \
	static void name_(void);                                                                   \
	static struct tap_test tap_test_##name_ = { #name_, name_, 0 };                            \
	__attribute__((constructor)) static void tap_register_##name_(void)                        \
	{                                                                                          \
		tap_add(&tap_test_##name_);                                                        \
	}                                                                                          \
	static void name_(void)

/* Each check is an expression, true when it held: `if (!CHECK(p)) return;` */
#define CHECK(expr) tap_check(!!(expr), #expr, __FILE__, __LINE__)
#define CHECK_EQ(a, b) tap_check_eq((long long)(a), (long long)(b), #a, #b, __FILE__, __LINE__)
#define CHECK_STR_EQ(a, b) tap_check_str_eq((a), (b), #a, #b, __FILE__, __LINE__)

/* Ends the test: usable in the body of TEST() only. */
#define SKIP(reason)                                                                               \
	do {                                                                                       \
		tap_skip(reason);                                                                  \
		return;                                                                            \
	} while (0)

#endif
