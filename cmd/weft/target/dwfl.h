// SPDX-License-Identifier: Apache-2.0
/*
 * libdw, loaded when it is needed: with the five libraries behind it, it takes as long to load as all that
 * `weft run` does.
 */
#ifndef WF_TARGET_DWFL_H
#define WF_TARGET_DWFL_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>

#define WF_DWFL_FUNCTIONS(X)                                                                       \
	X(addrmodule)                                                                              \
	X(attach_state)                                                                            \
	X(begin)                                                                                   \
	X(end)                                                                                     \
	X(errmsg)                                                                                  \
	X(frame_pc)                                                                                \
	X(frame_reg)                                                                               \
	X(getthread_frames)                                                                        \
	X(lineinfo)                                                                                \
	X(module_addrinfo)                                                                         \
	X(module_getsrc)                                                                           \
	X(module_info)                                                                             \
	X(report_begin)                                                                            \
	X(report_elf)                                                                              \
	X(report_end)                                                                              \
	X(standard_find_debuginfo)                                                                 \
	X(thread_state_register_pc)                                                                \
	X(thread_state_registers)

struct wf_dwfl {
#define X(name) __typeof__(&dwfl_##name) name;
	WF_DWFL_FUNCTIONS(X)
#undef X
};

/* Fill out with the functions. False with *out_why set: there is no such library, or it is too old. */
bool wf_dwfl_load(struct wf_dwfl *out, const char **out_why);

#endif
