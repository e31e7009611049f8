# The commands of this project. `make` alone lists them.

TRACE  := examples/traces/postgres-sector34.txt.gz
REPORT := target/report
PLUMB  := target/release/plumb
BUILT  := $(or $(CARGO_TARGET_DIR),target)/debug/plumb
PREFIX ?= /usr/local
# Findings (1) and unknowns (3) are answers, no failures.
ANSWERED := || status=$$?; case $${status:-0} in 0|1|3) ;; *) echo "plumb ended with status $$status" >&2; exit $$status ;; esac

.PHONY: help run demo build static dist apt-tree yum-tree dist-check test-ship test-foreign test-fleet test-kernels test-reproducible install uninstall check test bench soak torture \
  fuzz docs clean
.DEFAULT_GOAL := help

help: ## List the commands
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

run: build ## Build Plumb and diagnose this machine: its layout, and 10 s of its I/O; as the present user, and read-only
	@mkdir -p $(REPORT)
	@$(PLUMB) diagnose --for 10s --html $(REPORT)/this-host.html $(ANSWERED)
	@echo
	@echo "The same with pictures: $(REPORT)/this-host.html"

demo: build ## Build Plumb and analyze a recorded trace of PostgreSQL on a misaligned partition
	@mkdir -p $(REPORT)
	@$(PLUMB) analyze $(TRACE) --html $(REPORT)/postgres-sector34.html $(ANSWERED)
	@echo
	@echo "The same with pictures: $(REPORT)/postgres-sector34.html"

build: ## Build target/release/plumb
	@scripts/setup run
	PLUMB_COMMIT=$$(scripts/commit) cargo build --release --locked -p plumb

static: ## Build a binary that needs no libraries, for any Linux of this processor
	@scripts/static

dist: ## Make the packages of a release: tarball, .deb, .rpm, image, source, list of libraries, sums
	@scripts/dist

apt-tree: ## Make a signed repository for apt of the packages in target/packages: make apt-tree KEY=FILE
	@scripts/setup repository
	@scripts/repository apt "$(KEY)"

yum-tree: ## The same for dnf and yum
	@scripts/setup repository
	@scripts/repository yum "$(KEY)"

dist-check: ## Check the libraries and the workflows; installs cargo-deny and actionlint
	@scripts/setup supply
	@scripts/supply

test-ship: ## Install the packages in small systems of Debian: install, upgrade, remove, purge; needs root
	@scripts/setup ship
	@scripts/static x86_64
	@scripts/static aarch64
	@scripts/test-ship target/$$(uname -m)-unknown-linux-musl/dist/plumb

test-foreign: ## Compare the static binary of the other processor, emulated, with that of this one: help, and answers from files
	@scripts/setup foreign
	@scripts/static x86_64
	@scripts/static aarch64
	@case $$(uname -m) in x86_64) set -- aarch64 x86_64 ;; *) set -- x86_64 aarch64 ;; esac; \
	 scripts/test-foreign qemu-$$1-static target/$$1-unknown-linux-musl/dist/plumb target/$$2-unknown-linux-musl/dist/plumb

test-fleet: ## Run contrib/fleet and the queries of docs/fleet.md: schedulers, Spark, Sail, DuckDB, ClickHouse; installs them into target
	@scripts/setup fleet
	scripts/with-lints cargo build --quiet --locked --workspace --bin plumb --example label_seeds
	@scripts/test-fleet $(BUILT)

test-kernels: ## Run each command on nine kernels, in guests of both processors and on this host: 13 minutes; needs root
	@scripts/setup test
	@scripts/test-kernels

test-reproducible: ## Build the static binary of this commit twice, in two folders, and compare the bytes
	@scripts/test-reproducible

install: ## Install the program of make build, with pages, completions and units, below PREFIX (/usr/local); DESTDIR goes before it
	@[ -x "$(PLUMB)" ] || { echo "found no $(PLUMB): run make build first" >&2; exit 1; }
	@scripts/install $(PLUMB) $(PREFIX)

uninstall: ## Remove what make install installed
	@scripts/install --remove $(PREFIX)

check: ## Format, lints, documentation, and all tests that need no root and no device: some minutes
	@scripts/setup check
	@scripts/test check

test: ## The same with the tests on devices and in guests; installs the tools that it needs
	@scripts/setup test
	@scripts/test

bench: ## Speed beside the peers, paired; prints medians and spread
	@scripts/setup bench
	cargo build --profile dist --locked -p plumb -p plumb-testkit
	cargo build --profile dist --locked -p plumb-trace --example synthetic_parquet
	cargo build --profile dist --locked -p plumb-fleet --example day_tier
	cargo build --profile dist --locked -p plumb-stack --example collect
	cargo build --profile dist --locked -p plumb-history --example year
	cargo build --profile dist --locked -p plumb-capture --example cost
	@scripts/static
	python3 bench/run.py

soak: ## Long proofs: how often probes are right, memory over 500 million events, kills of moves and of a history's writer
	@scripts/setup test
	@scripts/setup static
	scripts/soak

torture: ## 100 million crashes of moves on simulated disks, some hours; with PLUMB_TORTURE_SHARE=1/4 the first quarter of them
	@scripts/setup run
	cargo test --locked -p plumb-relocate --lib -- --ignored --nocapture every_fault_with_other_seeds mistakes:: every_crash_point_a_hundred_times

fuzz: ## Every reader against a fuzzer: 2 minutes each, binary and compressed ones 10
	@scripts/setup fuzz
	scripts/fuzz

# An example adds the features of the tests, so that cargo uses the dependencies of their build. The second run knows the
# entries that the first one added to the lists.
docs: ## Write the generated files: manual pages, completions, tables, dictionaries, lists of modules, rules and formats
	scripts/with-lints cargo build --quiet --locked --workspace --bin plumb --example label_seeds
	$(BUILT) generate --repository .
	scripts/with-lints cargo build --quiet --locked --workspace --bin plumb --example label_seeds
	$(BUILT) generate --repository .

clean: ## Remove what was built
	cargo clean
