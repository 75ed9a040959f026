// SPDX-License-Identifier: Apache-2.0
/* Fibers: the rules of resume, yield, transfer and free. */
#include <weft/fiber.h>

#include "dies.h"
#include "fibers.h"
#include "tap.h"

#include <pthread.h>

/* --- mistakes --- */

static void *yields_once(void *arg)
{
	return weft_fiber_yield(arg);
}

static void *transfers_home(void *arg)
{
	return weft_fiber_transfer(NULL, arg);
}

static void resume_a_done_one(void)
{
	weft_fiber *f = named("worn", returns_it);

	(void)weft_fiber_resume(f, NULL);
	(void)weft_fiber_resume(f, NULL);
}

static void *resumes_self(void *arg)
{
	return weft_fiber_resume(weft_fiber_self(), arg);
}

static void resume_the_running_one(void)
{
	(void)weft_fiber_resume(named("snake", resumes_self), NULL);
}

static void *resumes(void *f)
{
	return weft_fiber_resume(f, weft_fiber_self());
}

static void *resumes_arg(void *resumer)
{
	return weft_fiber_resume(resumer, NULL);
}

static void resume_the_resumer(void)
{
	weft_fiber *inner = named("inner", resumes_arg);

	(void)weft_fiber_resume(named("outer", resumes), inner);
}

static void resume_a_transferred_one(void)
{
	weft_fiber *f = named("gone", transfers_home);

	(void)weft_fiber_transfer(f, NULL);
	(void)weft_fiber_resume(f, NULL);
}

static void transfer_to_a_yielded_one(void)
{
	weft_fiber *f = named("rests", yields_once);

	(void)weft_fiber_resume(f, NULL);
	(void)weft_fiber_transfer(f, NULL);
}

static void *transfers(void *to)
{
	return weft_fiber_transfer(to, NULL);
}

static void *resumes_with_self(void *f)
{
	return weft_fiber_resume(f, weft_fiber_self());
}

static void transfer_to_a_resumer(void)
{
	weft_fiber *inner = named("inner", transfers);

	(void)weft_fiber_resume(named("outer", resumes_with_self), inner);
}

static void transfer_to_the_own_stack_that_resumes(void)
{
	(void)weft_fiber_resume(named("inner", transfers_home), NULL);
}

static void transfer_to_a_done_one(void)
{
	weft_fiber *f = named("worn", returns_it);

	(void)weft_fiber_resume(f, NULL);
	(void)weft_fiber_transfer(f, NULL);
}

static void yield_on_the_own_stack(void)
{
	(void)weft_fiber_yield(NULL);
}

static void yield_of_a_transferred_one(void)
{
	(void)weft_fiber_transfer(named("lonely", yields_once), NULL);
}

static void *resumes_there(void *f)
{
	(void)pthread_setname_np(pthread_self(), "thief");
	return weft_fiber_resume(f, NULL);
}

static void *transfers_there(void *f)
{
	(void)weft_fiber_new(returns_it, NULL);
	return weft_fiber_transfer(f, NULL);
}

static void on_another_thread(void *(*fn)(void *))
{
	pthread_t t;

	(void)pthread_setname_np(pthread_self(), "owner");
	(void)pthread_create(&t, NULL, fn, named("mine", returns_it));
	(void)pthread_join(t, NULL);
}

static void *transfers_without_any(void *f)
{
	return weft_fiber_transfer(f, NULL);
}

static void transfer_without_any(void)
{
	on_another_thread(transfers_without_any);
}

static void resume_another_threads(void)
{
	on_another_thread(resumes_there);
}

static void transfer_to_another_threads(void)
{
	on_another_thread(transfers_there);
}

static void *makes_one(void *arg)
{
	*(weft_fiber **)arg = named("orphan", returns_it);
	return NULL;
}

static weft_fiber *orphan(void)
{
	weft_fiber *f = NULL;
	pthread_t t;

	(void)pthread_create(&t, NULL, makes_one, &f);
	(void)pthread_join(t, NULL);
	return f;
}

static void resume_an_orphan(void)
{
	(void)weft_fiber_resume(orphan(), NULL);
}

