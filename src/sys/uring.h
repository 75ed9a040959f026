// SPDX-License-Identifier: Apache-2.0
/*
 * io_uring(7), as far as it is used: numbers and layouts of the kernel's interface, since the headers that we
 * build with may be older than the kernel that we run on.
 */
#ifndef WF_SYS_URING_H
#define WF_SYS_URING_H

#include "base/base.h"

#include <stdint.h>

#ifndef __NR_io_uring_setup
#define __NR_io_uring_setup 425
#define __NR_io_uring_enter 426
#define __NR_io_uring_register 427
#endif

enum sys_uring_setup {
	SYS_URING_SETUP_CQSIZE = 1u << 3,
	SYS_URING_SETUP_R_DISABLED = 1u << 6,
	SYS_URING_SETUP_SUBMIT_ALL = 1u << 7,
	SYS_URING_SETUP_COOP_TASKRUN = 1u << 8,
	SYS_URING_SETUP_SINGLE_ISSUER = 1u << 12,
	SYS_URING_SETUP_DEFER_TASKRUN = 1u << 13,
	SYS_URING_SETUP_REGISTERED_FD_ONLY = 1u << 15,
	SYS_URING_SETUP_NO_SQARRAY = 1u << 16,
};

enum sys_uring_enter {
	SYS_URING_ENTER_GETEVENTS = 1u << 0,
	SYS_URING_ENTER_EXT_ARG = 1u << 3, /* Linux 5.11 */
	SYS_URING_ENTER_REGISTERED_RING = 1u << 4,
	SYS_URING_ENTER_EXT_ARG_REG = 1u << 6,
};

enum sys_uring_register {
	SYS_URING_REGISTER_PROBE = 8,
	SYS_URING_REGISTER_ENABLE_RINGS = 12,
	SYS_URING_REGISTER_IOWQ_AFF = 17,
	SYS_URING_REGISTER_IOWQ_MAX_WORKERS = 19,
	SYS_URING_REGISTER_RING_FDS = 20,
};

#define SYS_URING_REGISTER_USE_REGISTERED_RING (1u << 31)
#define SYS_URING_REGISTERED_MAX 16 /* a kernel thread may register */
#define SYS_URING_OFF_RING 0
#define SYS_URING_OFF_SQES 0x10000000

struct sys_uring_getevents_arg {
	uint64_t sigmask;
	uint32_t sigmask_bytes, min_wait_us;
	uint64_t ts;
};

enum sys_uring_op {
	SYS_URING_OP_ASYNC_CANCEL = 14,
	SYS_URING_OP_READ = 22,
	SYS_URING_OP_WAITID = 50, /* Linux 6.7, like the next */
	SYS_URING_OP_FUTEX_WAIT = 51,
	SYS_URING_OP_FUTEX_WAITV = 53,
};

#define SYS_URING_CQE_SKIP_SUCCESS (1u << 6)
#define SYS_URING_CANCEL_ALL_ANY (1u << 0 | 1u << 2)

struct sys_uring_params {
	uint32_t sq_entries, cq_entries, flags, sq_thread_cpu, sq_thread_idle, features, wq_fd;
	uint32_t resv[3];
	struct {
		uint32_t head, tail, ring_mask, ring_entries, flags, dropped, array, resv1;
		uint64_t user_addr;
	} sq_off;
	struct {
		uint32_t head, tail, ring_mask, ring_entries, overflow, cqes, flags, resv1;
		uint64_t user_addr;
	} cq_off;
};

struct sys_uring_sqe {
	uint8_t opcode, flags;
	uint16_t ioprio;
	int32_t fd;
	uint64_t addr2; /* or an offset */
	uint64_t addr;
	uint32_t len, op_flags;
	uint64_t user_data;
	uint16_t buf_index, personality;
	uint32_t file_index;
	uint64_t addr3, pad;
};

struct sys_uring_cqe {
	uint64_t user_data;
	int32_t res;
	uint32_t flags;
};

struct sys_uring_update {
	uint32_t offset, resv;
	uint64_t data;
};

_Static_assert(sizeof(struct sys_uring_params) == 120, "the kernel's");
_Static_assert(sizeof(struct sys_uring_sqe) == 64, "the kernel's");
_Static_assert(sizeof(struct sys_uring_cqe) == 16, "the kernel's");

#endif
