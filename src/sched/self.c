// SPDX-License-Identifier: Apache-2.0
/*
 * The base register between the program and the runtime: see self.h.
 *
 * The kernel's number for the kernel thread is what no program can change, and no other kernel thread has it. It takes a
 * system call, so a program pays for it that has its own use for the register, and no other one does.
 */
#include "sched/self.h"
#include "arch/arch.h"
#include "sched/runtime.h"

/* Defined by the linker: the whole text of the object that the runtime is linked into. */
extern char __ehdr_start[] WF_HIDDEN, etext[] WF_HIDDEN;
/* Within it: functions of the public interface, which are as the program's code; native/face.h. */
extern char __start_weft_face[] WF_HIDDEN WF_WEAK, __stop_weft_face[] WF_HIDDEN WF_WEAK;

/* Where a number was found last: a hint. */
#define NR_HINTS 1024u
static uint32_t hints[NR_HINTS];

/* Not the door: it runs nothing of the program's, and its number may be 1, as that of a child in a new namespace. */
static struct wf_kthread *with_tid(uint32_t i, int tid)
{
	struct wf_kthread *k = wf_rt.kthreads[i];

	return k && wf_load_relaxed(&k->tid) == tid && !k->is_door ? k : NULL;
}

static struct wf_kthread *find(void)
{
	const int tid = (int)sys0(__NR_gettid);
	uint32_t *hint = &hints[(uint32_t)tid % NR_HINTS];
	uint32_t nr = wf_load_acquire(&wf_rt.nr_kthreads), i = wf_load_hint(hint);
	struct wf_kthread *k = i < nr ? with_tid(i, tid) : NULL;

	for (i = 0; !k && i < nr; i++) {
		k = with_tid(i, tid);
		if (k)
			wf_store_hint(hint, i);
	}
	return k;
}

struct wf_kthread *wf_self_come_in(void)
{
	const uint32_t on = wf_load_acquire(&wf_arch_gate_on);
	struct wf_kthread *k;
	uintptr_t base;

	if (on == WF_GATE_OFF)
		return NULL;
	if (on == WF_GATE_ON)
		return wf_self_kthread();
	k = find();
	base = wf_arch_get_base();
	if (!k || base == (uintptr_t)k)
		return k;
	/* A handler in between keeps the same once more. */
	k->cur->user_base = base;
	wf_arch_set_self(k);
	return k;
}

struct wf_thread *wf_self_find(void)
{
	struct wf_kthread *k = wf_self_come_in();
	struct wf_thread *self = k ? k->cur : NULL;

	wf_self_leave(self);
	return self;
}

bool wf_self_is_own_text(uintptr_t pc)
{
	return pc >= (uintptr_t)__ehdr_start && pc < (uintptr_t)etext &&
	       !(pc >= (uintptr_t)__start_weft_face && pc < (uintptr_t)__stop_weft_face);
}

/*
 * Interrupted code goes on with what it had there, unless it was sent back to where the runtime looks at the attention
 * word, in code of its own. If the thread was preempted, whoever resumes it sees to that instead.
 */
void wf_self_handle(void (*handler)(int sig, void *info, void *context), int sig, void *info,
		    void *context)
{
	const struct wf_ucontext *uc = context;
	const uintptr_t pc = wf_uc_pc(uc);
	const uintptr_t base = wf_arch_get_base();
	struct wf_kthread *k = wf_self_come_in();

	if (!k)
		wf_arch_set_self(NULL);
	handler(sig, info, context);
	if (base != (uintptr_t)k && (wf_uc_pc(uc) == pc || !wf_self_is_own_text(wf_uc_pc(uc))))
		wf_arch_set_base(base);
}
