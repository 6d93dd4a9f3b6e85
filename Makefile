# The names of things to do; how they are done is in scripts/.
.DEFAULT_GOAL := help
.PHONY: help up build test test-vm attack bench fuzz audit coverage soak fmt clean

help: ## list these targets
	@awk -F ': *## *' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## build, start the service, run a sample through it, and say how to run more
	@scripts/up.sh

build: ## build the release binary: static, one file
	@scripts/build.sh

test: ## everything that CI checks; PART=unit runs one part
	@scripts/test.sh $(PART)

test-vm: ## conformance and attacks on cgroup v2, as root and rootless; ATTACK_FULL=1 adds the controls
	@scripts/vm/bundle.sh && scripts/test-vm.sh

attack: ## the attack suite, then on every backend; ARGS=... go to it, ARGS=--backends is the latter alone
	@scripts/attack.sh $(ARGS)

bench: ## side by side with bubblewrap, runc, podman, docker and gVisor; ARGS=... go to it
	@scripts/bench.sh $(ARGS)

fuzz: ## every fuzz target for FUZZ_SECONDS (60); ARGS=TARGET for one; needs nightly
	@scripts/fuzz.sh $(ARGS)

audit: ## licences, bans, sources and advisories of all dependencies (cargo-deny)
	@scripts/audit.sh

coverage: ## lines covered, by crate; less than 90% fails (cargo-llvm-cov)
	@scripts/coverage.sh

soak: ## build every profile, run sandboxes for SOAK_SECONDS (600), and see that nothing is left
	@scripts/soak.sh

fmt: ## format the code
	@cargo fmt --all

clean: ## remove what was built here; the VM's cache stays
	@cargo clean
