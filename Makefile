# sojourn: `make demo` gives a first result, `make test` checks everything. Neither needs root; the network is used by
# pip and cargo only, the first time. Every recipe also works by hand.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# The oldest Rust that has what the crates use (edition 2024, let chains).
RUST   := 1.88

RUST_SOURCES   := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
PYTHON_SOURCES := $(shell find python -type f ! -name '*.pyc' ! -name '*.so' ! -name sojourn-guest) pyproject.toml constraints.txt

.PHONY: help setup demo papers test bench validate clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo      set up, then compare pfifo, RED, CoDel and fq_codel on a home uplink: demo/report.html'
	@echo 'make papers    set up, then reproduce five papers, published numbers beside ours: papers/index.html (ten minutes)'
	@echo 'make test      format, lint, types and tests, in both languages'
	@echo 'make setup     build and install into $(VENV) only; then: $(BIN)/sojourn --help'
	@echo 'make bench     packets per second of this machine'
	@echo 'make validate  compare with published and measured results'
	@echo 'make clean     remove what the above made'

setup: $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/sojourn compare scenarios/home-uplink.toml pfifo red codel fq_codel -o demo --force

papers: $(VENV)/.installed
	$(BIN)/sojourn reproduce -o papers --force

# In CI a kernel guest is made first, where its packages can be had; elsewhere its tests run if there is one.
# Each check runs whatever became of the others; what failed is said last. On success pytest's closing line is the last.
test: $(VENV)/.installed $(VENV)/.developing
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || \
	  { echo 'error: needs rustfmt and clippy'; \
	    echo 'hint: rustup component add rustfmt clippy; Debian: apt-get install rustfmt-web rust-web-clippy'; exit 2; }
	@if [ "$$CI" = true ]; then $(BIN)/sojourn kernel setup || echo 'no guest: its tests are left out, each with the reason'; fi
	@failed=; \
	check() { printf '\n== %s\n' "$$*"; "$$@" || failed="$$failed  $$*\n"; }; \
	check cargo fmt --all --check; \
	check cargo clippy --workspace --all-targets --quiet -- -D warnings; \
	check cargo test --workspace; \
	check $(BIN)/ruff format --check .; \
	check $(BIN)/ruff check .; \
	check $(BIN)/mypy --strict; \
	check $(BIN)/python -m pytest -n 2; \
	if [ -n "$$failed" ]; then printf "\nfailed:\n$$failed"; exit 1; fi

bench: $(VENV)/.installed
	$(BIN)/python benches/bench.py

# The second part runs 39 guests, the third 864: half an hour of CPU time. Ends with 1 while a difference is unexplained.
validate: $(VENV)/.installed
	$(BIN)/python benches/validate.py
	@if $(BIN)/sojourn kernel status; then $(BIN)/sojourn agree --replay && $(BIN)/sojourn agree; \
	  else echo 'left out, for want of a guest: sojourn agree. To make one: $(BIN)/sojourn kernel setup'; fi

clean:
	rm -rf $(VENV) target demo papers

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
	    echo 'hint: Debian: apt-get install cargo-web rustc-web; or https://rustup.rs'; exit 2; }
	@found=$$(rustc --version | cut -d' ' -f2); \
	printf '%s\n' $(RUST) "$$found" | sort -C -V || \
	  { echo "error: needs Rust $(RUST) or newer; this is $$found"; \
	    echo 'hint: Debian: apt-get install cargo-web rustc-web (in place of cargo, rustc); or: rustup update'; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The first program of the kernel's guests lies beside the code that boots them.
GUEST := python/sojourn/engine/kernel/sojourn-guest

$(GUEST): $(RUST_SOURCES)
	cargo build --release --quiet -p guest
	cp $${CARGO_TARGET_DIR:-target}/release/sojourn-guest $@

$(VENV)/.installed: $(VENV)/.made $(RUST_SOURCES) $(PYTHON_SOURCES) $(GUEST)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt .
	@touch $@

# The tools that pyproject.toml names under `dev`.
$(VENV)/.developing: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["dev"], sep="\n")' > $@.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -r $@.txt
	@touch $@
