/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libweft's headers for C++ share. Not to be included by itself.
 */
#ifndef WEFT_BASE_HPP
#define WEFT_BASE_HPP

#if __cplusplus < 202002L
#error "libweft's headers for C++ need C++20"
#endif

#include <cxxabi.h>
#include <weft/base.h>

namespace weft::detail
{

/* What libc unwinds a thread by, in pthread_exit() and pthread_cancel(), is to be thrown on as well. */
#ifdef __GLIBCXX__
using forced_unwind = abi::__forced_unwind;
#else
struct forced_unwind {
	forced_unwind() = delete;
};
#endif

} // namespace weft::detail

#endif
