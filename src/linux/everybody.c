// SPDX-License-Identifier: Apache-2.0
/*
 * A call that every kernel thread of ours makes, exactly once.
 *
 * Called by: credentials.c (libc's set*id), and where a thread that is alone changes itself (sandbox.c, named.c). The
 * caller makes the call, kicks every other kernel thread (idle, spare, in a call, bound, the door, the poller, those of
 * rings), each of which makes it in the kick's handler, and waits for all of them.
 *
 * Invariant: with k->request_answered = n, k is as if it had made the requests up to n, each of them once, and no later
 * one; when lx_everybody_make() returns that is so for every kernel thread that is, or comes. For
 * - a kernel thread answers a request once: a CAS on request_claimed, only forward, by itself alone. A kick may interrupt
 *   the very answer, on the same kernel thread, and find it claimed.
 * - a new one inherits the state of its maker and, with that, the number (spawn() in runtime.c): the maker takes no kick
 *   between the copy of the number and the clone. So calls that are not idempotent are right, too.
 * - none is missed. A new one stands behind its maker in the table, who is waited for first: either the maker had answered
 *   when it copied the number, or the clone was over when it answered, and the tid of the new one is known. An ended one
 *   that comes back may stand before its maker: it is counted before, and while one was on its way the round is repeated.
 * - one that ends meanwhile (a spare, a bound thread's) has tid 0 then, and makes no call before: it runs nothing of the
 *   program any more.
 *
 * All kernel threads that no thread of the program owns are alike, so the call must return the same on each. Where it does
 * not, one of them has kept what the program gives up: the process ends, as libc ends one whose threads do not agree.
 */
#include "linux/everybody.h"
#include "sched/insys.h"
#include "sched/kick.h"

#include "base/die.h"

static struct {
	struct wf_spin turn;      /* one request at a time */
	struct lx_everybody call; /* (p) before seq */
	uint32_t seq;             /* (a) grows with every request */
	uint32_t is_open;         /* (a) some have yet to answer */
	bool is_unlike;           /* (q) by turn: one that no thread owns was told something else */
} request;

/*
 * The request lies in memory that the program can write, and a kernel thread may have rights that the program gave up: of
 * all calls it makes those that change what a thread is, and none that opens, sends or runs anything.
 */
static bool is_about_oneself(long nr)
{
	switch (nr) {
	case __NR_setuid:
	case __NR_setgid:
	case __NR_setreuid:
	case __NR_setregid:
	case __NR_setresuid:
	case __NR_setresgid:
	case __NR_setgroups:
	case __NR_setfsuid:
	case __NR_setfsgid:
	case __NR_capset:
	case __NR_prctl:
	case __NR_landlock_restrict_self:
	case __NR_setns:
		return true;
	default:
		return false;
	}
}

static long make_it(const struct lx_everybody *shared)
{
	struct lx_everybody copy = *shared;
	const struct lx_everybody *c = &copy;

	__asm__ volatile("" : "+m"(copy)); /* as it was when it was looked at */
	if (!is_about_oneself(c->nr))
		return -EPERM;
	return wf_syscall6(c->nr, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4],
			   c->args[5]);
}

void lx_everybody_answer(struct wf_kthread *k)
{
	uint32_t seq = wf_load_acquire(&request.seq);
	uint32_t last = wf_load_acquire(&k->request_claimed);

	if (!wf_load_acquire(&request.is_open) || (int32_t)(seq - last) <= 0 ||
	    !wf_cas(&k->request_claimed, &last, seq))
		return;
	/* It runs nothing of the program any more, and may have a filter of its thread's that kills for this call. */
	if (!wf_load_acquire(&k->is_ending))
		k->request_ret = make_it(&request.call);
	wf_store_release(&k->request_answered, seq);
}

static bool owes_answer(struct wf_kthread *k, uint32_t seq)
{
	return wf_load_acquire(&k->tid) > 0 && wf_load_acquire(&k->request_answered) != seq;
}

/* Not by wf_kick(): one that is on its way may be for a kernel thread that was here before k. */
static void ask_all(uint32_t seq)
{
	for (uint32_t i = 0; i < wf_load_acquire(&wf_rt.nr_kthreads); i++) {
		struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[i]);

		if (owes_answer(k, seq))
			wf_kick_anyway(k);
	}
}

