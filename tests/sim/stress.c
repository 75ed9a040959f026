// SPDX-License-Identifier: Apache-2.0
/*
 * The real scheduler on real kernel threads: what the model cannot see, ThreadSanitizer looks at here.
 *
 * Kernel threads are pthreads, so that the sanitizers know them; weft threads share their carrier's TLS.
 * Scripts and pauses come from a seed (WEFT_SEED); the schedule is the machine's.
 */
#include "stress_arch.h"
#include "sched/insys.h"
#include "sched/monitor.h"
#include "sched/preempt.h"

#include "arch/arch.h"
#include "base/san.h"
#include "sched/park.h"
#include "sched/runtime.h"
#include "sched/worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

#undef wf_arch_switch
#undef wf_arch_switch_last
void wf_arch_switch(void **save_sp, void *to_sp);
void wf_arch_switch_last(void *to_sp) __attribute__((noreturn));

#define NR_WORKERS 4
#define NR_STACKS 128
#define NR_THREADS 4000
#define STACK_BYTES (64ul << 10)
#define NR_SEMAPHORES 3
#define OPS_PER_THREAD 12
#define LIMIT_NS (40 * WF_SEC)

static char *arena;
static struct wf_san_stack stacks[NR_STACKS], carrier_stacks[WF_MAX_KTHREADS];
static struct {
	struct wf_spin lock;
	uint32_t nr;
	uint32_t free[NR_STACKS];
} pool;

static struct {
	struct wf_spin lock;
	int count;
	struct wf_list waiters;
} sems[NR_SEMAPHORES];

static uint32_t nr_started, nr_dead, nr_wrong, wake_word;
static uint64_t seed;

/* --- what the core asks of arch/ --- */

static WF_SAN_PLAIN struct wf_san_stack *stack_of(void *sp)
{
	size_t i = (size_t)((char *)sp - arena) / STACK_BYTES;

	if ((char *)sp >= arena && i < NR_STACKS)
		return &stacks[i];
	return &carrier_stacks[wf_self_kthread()->index];
}

WF_SAN_PLAIN void stress_arch_switch(void **save_sp, void *to_sp)
{
	void *fake = NULL;

	wf_san_hand_over(wf_self_kthread());
	wf_san_leave(&fake, stack_of(to_sp));
	wf_arch_switch(save_sp, to_sp);
	wf_san_arrive(fake);
	wf_san_take_over(wf_self_kthread());
}

WF_SAN_PLAIN void stress_arch_switch_last(void *to_sp)
{
	wf_san_hand_over(wf_self_kthread());
	wf_san_leave(NULL, stack_of(to_sp));
	wf_arch_switch_last(to_sp);
}

void stress_arch_set_tls(uintptr_t tls)
{
}

uintptr_t stress_arch_get_tls(void)
{
	return 0;
}

void wf_preempt_init_kthread(struct wf_kthread *k)
{
}

void wf_preempt_settle(struct wf_kthread *k)
{
}

struct carrier {
	void (*fn)(void *);
	struct wf_kthread *k;
};

static void *carry(void *arg)
{
	struct carrier c = *(struct carrier *)arg;
	pthread_attr_t attr;
	void *bottom = NULL;
	size_t bytes = 0;

	free(arg);
	(void)pthread_getattr_np(pthread_self(), &attr);
	(void)pthread_attr_getstack(&attr, &bottom, &bytes);
	(void)pthread_attr_destroy(&attr);
	wf_san_stack_adopt(&carrier_stacks[c.k->index], bottom, bytes);
	c.fn(c.k);
	return NULL;
}

/* Leaves *out_tid 0: kicks go nowhere, there is no preemption here. */
long stress_arch_spawn_kthread(void *stack_top, void (*fn)(void *), void *arg, int *out_tid)
{
	struct carrier *c = malloc(sizeof(*c));
	pthread_t id;

	*c = (struct carrier){ fn, arg };
	if (pthread_create(&id, NULL, carry, c))
		return -1;
	(void)pthread_detach(id);
	return 1;
}

/* --- the poller: a word that wake() sets and one poll() takes --- */

static bool poll_word(int64_t timeout_ns)
{
	if (timeout_ns && !wf_load_acquire(&wake_word))
		(void)sys_futex_wait(&wake_word, 0, timeout_ns);
	return wf_load_relaxed(&wake_word) && wf_exchange(&wake_word, 0u);
}

static void wake_word_up(void)
{
	wf_store_seq_cst(&wake_word, 1u);
	(void)sys_futex_wake(&wake_word, 1);
}

static bool nobody_waits(void)
{
	return false;
}

static const struct wf_io_driver driver = { poll_word, wake_word_up, nobody_waits };

/* --- threads --- */

static void thread_exited(struct wf_thread *t)
{
	uint32_t stack = (uint32_t)t->wait_what;

	wf_spin_lock(&pool.lock);
	pool.free[pool.nr++] = stack;
	wf_spin_unlock(&pool.lock);
	wf_thread_free(t);
	(void)wf_fetch_add(&nr_dead, 1u);
}

static const struct wf_sched_hooks hooks = { .thread_exited = thread_exited };

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static void post(int s)
{
	struct wf_list *n;

	wf_spin_lock(&sems[s].lock);
	while ((n = wf_list_pop_head(&sems[s].waiters))) {
		struct wf_thread **w = (struct wf_thread **)(n + 1);

		if (wf_unpark(*w, WF_WAKE_EVENT))
			break;
	}
	if (!n)
		sems[s].count++;
	wf_spin_unlock(&sems[s].lock);
}

