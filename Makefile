# weightfs: `make help` lists the targets and the variables.
#
# Everything is built under $(BUILD); two builds with different BUILD do not disturb each other:
#     make BUILD=build/asan SANITIZE=address,undefined
#     make BUILD=build/clang CC=clang

VERSION := 1.0.0
SOVERSION := 1

# ---- variables a user may set -------------------------------------------------------------------------------------

# CFLAGS, CPPFLAGS, LDFLAGS: added after ours, so they win.
CFLAGS ?= -O2 -g
CPPFLAGS ?=
LDFLAGS ?=
AR ?= ar
PKGCONF ?= pkg-config
# BUILD: where everything is built. V=1: show the commands. WERROR=1: warnings are errors.
BUILD ?= build
V ?= 0
WERROR ?= 0
# SANITIZE: for -fsanitize=, such as address,undefined or thread.
SANITIZE ?=
# Where `make install` puts things; DESTDIR goes before each. mount(8) looks for its helpers in /sbin only.
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
SBINDIR ?= $(PREFIX)/sbin
LIBDIR ?= $(PREFIX)/lib
INCDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
MOUNTHELPERDIR ?= /sbin
DESTDIR ?=
# FUZZ_SECONDS: how long `make fuzz` runs each target. SRC: the model `make demo` uses instead of its own.
# BENCH_ARGS: options of tests/bench/bench.py.
FUZZ_SECONDS ?= 60
SRC ?=
BENCH_ARGS ?=

# ---- flags --------------------------------------------------------------------------------------------------------

cc-option = $(shell if $(CC) $(1) -Werror -c -x c /dev/null -o /dev/null 2>/dev/null; then echo $(1); fi)

ifeq ($(V),1)
  quiet =
else
  # `make -s` shows nothing but warnings.
  quiet = @$(if $(findstring s,$(firstword -$(MAKEFLAGS))),,printf '  %-7s %s\n' '$(1)' '$@';)
  MAKEFLAGS += --no-print-directory
endif

# Floating point must give the same bits everywhere (codec/FORMAT.md 3): no contraction, never -ffast-math.
WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wundef -Wpointer-arith -Wwrite-strings -Wstrict-prototypes \
	-Wmissing-prototypes -Wformat=2 -Wnull-dereference $(call cc-option,-Wimplicit-fallthrough)
# gcc 12 follows paths through inlined loops that cannot be taken; clang's analysis is exact or silent.
ifeq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)
  WARNINGS := $(filter-out -Wnull-dereference,$(WARNINGS))
endif
ifeq ($(WERROR),1)
  WARNINGS += -Werror
endif
HARDENING := -fstack-protector-strong $(call cc-option,-fstack-clash-protection)
ifneq ($(filter -O1 -O2 -O3 -Os,$(CFLAGS)),)
  ifeq ($(SANITIZE),)
    HARDENING += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
  endif
endif
SANITIZER := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all)

# One set of objects serves the programs, the static and the shared library, so all is position-independent.
override CFLAGS := -std=gnu11 -pthread -fPIC -fvisibility=hidden -ffp-contract=off -fno-strict-aliasing \
	$(WARNINGS) $(HARDENING) $(SANITIZER) $(CFLAGS)
override CPPFLAGS := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Icodec $(CPPFLAGS)
override LDFLAGS := -pthread -Wl,-z,relro,-z,now -Wl,--as-needed $(SANITIZER) $(LDFLAGS)
CODEC_LIBS := -lcrypto -llz4
# Asked for only by the rules that need them, so that the codec builds without libfuse.
FUSE_CPPFLAGS = -DFUSE_USE_VERSION=314 $(shell $(PKGCONF) --cflags fuse3)
FUSE_LIBS = $(shell $(PKGCONF) --libs fuse3)

# ---- what there is ------------------------------------------------------------------------------------------------

objects = $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard $(1))))

