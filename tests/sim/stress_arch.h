// SPDX-License-Identifier: Apache-2.0
/*
 * Included before everything when the core is built for tests/sim/stress.c: kernel threads are pthreads and
 * every switch is announced to the sanitizers.
 */
#ifndef WF_TESTS_STRESS_ARCH_H
#define WF_TESTS_STRESS_ARCH_H

#define wf_arch_switch stress_arch_switch
#define wf_arch_switch_last stress_arch_switch_last
#define wf_arch_set_tls stress_arch_set_tls
#define wf_arch_get_tls stress_arch_get_tls
#define wf_arch_spawn_kthread stress_arch_spawn_kthread

#endif
