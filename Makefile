# sojourn: `make demo` gives a first result, `make test` checks everything. Neither needs root; the network is used by
# pip and cargo only, the first time. Every recipe also works by hand.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# The oldest Rust that has what the crates use (edition 2024, let chains).
RUST   := 1.88

# Tests start hundreds of Pythons, and each would compile polars, matplotlib and all else that it
# imports, were it told to keep nothing of it.
unexport PYTHONDONTWRITEBYTECODE

# The engine that was built last, for what any will do; a fresh clone builds the release.
ENGINE := $(firstword $(wildcard $(VENV)/.dev $(VENV)/.guided $(VENV)/.installed) $(VENV)/.installed)
PACKAGES := sojourn sojourn-live sojourn-papers

RUST_SOURCES   := $(shell find sojourn/crates sojourn-live/crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
CORE_SOURCES   := $(filter-out sojourn-live/%,$(RUST_SOURCES))

# For recipes of several checks: `check COMMAND...` goes on after a failure, and the ending says what failed.
# `kept FILE COMMAND...` keeps what the command prints in a file as well.
CHECKS = check() { printf '\n== %s\n' "$$*"; begun=$$(date +%s); "$$@" || failed="$$failed  $$*\n"; \
    printf -- '-- %s s: %s\n' $$(($$(date +%s) - begun)) "$$*"; }; \
  kept() { to=$$1; shift; { "$$@" 2>&1; echo $$? >$$to.status; } | tee $$to; return $$(cat $$to.status); }
ENDING = if [ -n "$$failed" ]; then printf "\nfailed:\n$$failed"; exit 1; fi

.PHONY: help setup guided lab dev check test-fast test-core test-live test-papers test-long beside portable probe wheel wheels wheelhouse demo papers site test bench bench-quick validate clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo      set up, then compare pfifo, RED, CoDel, PIE, fq_codel and cake on a home uplink: demo/report.html'
	@echo 'make papers    set up, then reproduce the papers, published numbers beside ours: papers/index.html (five to ten minutes)'
	@echo 'make site      make the documentation as a site, with figures of runs: site/index.html (some minutes the first time)'
	@echo 'make test      format, lint, types and tests, in both languages'
	@echo 'make test-long what takes longer: long tests, papers in full, the standing sets on each kernel'
	@echo 'make dev       build what tests run into the tree; then: $(BIN)/pytest sojourn/tests/test_units.py'
	@echo 'make test-core, test-live, test-papers   the tests of one package'
	@echo 'make check     format, lint and types only; make test-fast: the quick tests only'
	@echo 'make portable  check that the simulator builds for macOS, Windows and browsers'
	@echo 'make setup     build and install into $(VENV) only; then: $(BIN)/sojourn --help'
	@echo 'make guided    the same with an engine laid out by what it runs most: a fifth faster, built twice'
	@echo 'make bench     packets per second of this machine, beside ns-2 and ns-3; make bench-quick: a minute, with instructions'
	@echo 'make lab       the page of sojourn lab: the simulator in a browser, lab.html'
	@echo 'make probe     sojourn-probe: servers and a client as one static program, without Python'
	@echo 'make validate  compare with published and measured results'
	@echo 'make clean     remove what the above made'

setup: $(VENV)/.installed

# The core alone: a first result needs neither live lines nor papers.
demo: $(firstword $(wildcard $(VENV)/.dev $(VENV)/.guided $(VENV)/.installed $(VENV)/.core) $(VENV)/.core)
	$(BIN)/sojourn compare scenarios/home-uplink.toml -o demo --force

papers: $(VENV)/.installed
	$(BIN)/sojourn reproduce -o papers --force

# The simulator in a browser, as one file.
lab: $(VENV)/.installed
	$(BIN)/sojourn lab -o lab.html --no-open

# The engine that is there will do. What is simulated is kept in target/site.
site: $(ENGINE) $(VENV)/.site
	$(BIN)/python docs/site/build.py site

# What its engine is laid out by is benches/train.py.
guided: $(VENV)/.guided

# Builds into the tree what the tests run: optimised, with overflow checks. Again after a change of Rust; Python needs none.
dev: $(VENV)/.dev

# Format, lint and types of both languages: seconds, once built.
check: $(VENV)/.tools
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || \
	  { echo 'error: needs rustfmt and clippy'; \
	    echo 'hint: rustup component add rustfmt clippy; Debian: apt-get install rustfmt-web rust-web-clippy'; exit 2; }
	@failed=; $(CHECKS); \
	check cargo fmt --all --check; \
	check cargo clippy --workspace --all-targets --profile checked --quiet -- -D warnings; \
	check $(BIN)/ruff format --check .; \
	check $(BIN)/ruff check .; \
	check $(BIN)/mypy --strict; \
	$(ENDING)

# The tests that need no guest, no real time and no paper, but for the slowest. Of one thing: .venv/bin/pytest sojourn/tests/test_units.py
test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not guest and not live and not papers and not slow and not long'

# The tests of one package, which see none that it does not depend on (conftest.py).
DIST_core   := loadgroup --reruns 1
DIST_live   := loadgroup --reruns 1
DIST_papers := loadfile
test-core test-live test-papers: test-%: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist $(DIST_$*) -m 'not long' $(if $(filter core,$*),sojourn,sojourn-$*)/tests

# What `make test` has no time for, the papers in full and `validate` among it: an hour or two. Before a
# change is called finished.
test-long: $(VENV)/.dev
	@failed=; $(CHECKS); \
	for guest in '' '--linux 7.3' --programs; do check $(BIN)/sojourn kernel setup $$guest; done; \
	check $(MAKE) --no-print-directory wheel PROFILE=checked; \
	check $(BIN)/python -m pytest -n 2 --dist worksteal -m long; \
	check $(MAKE) --no-print-directory portable; \
	check $(BIN)/sojourn reproduce -o target/papers --force; \
	check $(MAKE) --no-print-directory validate; \
	$(ENDING)

# Everything. Each check runs whatever became of the others; what failed is said last, and on success
# pytest's closing line is the last. Tests in real time wait most of the time: what they and the rest
# leave of the processors, and no more, `beside` has. What it builds is waited for before the rest,
# its papers at the end. A test in real time that fails is run once more, since another program may
# have had the processors: pytest counts it as rerun. Rust's tests in real time run with the rest of
# pytest, which gives way. In
# CI a kernel guest is made first, and none is a failure; elsewhere its tests run if there is one,
# and what was not tested is said again before the closing line.
test: $(VENV)/.dev
	@failed=; $(CHECKS); mkdir -p $(dir $(BESIDE)); rm -f $(BUILT); \
	if [ "$$CI" = true ]; then check $(BIN)/sojourn kernel setup; fi; \
	$(LEFT_OVER) $(MAKE) --no-print-directory beside >$(BESIDE) 2>&1 & beside=$$!; rust=; \
	trap 'kill $$beside $$rust 2>/dev/null' EXIT; trap 'exit 130' INT TERM; \
	check $(BIN)/python -m pytest -n 2 --dist loadgroup --reruns 1 -m 'live and not long'; \
	while [ ! -e $(BUILT) ] && kill -0 $$beside 2>/dev/null; do sleep 0.2; done; \
	{ $(RUST_TESTS) && $(RUST_DOCS); } >$(RUST_SAID) 2>&1 & rust=$$!; \
	check kept $(REST) nice -n 5 $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not live and not papers and not long'; \
	wait $$rust || failed="$$failed  $(RUST_TESTS)\n"; rust=; \
	printf '\n== %s\n' '$(RUST_TESTS)'; cat $(RUST_SAID); \
	wait $$beside || failed="$$failed  make beside\n"; trap - EXIT; \
	cat $(BESIDE); \
	$(ENDING); sed -n '/NOT TESTED/,$$p' $(REST) | grep . || tail -n 1 $(REST)

# What takes processors, and no accurate time: checks, builds, and the papers, each reproduced once
# for all tests of its file. The page's engine and the probe are each optimised as a whole, on one
# processor: beside each other and the crates' tests. BUILT is there when everything is built that
# other tests run.
BESIDE     := target/beside.log
BUILT      := $(BESIDE:.log=.built)
REST       := $(BESIDE:.log=.rest)
RUST_SAID  := $(BESIDE:.log=.rust)
PROBE_SAID := $(BESIDE:.log=.probe)
LAB_SAID   := $(BESIDE:.log=.lab)
# Tests and examples, not the documentation's: those follow for the crates that have some, since cargo
# takes a second for each crate. The extension has no tests of its own, but what it asks of other people's
# crates holds for the whole workspace: without it serde would be built once more, and all that uses it.
RUST_TESTS := cargo test --config sojourn/crates/tests.toml --workspace --profile checked --no-fail-fast --tests --examples
DOCUMENTED := $(shell grep -rlE --include=*.rs '//[/!] ```rust' sojourn/crates sojourn-live/crates | cut -d/ -f3 | sort -u)
RUST_DOCS  := cargo test --config sojourn/crates/tests.toml --profile checked --doc $(addprefix -p ,$(DOCUMENTED))
LEFT_OVER  := $(shell chrt --idle 0 true 2>/dev/null && echo chrt --idle 0 || echo nice -n 19)
beside: $(VENV)/.dev
	@failed=; $(CHECKS); \
	if command -v rustup >/dev/null; then rustup target add $(BROWSER) $(PROBE_TARGET) 2>/dev/null || true; fi; \
	$(MAKE) --no-print-directory probe >$(PROBE_SAID) 2>&1 & probe=$$!; \
	$(MAKE) --no-print-directory $(LAB) >$(LAB_SAID) 2>&1 & lab=$$!; \
	check $(RUST_TESTS) --no-run --quiet; \
	wait $$lab || failed="$$failed  make $(LAB)\n"; printf '\n== make $(LAB)\n'; cat $(LAB_SAID); \
	check $(MAKE) --no-print-directory wheel PROFILE=checked; \
	wait $$probe || failed="$$failed  make probe\n"; printf '\n== make probe\n'; cat $(PROBE_SAID); \
	touch $(BUILT); \
	check $(MAKE) --no-print-directory check; \
	check $(BIN)/python -m pytest -n 2 --dist loadfile -m 'papers and not live and not long'; \
	$(ENDING)

# What runs on other systems than Linux: the extension without live lines. (The simulator in a browser
# is built for the lab.) Their compilers are rustup's; nothing is linked. Build scripts and macros are the tests'
# (profile checked). zstd is C: no C compiler of those systems is needed for a check of the Rust, so
# `true` stands in for one. `make test-long` runs this.
TARGETS := aarch64-apple-darwin x86_64-pc-windows-gnu
# And sojourn-probe, on routers.
ROUTERS := aarch64-unknown-linux-musl i686-unknown-linux-musl
portable:
	@if command -v rustup >/dev/null; then \
	  rustup target add $(TARGETS) $(ROUTERS) 2>/dev/null || { echo 'error: rustup could not fetch $(TARGETS) $(ROUTERS)'; exit 1; }; \
	  for target in $(TARGETS); do \
	    name=$$(echo $$target | tr - _); \
	    echo "cargo check for $$target"; \
	    env CC_$$name=true AR_$$name=true PYO3_NO_PYTHON=1 cargo check --profile checked --quiet -p sojourn-core -p sojourn-live --target $$target || exit 1; done; \
	  for target in $(ROUTERS); do \
	    name=$$(echo $$target | tr - _); \
	    echo "cargo check of sojourn-probe for $$target"; \
	    env CC_$$name=true AR_$$name=true cargo check --profile checked --quiet -p standalone --target $$target || exit 1; done; \
	else echo 'NOT CHECKED, for want of rustup: that it builds for $(TARGETS) $(ROUTERS)'; fi

# sojourn-probe (docs/probe.md), for this machine's kind of processor or, with PROBE_TARGET, another. Rust's
# target brings its own C library. ring has some C of its own: for another processor, CC_<target> names
# the compiler, and it is linked by the linker that comes with Rust.
PROBE_TARGET ?= $(shell uname -m)-unknown-linux-musl
PROBE        := $${CARGO_TARGET_DIR:-target}/$(PROBE_TARGET)/static/sojourn-probe
PROBE_MADE   := target/.probe-$(PROBE_TARGET)
probe: $(PROBE_MADE)

$(PROBE_MADE): $(RUST_SOURCES)
	@mkdir -p target; name=$$(echo $(PROBE_TARGET) | tr - _); \
	if command -v rustup >/dev/null; then rustup target add $(PROBE_TARGET) 2>/dev/null || true; fi; \
	if [ ! -d "$$(rustc --print target-libdir --target $(PROBE_TARGET))" ]; then \
	  echo 'NOT BUILT, for want of the Rust target $(PROBE_TARGET): sojourn-probe'; exit 0; fi; \
	case $(PROBE_TARGET) in \
	  $$(uname -m)-*) eval "export CC_$$name=\$${CC_$$name:-cc}";; \
	  *) export CARGO_TARGET_$$(echo $$name | tr a-z A-Z)_LINKER=rust-lld;; esac; \
	cargo build --profile static --quiet -p standalone --target $(PROBE_TARGET) && \
	ls -l $(PROBE) | { read -r _ _ _ _ size _; echo "$(PROBE): $$size bytes"; } && touch $@