/* No thread owns it, or has. In this order: one whose thread ends says that it is ending, then that it has none. */
static bool is_like_all(const struct wf_kthread *k)
{
	return !wf_load_acquire(&k->bound) && !wf_load_acquire(&k->is_ending);
}

static void wait_for(struct wf_kthread *k, uint32_t seq)
{
	for (uint32_t round = 0; owes_answer(k, seq); round++)
		sys_relax(round);
}

static void check_answer(const struct wf_kthread *k, long ret, uint32_t revivals)
{
	if (wf_load_acquire(&k->tid) <= 0 || !is_like_all(k) ||
	    wf_load_acquire(&k->request_ret) == ret)
		return;
	/* The reading is of one kernel thread only if none came back meanwhile. Else the round is repeated. */
	if (wf_load_seq_cst(&wf_rt.revivals) != revivals)
		return;
	request.is_unlike = true;
	if (!request.call.is_own_state)
		wf_die("a call for the whole process did something else on one of its kernel threads, "
		       "which may have kept a right",
		       __FILE__, __LINE__);
}

static void ask_and_wait(uint32_t seq, long ret)
{
	uint32_t revivals;

	wf_store_release(&request.seq, seq);
	wf_store_seq_cst(&request.is_open, 1u);
	do {
		revivals = wf_load_seq_cst(&wf_rt.revivals);
		for (uint32_t round = 0; wf_load_seq_cst(&wf_rt.nr_reviving); round++)
			sys_relax(round);
		/* All at once, then one after the other. */
		ask_all(seq);
		for (uint32_t i = 0; i < wf_load_acquire(&wf_rt.nr_kthreads); i++) {
			struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[i]);

			wait_for(k, seq);
			check_answer(k, ret, revivals);
		}
	} while (wf_load_seq_cst(&wf_rt.revivals) != revivals);
	wf_store_release(&request.is_open, 0u);
}

long lx_everybody_make(const struct lx_everybody *call, uint32_t *out_seq)
{
	struct wf_kthread *self = wf_own_kthread();
	uint32_t seq = request.seq + 1;
	long ret = make_it(call);

	if (ret < 0)
		return ret;
	request.call = *call;
	request.is_unlike = false;
	self->request_ret = ret;
	wf_store_relaxed(&self->request_claimed, seq);
	wf_store_release(&self->request_answered, seq);
	ask_and_wait(seq, ret);
	*out_seq = seq;
	return ret;
}

long lx_everybody_answer_of(uint32_t seq, long other)
{
	const struct wf_kthread *k = wf_own_kthread();

	return wf_load_acquire(&k->request_answered) == seq ? k->request_ret : other;
}

/* The holder waits for kernel threads that may be waiting here: answer while we wait. */
void lx_everybody_lock(void)
{
	for (uint32_t round = 0; !wf_spin_trylock(&request.turn); round++) {
		lx_everybody_answer(wf_self_kthread());
		sys_relax(round);
	}
}

void lx_everybody_unlock(void)
{
	wf_spin_unlock(&request.turn);
}

void lx_everybody_forget(void)
{
	__builtin_memset(&request, 0, sizeof(request));
}

long lx_everybody_request(const struct lx_everybody *call)
{
	bool is_unlike;
	uint32_t seq;
	long ret;

	/* One that is in a call may let us wait: others run meanwhile. */
	wf_call_enter(false);
	lx_everybody_lock();
	ret = lx_everybody_make(call, &seq);
	is_unlike = ret >= 0 && request.is_unlike;
	lx_everybody_unlock();
	wf_call_leave();
	if (is_unlike)
		lx_config.on_outside("they cannot do what its last thread does to itself");
	return ret;
}

long lx_everybody_call(const struct wf_frame *f, bool is_own_state)
{
	struct lx_everybody call = {
		.nr = (long)f->nr,
		.args = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f), (long)WF_ARG3(f),
			  (long)WF_ARG4(f), (long)WF_ARG5(f) },
		.is_own_state = is_own_state,
	};

	return lx_everybody_request(&call);
}
