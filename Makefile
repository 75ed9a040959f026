# SPDX-License-Identifier: Apache-2.0
# Thin front door: meson and the scripts of tools/ do the work.

BUILD := build
PREFIX := /usr/local
DESTDIR :=
N := 20
MESON_ARGS :=
MUTANTS :=

# The whole of the fast suites takes minutes; the multiplier is for loaded machines. Two more at a time than there are
# processors, since most of what the longest ones do is waiting.
TEST_JOBS := $(shell expr $$(nproc) + 2)
TEST_ARGS := --print-errorlogs --timeout-multiplier 4 --num-processes $(TEST_JOBS)
# Whatever still runs then is named and killed, with everything that the tests left behind.
TEST_LIMIT_S := 1500
TEST_SUITES := --no-suite stress --no-suite slow --no-suite bench

.PHONY: all demo test check mutants format bench distros kernels deb soak install uninstall clean deps deps-test

all: deps $(BUILD)/build.ninja
	@tools/note-new-tests $(BUILD)
	ninja -C $(BUILD)

deps:
	@tools/install-deps build

deps-test:
	@tools/install-deps build test

$(BUILD)/build.ninja:
	meson setup $(BUILD) $(MESON_ARGS)

# Without the tests, which are most of what there is to build.
demo: deps $(BUILD)/build.ninja
	ninja -C $(BUILD) demo
	@tools/demo $(BUILD)

test: deps-test all
	@tools/leash $(TEST_LIMIT_S) meson test -C $(BUILD) --no-rebuild $(TEST_ARGS) $(TEST_SUITES)

check: all
	@tools/install-deps check
	@tools/check $(BUILD)

# Single-place changes of the runtime, one at a time: which tests notice? MUTANTS='--random 10' or a part of a file's name for some.
mutants: deps-test
	@tools/mutants $(MUTANTS)

format:
	@tools/install-deps check
	@tools/check --format

# What needs no other program; the folders of bench/ have more.
bench: all
	$(BUILD)/cmd/weft/weft bench io-models

distros: all
	@tools/install-deps distros
	@tools/distros $(BUILD)

kernels: all
	@tools/install-deps distros kernels
	@tools/kernels $(BUILD)

# The Debian package, in build-deb/; tools/deb-check tries it in fresh roots.
deb:
	@tools/install-deps build deb
	@tools/deb build-deb

# The abi suite N times: what fails once in a thousand runs shows here.
soak: all
	tests/abi/run-all.py $(BUILD)/soak --weft $(BUILD)/cmd/weft/weft --times $(N)

# prefix is an option of the build folder: a change of PREFIX configures again, which is cheap.
install: all
	meson configure $(BUILD) -Dprefix=$(PREFIX)
	DESTDIR=$(DESTDIR) meson install -C $(BUILD)

# What the last `make install` of this build folder has put there.
uninstall:
	ninja -C $(BUILD) uninstall

clean:
	rm -rf $(BUILD)
