/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of libweft for C++20. See weft.hpp(7).
 *
 * Exceptions go where a caller expects them: out of a generator to whoever asks it for the next value, out of a task to whoever
 * joins it, out of a group to whoever waits for it. What is over throws weft::timed_out or weft::canceled; POSIX calls return -1
 * as ever. Destructors never throw.
 */
#ifndef WEFT_WEFT_HPP
#define WEFT_WEFT_HPP

#include <weft/await.hpp>
#include <weft/chan.hpp>
#include <weft/fiber.hpp>
#include <weft/group.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>
#include <weft/thread.hpp>

#endif
