// SPDX-License-Identifier: Apache-2.0
/* The probes themselves; see probes.h. */
#include "trace/probes.h"
#include "trace/trace.h"

/*
 * A note: owner "stapsdt", kind 3; then where the nop is, where .stapsdt.base was when the file was linked (prelink may move
 * the one and not the note), the semaphore, provider, name, and the arguments as "8@operand".
 */
#define PROBE(name, arguments, ...)                                                                \
	__asm__ volatile(                                                                          \
		"990:	nop\n"                                                                       \
		"	.pushsection .note.stapsdt, \"\", \"note\"\n"                                    \
		"	.balign 4\n"                                                                     \
		"	.4byte 992f - 991f, 994f - 993f, 3\n"                                            \
		"991:	.asciz \"stapsdt\"\n"                                                        \
		"992:	.balign 4\n"                                                                 \
		"993:	.8byte 990b\n"                                                               \
		"	.8byte _.stapsdt.base\n"                                                         \
		"	.8byte wf_trace + 4\n"                                                           \
		"	.asciz \"weft\"\n"                                                               \
		"	.asciz \"" name "\"\n"                                                     \
		"	.asciz \"" arguments "\"\n"                                                \
		"994:	.balign 4\n"                                                                 \
		"	.popsection\n"                                                                   \
		"	.ifndef _.stapsdt.base\n"                                                        \
		"	.pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"       \
		"	.weak _.stapsdt.base\n"                                                          \
		"	.hidden _.stapsdt.base\n"                                                        \
		"_.stapsdt.base: .space 1\n"                                                       \
		"	.size _.stapsdt.base, 1\n"                                                       \
		"	.popsection\n"                                                                   \
		"	.endif\n" ::__VA_ARGS__)

#define PROBE1(name, x) PROBE(name, "8@%0", "r"(x))
#define PROBE2(name, x, y) PROBE(name, "8@%0 8@%1", "r"(x), "r"(y))
#define PROBE3(name, x, y, z) PROBE(name, "8@%0 8@%1 8@%2", "r"(x), "r"(y), "r"(z))

__attribute__((noinline, cold)) void wf_probes_fire(uint32_t event, uint64_t tid, uint64_t a,
						    uint64_t b)
{
	switch (event) {
	case WF_EV_SPAWN:
		PROBE2("thread_new", a, tid);
		break;
	case WF_EV_RUN:
		PROBE1("thread_run", a);
		break;
	case WF_EV_PARK:
		PROBE3("thread_park", tid, a, b);
		break;
	case WF_EV_UNPARK:
		PROBE3("thread_unpark", a, b, tid);
		break;
	case WF_EV_EXIT:
		PROBE1("thread_exit", tid);
		break;
	case WF_EV_PREEMPT:
		PROBE2("preempt", tid, a);
		break;
	case WF_EV_HANDOFF:
		PROBE3("handoff", a, b, tid);
		break;
	case WF_EV_SYSCALL:
		PROBE3("call", tid, a, b);
		break;
	case WF_EV_SIGNAL:
		PROBE3("signal", a, b, tid);
		break;
	default:
		break;
	}
}