static void wait_for(int s, int64_t deadline)
{
	struct {
		struct wf_list link;
		struct wf_thread *thread;
	} w = { .thread = wf_self() };
	enum wf_reason reason;

	wf_list_init(&w.link);
	wf_spin_lock(&sems[s].lock);
	if (sems[s].count) {
		sems[s].count--;
		wf_spin_unlock(&sems[s].lock);
		return;
	}
	wf_park_begin(0, WF_WAIT_FUTEX, wf_self()->wait_what);
	wf_list_push_tail(&sems[s].waiters, &w.link);
	wf_spin_unlock(&sems[s].lock);
	reason = wf_park(deadline);
	wf_spin_lock(&sems[s].lock);
	wf_list_remove(&w.link);
	wf_spin_unlock(&sems[s].lock);
	if (reason != WF_WAKE_EVENT && reason != WF_WAKE_TIMEOUT)
		(void)wf_fetch_add(&nr_wrong, 1u);
}

static void spawn(void);

static void script(uint64_t rng)
{
	for (int i = 0; i < OPS_PER_THREAD; i++) {
		int s = (int)(next_random(&rng) % NR_SEMAPHORES);
		int64_t later = sys_now() + (int64_t)(next_random(&rng) % 300) * WF_US;

		for (uint64_t pause = next_random(&rng) % 500; pause; pause--)
			wf_cpu_pause();
		switch (next_random(&rng) % 6) {
		case 0:
			wf_yield();
			break;
		case 1: /* post first: so all never wait at once */
			post(s);
			wait_for(s, WF_NEVER);
			break;
		case 2:
			post(s);
			wait_for(s, later);
			break;
		case 3:
			wf_park_begin(0, WF_WAIT_SLEEP, wf_self()->wait_what);
			if (wf_park(later) != WF_WAKE_TIMEOUT || sys_now() < later)
				(void)wf_fetch_add(&nr_wrong, 1u);
			break;
		case 4:
			switch (next_random(&rng) % 3) {
			case 0:
				wf_call_enter_lazy();
				break;
			case 1:
				wf_call_enter(true);
				break;
			default:
				wf_call_enter(false);
			}
			(void)sys0(__NR_sched_yield);
			wf_call_leave();
			break;
		case 5:
			spawn();
			break;
		}
	}
}

struct start {
	uint64_t rng;
};

static void thread_start(void *arg)
{
	uint64_t rng;

	wf_san_arrive(NULL);
	wf_san_take_over(wf_self_kthread());
	rng = ((struct start *)arg)->rng;
	wf_worker_finish_switch(wf_self_kthread());
	script(rng);
	wf_store_release(&wf_self()->state, WF_DEAD);
	wf_worker_switch_last(wf_self_kthread(), WF_PREV_DEAD);
}

/* The number of its stack travels in wait_what, which every park here keeps. */
static void spawn(void)
{
	uint32_t stack, n = wf_fetch_add(&nr_started, 1u);
	struct wf_thread *t;
	struct start *s;

	wf_spin_lock(&pool.lock);
	stack = n < NR_THREADS && pool.nr ? pool.free[--pool.nr] : NR_STACKS;
	wf_spin_unlock(&pool.lock);
	t = stack < NR_STACKS ? wf_thread_new() : NULL;
	if (!t) {
		(void)wf_fetch_sub(&nr_started, 1u);
		return;
	}
	wf_san_stack_init(&stacks[stack], arena + stack * STACK_BYTES, STACK_BYTES);
	s = (struct start *)(arena + (stack + 1) * STACK_BYTES) - 1;
	s->rng = seed + n * 0x9e3779b97f4a7c15ull;
	t->wait_what = stack;
	t->sp = wf_arch_make_context(s, thread_start, s);
	wf_store_release(&t->state, WF_READY);
	wf_worker_ready(t);
}

TEST(random_threads_on_real_kernel_threads_all_end)
{
	const char *text = getenv("WEFT_SEED");
	int64_t end = sys_now() + LIMIT_NS;

	seed = text ? strtoull(text, NULL, 0) : (uint64_t)sys_now();
	tap_note("WEFT_SEED=%llu", (unsigned long long)seed);
	arena = sys_map(NR_STACKS * STACK_BYTES);
	for (uint32_t i = 0; i < NR_STACKS; i++)
		pool.free[pool.nr++] = i;
	for (int i = 0; i < NR_SEMAPHORES; i++)
		wf_list_init(&sems[i].waiters);
	if (!CHECK(wf_runtime_start(&(const struct wf_runtime_config){
			   .io = &driver,
			   .hooks = &hooks,
			   .nr_workers = NR_WORKERS,
			   .min_sigstack = 4096,
			   .seed = seed,
			   .is_shuffled = getenv("SHUFFLED") != NULL,
		   }) != NULL))
		return;
	wf_rt.door->tid = 0;
	wf_arch_set_self(wf_rt.door);
	while (wf_load_acquire(&nr_dead) < NR_THREADS && sys_now() < end) {
		uint32_t nothing = 0;

		for (int i = 0; i < 8 && wf_load_acquire(&nr_started) < NR_THREADS; i++)
			spawn();
		(void)wf_monitor_tick(sys_now());
		(void)sys_futex_wait(&nothing, 0, 200 * WF_US);
	}
	CHECK_EQ(wf_load_acquire(&nr_dead), wf_load_acquire(&nr_started));
	CHECK_EQ(wf_load_acquire(&nr_wrong), 0);
	tap_note("%u threads, %u kernel threads", wf_load_acquire(&nr_dead), wf_rt.nr_kthreads);
	wf_arch_set_self(NULL);
}
