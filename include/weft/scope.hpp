/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scopes: deadlines and cancellation that reach into whatever is called. See weft.hpp(7), weft_scope(3).
 *
 *	weft::scope s(50ms, "lookup");
 */
#ifndef WEFT_SCOPE_HPP
#define WEFT_SCOPE_HPP

#include <weft/base.hpp>
#include <weft/scope.h>

#include <string>

namespace weft
{

/* From its declaration to the end of its block. By the thread that has declared it, but for cancel(). */
class scope
{
	weft_scope s;

      protected:
	struct shielded {
	};

	scope(shielded, deadline until, const char *name) noexcept
	{
		weft_scope_shield(&s, until.time(), name);
	}

      public:
	explicit scope(deadline until = {}, const char *name = nullptr) noexcept
	{
		weft_scope_open(&s, until.time(), name);
	}

	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;

	~scope()
	{
		(void)weft_scope_close(&s);
	}

	/* From any thread, while it is there. */
	void cancel() noexcept
	{
		weft_scope_cancel(&s);
	}

	/* For loops that compute: throws when it is over, or one around it. */
	void check() const
	{
		detail::check(weft_scope_check());
	}

	/* Where it ended a call, last; empty: nowhere. */
	std::string why() const
	{
		char text[256];

		(void)weft_scope_why(&s, text, sizeof(text));
		return text;
	}
};

/* The scopes around it do not reach in: for cleanup that has to wait. */
class shield : public scope
{
      public:
	explicit shield(deadline until, const char *name = nullptr) noexcept
	    : scope(shielded{}, until, name)
	{
	}
};

} // namespace weft

#endif
