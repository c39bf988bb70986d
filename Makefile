# What people type. The build itself is CMake's (CMakeLists.txt, CMakePresets.json).

PREFIX     ?= /usr/local
SYSCONFDIR ?= /etc
BINDIR      = $(PREFIX)/bin
MANDIR      = $(PREFIX)/share/man
UNITDIR     = $(PREFIX)/lib/systemd/system
BINARY      = build/release/larder
SECONDS    ?= 300
POINTS     ?= 1000
OPERATIONS ?= 1000000
DRAWS      ?= 1000000
STEP       ?= 1

.DEFAULT_GOAL := help
.PHONY: help run build check test torture crash-long numbers-long databases-long consistency-long tables-long bench bench-databases bench-servers soak count-instructions install uninstall lint format docs clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' $(MAKEFILE_LIST) | expand -t 20

run: ## install what is missing, build, and start the server here (ARGS="--port 7000")
	scripts/install-packages build
	$(MAKE) --no-print-directory build
	$(BINARY) $(ARGS)

build: ## the release build, build/release/larder
	@cmake --preset release > /dev/null
	@cmake --build --preset release --target larder

check: ## what to run before a commit: the dev build, C tests, format, a choice of the others (under 3 minutes)
	scripts/test unit-dev lint quick

test: ## install what is missing and run every test and check (STEPS="unit-dev lint" for some)
	scripts/install-packages test
	scripts/test $(STEPS)

torture: build ## kill servers and databases 1,000 times under load, and compare (ARGS="--kills 50 --only postgres")
	LARDER_BINARY=$(CURDIR)/$(BINARY) tests/torture/run.py $(ARGS)

crash-long: build ## 1,000 simulated power losses, and kill -9 at every call (some minutes)
	@cmake --preset dev > /dev/null
	@cmake --build --preset dev --target crash_recorder crash_replay redo_power_test
	LARDER_REDO_TIMES=12 build/dev/tests/redo_power_test
	LARDER_BINARY=$(CURDIR)/$(BINARY) LARDER_CRASH_POINTS=$(POINTS) LARDER_CRASH_KILL_STEP=$(STEP) /usr/bin/python3 -m pytest \
	    -c tests/pytest.ini -p no:cacheprovider -s tests/crash/test_power.py tests/crash/test_kill.py tests/crash/test_renumbering.py \
	    tests/crash/test_windows.py

numbers-long: ## whether a million random draws from collections with holes are even (DRAWS=1000000)
	@cmake --preset dev > /dev/null
	@cmake --build --preset dev --target numbers_test
	LARDER_TEST_DRAWS=$(DRAWS) build/dev/tests/numbers_test

databases-long: build ## servers and databases that fail for minutes under 256 clients (SECONDS=300 on each)
	LARDER_BINARY=$(CURDIR)/$(BINARY) LARDER_HOSTILE_SECONDS=$(SECONDS) LARDER_HOSTILE_CLIENTS=256 \
	    /usr/bin/python3 -m pytest -c tests/pytest.ini -p no:cacheprovider -s tests/databases
	for kind in postgres mariadb; do \
	    LARDER_BINARY=$(CURDIR)/$(BINARY) LARDER_TEST_STORE=$$kind LARDER_CRASH_FACTOR=5 /usr/bin/python3 -m pytest \
	        -c tests/pytest.ini -p no:cacheprovider tests/crash/test_crash.py tests/crash/test_queues.py || exit 1; \
	done

consistency-long: build ## reads in every mode while replicas and their primary fail, for minutes (SECONDS=300 on each)
	LARDER_BINARY=$(CURDIR)/$(BINARY) LARDER_CONSISTENCY_SECONDS=$(SECONDS) LARDER_CONSISTENCY_TIMES=2 \
	    /usr/bin/python3 -m pytest -c tests/pytest.ini -p no:cacheprovider -s tests/databases/test_consistency.py

tables-long: build ## a million random steps on tables, beside SQLite's own (OPERATIONS=1000000 on each database)
	for kind in sqlite postgres mariadb; do \
	    LARDER_BINARY=$(CURDIR)/$(BINARY) LARDER_TEST_STORE=$$kind LARDER_ORACLE_STEPS=$(OPERATIONS) /usr/bin/python3 -m pytest \
	        -c tests/pytest.ini -p no:cacheprovider -s tests/compat/test_table_oracle.py || exit 1; \
	done

bench: build ## compare with redis-server on this machine (ARGS="--scale 0.1" for a quick look)
	tests/bench/bench.py $(ARGS)

bench-databases: build ## compare with what an application does itself on PostgreSQL and MariaDB
	tests/bench/databases_bench.py $(ARGS)

bench-servers: build ## reads in each mode with 0, 1 and 2 replicas, beside one statement for each (ARGS="--scale 0.1")
	tests/bench/modes_bench.py $(ARGS)

soak: build ## write flat out for five minutes beside quiet clients, and judge bounds (ARGS="--seconds 60")
	tests/bench/soak.py $(ARGS)

count-instructions: build ## instructions of a command, by part of the server, under valgrind (ARGS="--only GET --top 20")
	tests/bench/instructions.py $(ARGS)

install: build ## binary, man page, systemd unit, config file (PREFIX, SYSCONFDIR, DESTDIR)
	install -D -m 755 $(BINARY) $(DESTDIR)$(BINDIR)/larder
	install -D -m 644 docs/larder.1 $(DESTDIR)$(MANDIR)/man1/larder.1
	install -d $(DESTDIR)$(UNITDIR)
	sed 's|/usr/local/bin|$(BINDIR)|; s|/etc/|$(SYSCONFDIR)/|' packaging/larder.service \
	    > $(DESTDIR)$(UNITDIR)/larder.service
	test -e $(DESTDIR)$(SYSCONFDIR)/larder/larder.conf || \
	    install -D -m 644 larder.conf $(DESTDIR)$(SYSCONFDIR)/larder/larder.conf

uninstall: ## what install put there, but for the config file
	rm -f $(DESTDIR)$(BINDIR)/larder $(DESTDIR)$(MANDIR)/man1/larder.1 $(DESTDIR)$(UNITDIR)/larder.service

lint: ## clang-format, clang-tidy, cppcheck, directions of includes, man page (CHECKS="format tidy" for some)
	scripts/lint $(CHECKS)

format: ## format the C files in place
	clang-format -i $(wildcard src/*.c src/*/*.[ch] src/*/*/*.[ch] tests/*.h tests/*/*.[ch])

docs: build ## write the pages anew that come from the program's tables
	$(BINARY) config > larder.conf
	$(BINARY) config --markdown > docs/configuration.md
	$(BINARY) commands > docs/commands.md

clean: ## remove everything that was built
	rm -rf build tests/clients/node_modules tests/harness/postgres18/node_modules
