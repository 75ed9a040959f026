// SPDX-License-Identifier: Apache-2.0
/*
 * "No rules inside": what a program may do anywhere, it may do in threads, in tasks and in fibers.
 *
 * One file for each concern. RULE(name, act, end) makes three tests of it, one for each place, in which RULE_NR copies of act(nr)
 * run beside each other; end(place) looks at what all of them have left. meson.build says how the program is built and run:
 *
 *   file         | concern                        | attached, natively, O3 and LTO, ASan, allocators | TSan
 *   errno.c      | errno, its address             | yes                                              | yes
 *   local.c      | thread_local of C11, keys      | yes                                              | yes
 *   object.cc    | thread_local of C++            | yes                                              | yes
 *   malloc.c     | memory that is kept, freed     | yes                                              | yes
 *   tls.c        | OpenSSL                        | yes                                              | no: it is not built for TSan
 *   lock.c       | locks held over waits          | yes                                              | but for mtx_t, which TSan does not know
 *   loop.c       | while (1);                     | yes                                              | no: TSan keeps signals until a call
 *   recursion.c  | deep recursion                 | yes                                              | yes
 *   exception.cc | exceptions                     | yes                                              | yes
 *   module.c     | dlopen(), dlclose()            | yes                                              | no: it does not know the loader's locks
 *
 * Attached: with random schedules, slices of 100 us and four workers, so that a thread goes on anywhere after each wait. Allocators:
 * glibc's, jemalloc, mimalloc, tcmalloc.
 */
#ifndef WEFT_TESTS_RULES_H
#define WEFT_TESTS_RULES_H

#include "../../tap.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RULE_NR 12

enum rule_place {
	IN_THREADS,
	IN_TASKS,
	IN_FIBERS
};

/* The thread parks, is woken by another one, and goes on where that leaves it. Sets no errno. */
void rule_wait(void);
/* The same, after which the other fibers of the thread have their turn, if it is in one. */
void rule_turn(void);

/* The end of the running stack from which it grows, and how much of it there is. */
void rule_stack(char **out_low, char **out_high);

/* Why the tests cannot run in this process, or NULL. */
const char *rule_lack(void);

/* act(nr) for all nr below RULE_NR, and beside(place), unless NULL, in a thread of its own, at the same time. */
void rule_run(enum rule_place place, void (*act)(int nr), void (*beside)(enum rule_place place));

#ifdef __cplusplus
}
#endif

#define RULE_TEST_(name, place, act, end)                                                          \
	TEST(name)                                                                                 \
	{                                                                                          \
		void (*at_end)(enum rule_place) = (end);                                           \
                                                                                                   \
		if (rule_lack())                                                                   \
			SKIP(rule_lack());                                                         \
		rule_run((place), (act), 0);                                                       \
		if (at_end)                                                                        \
			at_end(place);                                                             \
	}

#define RULE(name, act, end)                                                                       \
	RULE_TEST_(name##_in_threads, IN_THREADS, act, end)                                        \
	RULE_TEST_(name##_in_tasks, IN_TASKS, act, end)                                            \
	RULE_TEST_(name##_in_fibers, IN_FIBERS, act, end)

#endif