CODEC_OBJ := $(call objects,codec/*.c)
FS_OBJ := $(call objects,fs/*.c)
TOOLS_OBJ := $(call objects,mount-tools/*.c)
# A main of its own each, linked with the archives of all else, private symbols included.
UNITS := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/unit/test_*.c)))
FUZZERS := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
TEST_TOOLS := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/tools/*.c tests/fs/*.c)))
BENCH_TOOLS := $(BUILD)/tests/bench/reader $(BUILD)/tests/bench/null_daemon
MANPAGES := $(sort $(wildcard man/*.[1-9]))

LIBS := $(BUILD)/libwfs.a $(BUILD)/libwfs.so
PROGRAMS := $(if $(FS_OBJ),$(BUILD)/weightfsd) $(if $(TOOLS_OBJ),$(BUILD)/weightfs $(BUILD)/mount.weightfs)

all: $(LIBS) $(PROGRAMS)
libs: $(LIBS)
tests: all units $(FUZZERS) $(TEST_TOOLS) $(BENCH_TOOLS)
units: $(UNITS)

# ---- compile ------------------------------------------------------------------------------------------------------

# Everything is compiled anew when a flag changes, the one file that knows where programs are when that changes.
CONFIG := $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)
DIRS_CONFIG := $(SBINDIR) $(BINDIR)
stamp = @mkdir -p $(@D); \
	printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(1))' > $@
$(BUILD)/.build-config: FORCE
	$(call stamp,$(CONFIG))
$(BUILD)/.dirs-config: FORCE
	$(call stamp,$(DIRS_CONFIG))
$(BUILD)/mount-tools/daemon.o: $(BUILD)/.dirs-config

$(BUILD)/fs/%.o: PART_CPPFLAGS = $(FUSE_CPPFLAGS)
$(BUILD)/mount-tools/daemon.o: PART_CPPFLAGS = -DBINDIR='"$(BINDIR)"' -DSBINDIR='"$(SBINDIR)"'
$(BUILD)/tests/%.o: PART_CPPFLAGS = -I. -Ifs -Itests $(FUSE_CPPFLAGS)
# Fuzzers and tests have entry points that no header declares.
$(BUILD)/tests/%.o: PART_CFLAGS = -Wno-missing-prototypes

$(BUILD)/%.o: %.c $(BUILD)/.build-config
	@mkdir -p $(@D)
	$(call quiet,CC)$(CC) $(PART_CPPFLAGS) $(CPPFLAGS) $(CFLAGS) $(PART_CFLAGS) -MMD -MP -c -o $@ $<

# ---- link ---------------------------------------------------------------------------------------------------------

archive = $(call quiet,AR)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/libwfs.a: $(CODEC_OBJ)
	$(archive)
# Everything but the main functions: tests link these too.
$(BUILD)/fs.a: $(filter-out %/main.o,$(FS_OBJ))
	$(archive)
$(BUILD)/tools.a: $(filter-out %/weightfs.o %/mount_weightfs.o,$(TOOLS_OBJ))
	$(archive)

$(BUILD)/libwfs.so.$(SOVERSION): $(CODEC_OBJ)
	$(call quiet,LD)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ $(CODEC_LIBS)
$(BUILD)/libwfs.so: $(BUILD)/libwfs.so.$(SOVERSION)
	$(call quiet,LN)ln -sf $(<F) $@

link = $(call quiet,LD)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^)

$(BUILD)/weightfsd: $(BUILD)/fs/main.o $(BUILD)/fs.a $(BUILD)/libwfs.a
	$(link) $(FUSE_LIBS) $(CODEC_LIBS)
$(BUILD)/weightfs: $(BUILD)/mount-tools/weightfs.o $(BUILD)/tools.a $(BUILD)/libwfs.a
	$(link) $(CODEC_LIBS) -lm
$(BUILD)/mount.weightfs: $(BUILD)/mount-tools/mount_weightfs.o $(BUILD)/tools.a $(BUILD)/libwfs.a
	$(link) $(CODEC_LIBS)

# Tests of the daemon's parts: test_fs_*.c and these. The others need no libfuse and no working fs/.
FS_UNITS := $(filter %/test_cache,$(UNITS)) $(filter $(BUILD)/tests/unit/test_fs_%,$(UNITS))
$(FS_UNITS): $(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/fs.a $(BUILD)/libwfs.a
	$(link) $(FUSE_LIBS) $(CODEC_LIBS)
$(filter-out $(FS_UNITS),$(UNITS)) $(TEST_TOOLS): %: %.o $(BUILD)/libwfs.a
	$(link) $(CODEC_LIBS)

$(BUILD)/tests/bench/reader: $(call objects,tests/bench/reader*.c)
	$(link)
$(BUILD)/tests/bench/null_daemon: $(call objects,tests/bench/null_*.c) $(BUILD)/libwfs.a
	$(link) $(FUSE_LIBS) $(CODEC_LIBS)

# With FUZZ=1 (set by `make fuzz`) libFuzzer drives the targets, else replay.c runs them over the files given.
ifeq ($(FUZZ),1)
$(FUZZERS): LDFLAGS += -fsanitize=fuzzer
else
FUZZ_MAIN := $(BUILD)/tests/fuzz/replay.o
endif
FS_FUZZERS := $(filter %/fuzz_opts,$(FUZZERS))
$(FS_FUZZERS): %: %.o $(FUZZ_MAIN) $(BUILD)/fs.a $(BUILD)/libwfs.a
	$(link) $(FUSE_LIBS) $(CODEC_LIBS)
$(filter-out $(FS_FUZZERS),$(FUZZERS)): %: %.o $(FUZZ_MAIN) $(BUILD)/libwfs.a
	$(link) $(CODEC_LIBS)

# ---- check --------------------------------------------------------------------------------------------------------

# Each installs what it lacks first. TESTS="units cli" runs only those.
check:
	@tests/deps.sh check
	@BUILD='$(BUILD)' tests/run-tests.sh $(TESTS)
check-vm:
	@tests/deps.sh vm
	@$(MAKE) all
	@BUILD='$(BUILD)' tests/vm/run.sh $(TESTS)
lint:
	@tests/deps.sh lint
	@BUILD='$(BUILD)' tests/lint/lint.sh
fuzz:
	@tests/deps.sh fuzz
	@BUILD='$(BUILD)' tests/fuzz/run.sh $(FUZZ_SECONDS)
demo:
	@tests/deps.sh demo
	@$(MAKE) all
	@BUILD='$(BUILD)' tests/demo/demo.sh '$(SRC)'
bench:
	@tests/deps.sh demo
	@$(MAKE) all $(BENCH_TOOLS)
	@BUILD='$(BUILD)' tests/bench/bench.sh $(BENCH_ARGS)

# ---- install ------------------------------------------------------------------------------------------------------

PKGCONFIG_FILE := $(DESTDIR)$(LIBDIR)/pkgconfig/libwfs.pc

install: all
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(SBINDIR) $(DESTDIR)$(MOUNTHELPERDIR) $(DESTDIR)$(LIBDIR)/pkgconfig \
		$(DESTDIR)$(INCDIR)
	install -m755 $(BUILD)/weightfs $(DESTDIR)$(BINDIR)
	install -m755 $(BUILD)/weightfsd $(DESTDIR)$(SBINDIR)
	install -m755 $(BUILD)/mount.weightfs $(DESTDIR)$(MOUNTHELPERDIR)
	install -m644 $(BUILD)/libwfs.a $(DESTDIR)$(LIBDIR)
	install -m755 $(BUILD)/libwfs.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)
	ln -sf libwfs.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libwfs.so
	install -m644 codec/wfs.h $(DESTDIR)$(INCDIR)
	printf '%s\n' 'Name: libwfs' 'Description: reads and writes weightfs containers' 'Version: $(VERSION)' \
		'Libs: -L$(LIBDIR) -lwfs' 'Libs.private: $(CODEC_LIBS) -pthread' 'Cflags: -I$(INCDIR)' > $(PKGCONFIG_FILE)
	for page in $(MANPAGES); do \
		install -D -m644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/} || exit 1; done

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/weightfs $(DESTDIR)$(SBINDIR)/weightfsd $(DESTDIR)$(MOUNTHELPERDIR)/mount.weightfs
	rm -f $(DESTDIR)$(LIBDIR)/libwfs.a $(DESTDIR)$(LIBDIR)/libwfs.so $(DESTDIR)$(LIBDIR)/libwfs.so.$(SOVERSION)
	rm -f $(DESTDIR)$(INCDIR)/wfs.h $(PKGCONFIG_FILE)
	for page in $(MANPAGES); do rm -f $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/}; done

clean:
	rm -rf $(BUILD)

help:
	@echo 'Targets:'
	@echo '  all        libraries, weightfs, weightfsd, mount.weightfs (the default)'
	@echo '  demo       pack a real model, mount it, load it and compare; SRC=DIR: your own model'
	@echo '  bench      measure reading through a mount beside its limits; BENCH_ARGS=--help'
	@echo '  check      install what is missing, build, run all tests; TESTS="NAME...": some of them'
	@echo '  check-vm   tests that take a kernel of their own (NFS, failing disks), in a virtual machine; TESTS="NAME..."'
	@echo '  lint       format, static analysis, shell scripts, layers, exported symbols'
	@echo '  fuzz       run each fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo '  tests      build the test programs without running them'
	@echo '  install, uninstall, clean'
	@echo 'Variables (with their values now):'
	@echo '  CC=$(CC) BUILD=$(BUILD) V=$(V) WERROR=$(WERROR) SANITIZE=$(SANITIZE) PKGCONF=$(PKGCONF)'
	@echo '  PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) MOUNTHELPERDIR=$(MOUNTHELPERDIR)'
	@echo '  BINDIR SBINDIR LIBDIR INCDIR MANDIR (below PREFIX)'
	@echo '  CFLAGS CPPFLAGS LDFLAGS (added after our own)'

FORCE:
.PHONY: all libs tests units check check-vm lint fuzz demo bench install uninstall clean help FORCE
.DELETE_ON_ERROR:
# The objects of the test programs are kept.
.SECONDARY:

-include $(patsubst %.o,%.d,$(CODEC_OBJ) $(FS_OBJ) $(TOOLS_OBJ))
-include $(patsubst %,%.d,$(UNITS) $(FUZZERS) $(TEST_TOOLS)) $(BUILD)/tests/fuzz/replay.d
-include $(patsubst %.c,$(BUILD)/%.d,$(wildcard tests/bench/*.c))