bench: $(VENV)/.guided
	$(BIN)/python benches/bench.py

bench-quick: $(VENV)/.guided
	$(BIN)/python benches/bench.py --quick

# Beside what ns-2 and ns-3 answered, then each kernel of which there is a guest: 39 queues decision by decision, and the
# standing set, some 1230 runs and more where three seeds do not tell. Fails if a difference is beyond the tolerance. The
# engine that is there will do.
validate: $(ENGINE)
	@failed=; left_out=; $(CHECKS); \
	check $(BIN)/python benches/validate.py; \
	for guest in uml uml-7.3; do \
	  if $(BIN)/sojourn kernel status | grep -q "^$$guest: ready"; then \
	    check $(BIN)/sojourn replay -e kernel-$${guest#uml-}; check $(BIN)/sojourn agree -e kernel-$${guest#uml-}; \
	  else left_out="$$left_out $$guest"; fi; done; \
	if [ -n "$$left_out" ]; then echo "NOT TESTED, for want of a guest:$$left_out (sojourn kernel setup --help)"; fi; \
	$(ENDING)

clean:
	rm -rf $(VENV) target demo papers site

# ------------------------------------------------------------------------------------------------------- installing

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo 'error: needs Python 3.11 or newer as $(PYTHON)'; \
	    echo 'hint: Debian: apt-get install python3 python3-venv; or: make PYTHON=python3.12'; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo 'error: $(PYTHON) can not make virtual environments'; \
	    echo 'hint: Debian: apt-get install python3-venv'; exit 2; }
	@command -v cc >/dev/null || \
	  { echo 'error: needs a C linker (cc)'; echo 'hint: Debian: apt-get install gcc libc6-dev'; exit 2; }
	@command -v cargo >/dev/null && command -v rustc >/dev/null || \
	  { echo 'error: needs Rust $(RUST) or newer (cargo and rustc)'; \
	    echo 'hint: Debian: apt-get install cargo-web rustc-web; or rustup'; exit 2; }
	@found=$$(rustc --version | cut -d' ' -f2); \
	printf '%s\n' $(RUST) "$$found" | sort -C -V || \
	  { echo "error: needs Rust $(RUST) or newer; this is $$found"; \
	    echo 'hint: Debian: apt-get install cargo-web rustc-web (in place of cargo, rustc); or: rustup update'; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The first program of the kernel's guests lies beside the code that boots them. Only Linux can run it.
ifeq ($(shell uname -s),Linux)
GUEST := sojourn/python/sojourn/engine/kernel/sojourn-guest

$(GUEST): $(CORE_SOURCES)
	cargo build --profile guest --quiet -p guest
	cp $${CARGO_TARGET_DIR:-target}/guest/sojourn-guest $@
endif

# The engine of the lab's page. `make demo` leaves it and the guests' program for when they are first asked for
# (sojourn lab, sojourn kernel setup). `make dev` leaves it alone. Without a compiler for browsers there is none, and sojourn
# lab says so.
LAB     := sojourn/python/sojourn/lab/engine.wasm
BROWSER := wasm32-unknown-unknown

$(LAB): $(CORE_SOURCES)
	@if command -v rustup >/dev/null; then rustup target add $(BROWSER) 2>/dev/null || true; fi; \
	if [ -d "$$(rustc --print target-libdir --target $(BROWSER))" ]; then \
	  cargo build --profile page --quiet -p lab --target $(BROWSER) && \
	  cp $${CARGO_TARGET_DIR:-target}/$(BROWSER)/page/lab.wasm $@; \
	else echo 'NOT BUILT, for want of the Rust target $(BROWSER): sojourn lab'; fi

# Each package is the tree itself (an editable install). Its engine is the release's, the guided one or, for tests, the
# checked one; the one made last lies in the tree, and the others' marks go. The guided one is a release, too.
$(VENV)/.core: $(VENV)/.made $(CORE_SOURCES) sojourn/pyproject.toml constraints.txt
	@rm -f $(VENV)/.dev $(VENV)/.guided $(VENV)/.installed
	$(PIP) -e ./sojourn
	@touch $@

$(VENV)/.installed: $(VENV)/.core $(GUEST) $(LAB) $(RUST_SOURCES) $(PACKAGES:=/pyproject.toml)
	@rm -f $(VENV)/.dev $(VENV)/.guided
	$(PIP) -e ./sojourn-live -e ./sojourn-papers
	@touch $@

# Installs the packages, the extensions built by maturin with these settings.
DEVELOP = develop() { . $(BIN)/activate; for package in sojourn sojourn-live; do \
    (cd $$package && maturin develop --quiet "$$@" >/dev/null) || return; done; \
  $(PIP) --no-deps --no-build-isolation -e ./sojourn-papers; }

$(VENV)/.guided: $(VENV)/.tools $(GUEST) $(RUST_SOURCES) benches/train.py
	@rm -f $(VENV)/.dev $(VENV)/.installed $(VENV)/.core
	@if command -v rustup >/dev/null; then rustup component add llvm-tools 2>/dev/null; fi
	@$(DEVELOP); . $(BIN)/activate; develop --release && cd sojourn && maturin develop --release --pgo --quiet
	@touch $(VENV)/.core $(VENV)/.installed $@

$(VENV)/.dev: $(VENV)/.tools $(GUEST) $(RUST_SOURCES) $(PACKAGES:=/pyproject.toml)
	@rm -f $(VENV)/.installed $(VENV)/.core $(VENV)/.guided
	@$(DEVELOP); develop --profile checked
	@touch $@

# What is handed to others: tests/test_wheel.py installs it elsewhere and runs it there. PROFILE=checked takes what the
# tests have compiled already. (An editable install leaves wheels of its own in target/wheels.)
WHEELS  := target/wheel
PROFILE := packaged

wheel: $(WHEELS)/.made-$(PROFILE)

$(WHEELS)/.made-$(PROFILE): $(VENV)/.tools $(GUEST) $(LAB) $(RUST_SOURCES) $(PACKAGES:=/pyproject.toml) $(shell find $(PACKAGES:=/python) -type f ! -name '*.pyc' ! -name '*.so')
	rm -rf $(WHEELS)
	cd sojourn && $(abspath $(BIN))/maturin build --profile $(PROFILE) --quiet --out ../$(WHEELS)
	cd sojourn-live && $(abspath $(BIN))/maturin build --profile $(PROFILE) --quiet --out ../$(WHEELS)
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w $(WHEELS) ./sojourn-papers
	@touch $@

# The wheel with all that it depends on, for `pip install --no-index --find-links target/wheelhouse 'sojourn[live,papers]'` without a network.
WHEELHOUSE := target/wheelhouse
wheelhouse: $(WHEELHOUSE)/.made
$(WHEELHOUSE)/.made: $(WHEELS)/.made-$(PROFILE) constraints.txt
	rm -rf $(WHEELHOUSE)
	$(BIN)/pip download --quiet --disable-pip-version-check -c constraints.txt -d $(WHEELHOUSE) $(WHEELS)/*.whl
	@touch $@

# Wheels for other Linuxes: packaging/wheels.py has their list. zig and maturin are PyPI's.
wheels: $(VENV)/.tools $(LAB)
	$(PIP) ziglang
	$(BIN)/python packaging/wheels.py target/wheels-elsewhere

# The tools that pyproject.toml names under `dev`, and what the packages themselves need. Python compiles
# what is imported; pip would compile all of it.
$(VENV)/.tools: $(VENV)/.made pyproject.toml sojourn/pyproject.toml constraints.txt
	$(BIN)/python -c 'import tomllib; read = lambda name: tomllib.load(open(name, "rb")); print(*read("sojourn/pyproject.toml")["project"]["dependencies"], *read("pyproject.toml")["dependency-groups"]["dev"], sep="\n")' > $@.txt
	$(PIP) --no-compile -r $@.txt
	@touch $@

# What pyproject.toml names under `site`.
$(VENV)/.site: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["site"], sep="\n")' > $@.txt
	$(PIP) --no-compile -r $@.txt
	@touch $@
