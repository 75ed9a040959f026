// SPDX-License-Identifier: Apache-2.0
/*
 * base/atomic.h for the model checker: every operation is a point at which the checker may let another
 * virtual CPU go on, or leave a store in the store buffer. Nothing here is atomic for the real machine: one
 * kernel thread plays all CPUs.
 *
 * A mutation (model.h) names a function and an operation in it; the operation then loses what it is for: a
 * fence fences nothing, a read-modify-write is torn in two, a seq_cst store stays in the store buffer, a "look"
 * (a seq_cst load) sees nothing: 0.
 */
#ifndef WF_TESTS_MODEL_ATOMIC_H
#define WF_TESTS_MODEL_ATOMIC_H

#include "base/base.h"

void model_load(const char *func, const void *at);
void model_store(const char *func, void *at, const void *value, size_t size, bool is_seq_cst);
void model_fence(const char *func);
void model_rmw(const char *func, const char *op, const void *at);
bool model_is_blind(const char *func);
void model_tear(const char *func, const char *op);

#define wf_load_relaxed(p)                                                                         \
	({                                                                                         \
		model_load(__func__, (p));                                                         \
		*(p);                                                                              \
	})
#define wf_load_acquire(p) wf_load_relaxed(p)
#define wf_load_seq_cst(p)                                                                         \
	({                                                                                         \
		model_load(__func__, (p));                                                         \
		model_is_blind(__func__) ? (__typeof__(*(p)))0 : *(p);                             \
	})

#define wf_load_hint(p) (*(p))
#define wf_store_hint(p, v) ((void)(*(p) = (v)))

#define WF_MODEL_STORE(p, v, sc)                                                                   \
	({                                                                                         \
		__typeof__(*(p)) store_ = (v);                                                     \
		model_store(__func__, (p), &store_, sizeof(store_), (sc));                         \
	})
#define wf_store_relaxed(p, v) WF_MODEL_STORE(p, v, false)
#define wf_store_release(p, v) WF_MODEL_STORE(p, v, false)
#define wf_store_seq_cst(p, v) WF_MODEL_STORE(p, v, true)

#define WF_MODEL_RMW(p, v, op, result)                                                             \
	({                                                                                         \
		__typeof__(*(p)) arg_ = (v), old_;                                                 \
		model_rmw(__func__, op, (p));                                                      \
		old_ = *(p);                                                                       \
		model_tear(__func__, op);                                                          \
		*(p) = (result);                                                                   \
		old_;                                                                              \
	})
#define wf_exchange(p, v) WF_MODEL_RMW(p, v, "exchange", arg_)
#define wf_exchange_seq_cst(p, v) WF_MODEL_RMW(p, v, "exchange", arg_)
#define wf_fetch_add(p, v) WF_MODEL_RMW(p, v, "fetch_add", old_ + arg_)
#define wf_fetch_add_relaxed(p, v) WF_MODEL_RMW(p, v, "fetch_add", old_ + arg_)
#define wf_fetch_sub(p, v) WF_MODEL_RMW(p, v, "fetch_sub", old_ - arg_)
#define wf_fetch_or(p, v) WF_MODEL_RMW(p, v, "fetch_or", old_ | arg_)
#define wf_fetch_and(p, v) WF_MODEL_RMW(p, v, "fetch_and", old_ &arg_)

#define wf_cas(p, expected, desired)                                                               \
	({                                                                                         \
		__typeof__(p) at_ = (p);                                                           \
		__typeof__(*(p)) *expect_ = (expected), want_ = (desired), found_;                 \
		bool hit_;                                                                         \
		model_rmw(__func__, "cas", at_);                                                   \
		found_ = *at_;                                                                     \
		hit_ = found_ == *expect_;                                                         \
		if (hit_) {                                                                        \
			model_tear(__func__, "cas");                                               \
			*at_ = want_;                                                              \
		} else {                                                                           \
			*expect_ = found_;                                                         \
		}                                                                                  \
		hit_;                                                                              \
	})

#define wf_fence_seq_cst(p) ((void)(p), model_fence(__func__))

#define wf_lock_taken() ((void)0)

#endif
