// SPDX-License-Identifier: Apache-2.0
// A generator that yields from a recursion: the files below a folder, with how large they are; as many as are asked for.
//
// Usage: generator [folder [number]]
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <weft/weft.hpp>

namespace fs = std::filesystem;

struct file {
	fs::path path;
	std::uintmax_t bytes;
};

static void walk(const fs::path &folder, weft::generator<file>::yield yield)
{
	std::error_code e;

	for (const fs::directory_entry &entry : fs::directory_iterator(folder, e)) {
		if (entry.is_symlink(e))
			continue;
		if (entry.is_directory(e))
			walk(entry.path(), yield);
		else
			yield(file{ entry.path(), entry.file_size(e) });
	}
}

int main(int argc, char **argv)
{
	const fs::path folder = argc > 1 ? argv[1] : ".";
	long left = argc > 2 ? std::atol(argv[2]) : 10;

	// The open folders are closed when the loop is left, since the generator's stack is unwound.
	for (const file &f :
	     weft::generator<file>([&](auto yield) { walk(folder, yield); }, "walk")) {
		if (left-- == 0)
			break;
		std::cout << f.bytes << '\t' << f.path.string() << '\n';
	}
}