static void *frees(void *f)
{
	weft_fiber_free(f);
	return NULL;
}

static void *frees_self(void *arg)
{
	weft_fiber_free(weft_fiber_self());
	return arg;
}

static void free_the_running_one(void)
{
	(void)weft_fiber_resume(named("saws", frees_self), NULL);
}

static void free_a_resumer(void)
{
	weft_fiber *inner = named("inner", frees);

	(void)weft_fiber_resume(named("outer", resumes_with_self), inner);
}

static weft_fiber *left;

static void *frees_left(void *arg)
{
	weft_fiber_free(left);
	return arg;
}

static void free_one_that_is_waited_for(void)
{
	left = named("left", transfers);
	(void)weft_fiber_resume(left, named("frees", frees_left));
}

TEST(mistakes_end_the_process_and_name_both)
{
	CHECK_DIES(resume_a_done_one, "thread ", " cannot resume fiber \"worn\": it is done");
	CHECK_DIES(resume_the_running_one, "fiber \"snake\" of thread ",
		   " cannot resume fiber \"snake\": it is the one that runs");
	CHECK_DIES(resume_the_resumer, "fiber \"inner\" of thread ",
		   "cannot resume fiber \"outer\": it has resumed a fiber itself");
	CHECK_DIES(resume_a_transferred_one,
		   "cannot resume fiber \"gone\": it was left by a transfer");
	CHECK_DIES(transfer_to_a_yielded_one, "cannot transfer to fiber \"rests\": it has yielded");
	CHECK_DIES(transfer_to_a_resumer, "fiber \"inner\" of thread ",
		   "cannot transfer to fiber \"outer\": it has resumed a fiber");
	CHECK_DIES(transfer_to_the_own_stack_that_resumes, "fiber \"inner\" of thread ",
		   "cannot transfer to its thread's own stack: it has resumed a fiber");
	CHECK_DIES(transfer_to_a_done_one, "cannot transfer to fiber \"worn\": it is done");
	CHECK_DIES(yield_on_the_own_stack, "cannot yield: it runs on no fiber");
	CHECK_DIES(yield_of_a_transferred_one, "fiber \"lonely\" of thread ",
		   "cannot yield: ", "nobody has resumed it");
}

TEST(mistakes_between_threads_end_the_process)
{
	CHECK_DIES(resume_another_threads,
		   "\"thief\" cannot resume fiber \"mine\": it is one of thread ", "\"owner\"");
	CHECK_DIES(transfer_to_another_threads,
		   "cannot transfer to fiber \"mine\": it is one of thread ", "\"owner\"");
	CHECK_DIES(transfer_without_any, "cannot transfer: no fiber is this thread's");
	CHECK_DIES(resume_an_orphan,
		   "cannot resume fiber \"orphan\": it is one of a thread that has ended");
}

TEST(what_runs_or_is_waited_for_is_not_freed)
{
	CHECK_DIES(free_the_running_one, "cannot free fiber \"saws\": it runs");
	CHECK_DIES(free_a_resumer, "cannot free fiber \"outer\": it has resumed a fiber");
	CHECK_DIES(free_one_that_is_waited_for,
		   "cannot free fiber \"left\": a fiber has resumed it");
}

/* --- freeing --- */

static int nr_after;

static void *counts_after_yield(void *arg)
{
	(void)weft_fiber_yield(arg);
	nr_after++;
	return arg;
}

TEST(of_a_suspended_fiber_that_is_freed_nothing_runs_any_more)
{
	weft_fiber *f = weft_fiber_new(counts_after_yield, NULL);

	nr_after = 0;
	(void)weft_fiber_resume(f, NULL);
	weft_fiber_free(f);
	weft_fiber_free(NULL);
	f = weft_fiber_new(counts_after_yield, NULL);
	weft_fiber_free(f);
	CHECK_EQ(nr_after, 0);
}

TEST(another_thread_may_free_it_and_one_of_a_thread_that_has_ended)
{
	weft_fiber *f = weft_fiber_new(yields_once, NULL);
	pthread_t t;

	(void)weft_fiber_resume(f, NULL);
	CHECK_EQ(pthread_create(&t, NULL, frees, f), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	weft_fiber_free(orphan());
}
