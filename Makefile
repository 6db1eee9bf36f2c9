# Every target works on a fresh clone with Go alone; tools are built at a pinned
# version when they are first needed.

GO       ?= go
FUZZTIME ?= 10s
CUTS     ?= 10000
FAULTS   ?= 10000
MINUTES  ?= 10
SEED     ?= 0
TIMEOUT  ?= 3h
BENCH    ?= .
COUNT    ?= 6
PLATFORMS ?= linux/386 windows/amd64 darwin/arm64 freebsd/amd64

# TIMEOUT is how long the tests of a package may take in the targets that take long: a test that hangs ends, and says where.

# The root and the modules below it, which its ./... leaves out. MODULES=redisfilter picks one. Each is entered with the
# versions that its own go.mod requires, as its users have it, and not with those of the workspace (go.work).
NESTED   := $(patsubst %/go.mod,%,$(shell git ls-files '*/go.mod'))
MODULES  ?= . $(NESTED)

# $(call each,COMMAND) runs a command in the directory of each module.
each = @set -e; for module in $(MODULES); do echo "-- $$module: "'$(1)'; .ci/in $$module $(1); done

GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(CURDIR)/bin/golangci-lint-$(GOLANGCI_VERSION)

.PHONY: help check fmt vet requires verify tidy release-check lint test race fuzz long hosts bench golden cross crossvet embed readamp rocksdb lmdb crash faults bitflip soak stress \
	echarts hooks
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

check: fmt vet lint test ## what a change must pass before it is committed

fmt: ## fail if a file is not gofmt-clean
	@files=$$(gofmt -l $$(git ls-files '*.go')) && test -z "$$files" || { echo "not gofmt-clean:"; echo "$$files"; exit 1; }

vet: ## go vet
	$(call each,$(GO) vet ./...)

requires: export SHARED =
requires: ## check that each go.mod requires what its module imports: the workspace (SHARED=1) has all
	$(call each,$(GO) list -deps -test ./... >/dev/null)

verify: ## check the modules that are required against go.sum
	$(call each,$(GO) mod verify)

release-check: ## make modules of the last commit, as VERSION, and install programs and get libraries from them as users do: minutes
	.ci/release-check $(VERSION)

tidy: ## go mod tidy
	.ci/tidy $(MODULES)

# The linter does not take the go.mod that .ci/in makes.
lint: export SHARED = 1
lint: $(GOLANGCI) ## golangci-lint; LINTFLAGS=--fast-only does without types
	@set -e; for module in $(MODULES); do echo "-- $$module"; .ci/in $$module $(GOLANGCI) run $(LINTFLAGS) ./...; done

$(GOLANGCI):
	GOBIN=$(CURDIR)/bin GOGC=400 $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(CURDIR)/bin/golangci-lint $@

# What the tests link is for no debugger, and takes half the time without its tables; make vet is for vet.
test race fuzz crash faults bitflip soak long: export GOFLAGS := $(shell $(GO) env GOFLAGS) -ldflags=-w -vet=off

test: ## all tests, two modules at a time: tests of one wait while those of another work
	@$(MAKE) --no-print-directory --jobs 2 --output-sync $(MODULES:%=test/%)

# They read files of the root, which the cache of results does not look at.
test/docs test/cmd/kvbench: export GOFLAGS += -count=1

test/%:
	.ci/in $* $(GO) test ./...

# A program under the detector sleeps for a second before it ends, and the tests start hundreds. What they start has waited for its
# goroutines by then.
race: export GORACE ?= atexit_sleep_ms=20
race: ## the race detector: packages with goroutines of the root and of the laboratory, and all of the other modules
	@set -e; for module in $(filter . cmd/kvbench,$(MODULES)); do echo "-- $$module"; \
		packages=$$($(GO) run ./internal/archtest/concurrent $$module); .ci/in $$module $(GO) test -race -timeout $(TIMEOUT) $$packages; \
	done
ifneq ($(filter .,$(MODULES)),)
	.ci/in . $(GO) test -race -timeout $(TIMEOUT) -run Concurrent ./filterpolicy/internal/conformance
endif
	@set -e; for module in $(filter-out . cmd/kvbench,$(MODULES)); do echo "-- $$module"; \
		.ci/in $$module $(GO) test -race -timeout $(TIMEOUT) ./...; \
	done

# Each package's targets are built once, where `go test -fuzz` links them again for each; new inputs go where it keeps them too.
# Go 1.26 reports the end of FUZZTIME as a failure now and then (go.dev/issue/75804): without a failing input it is none.
fuzz: UNFUZZED ?= -
fuzz: ## every fuzz target for FUZZTIME, except those of the packages that the pattern UNFUZZED matches
	@set -e; built=$$(mktemp -d); trap 'rm -rf "$$built"' EXIT; found=$$($(GO) env GOCACHE)/fuzz; \
	for module in $(MODULES); do (packages=$$(.ci/in $$module $(GO) list -f '{{.ImportPath}} {{.Dir}}' ./...); echo "$$packages" | while read -r pkg dir; do \
		grep -qs '^func Fuzz' "$$dir"/*_test.go || continue; \
		if echo "$$pkg" | grep -qE '/($(UNFUZZED))$$'; then continue; fi; \
		.ci/in $$module $(GO) test -c -fuzz . -o "$$built/fuzz.test" "$$pkg"; \
		(cd "$$dir"; \
		targets=$$("$$built/fuzz.test" -test.list '^Fuzz'); \
		for target in $$targets; do \
			echo "$$pkg $$target"; \
			"$$built/fuzz.test" -test.run '^$$' -test.fuzz "^$$target$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 1x \
				-test.fuzzcachedir "$$found/$$pkg" >"$$built/said" 2>&1 && status=0 || status=$$?; \
			cat "$$built/said"; \
			test $$status = 0 || { grep -qx '    context deadline exceeded' "$$built/said" && ! grep -q 'Failing input' "$$built/said"; } || exit 1; \
		done); \
	done); done

bench: ## micro-benchmarks, COUNT times each, in benchstat's format
	@set -e; for module in $(MODULES); do .ci/in $$module $(GO) test -run '^$$' -bench '$(BENCH)' -count $(COUNT) ./...; done

golden: ## rewrite the golden files (look at the diff)
	@set -e; for module in $(MODULES); do (imports=$$(.ci/in $$module $(GO) list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./...); \
		packages=$$(echo "$$imports" | awk '/ .*\/internal\/golden/ {print $$1}'); \
		test -z "$$packages" || .ci/in $$module $(GO) test $$packages -run Golden -update); \
	done

cross: ## build for PLATFORMS, which embedders use, and vet tests of what touches files or counts keys
	@for target in $(PLATFORMS); do \
		echo $$target; GOOS=$${target%/*} GOARCH=$${target#*/} .ci/in . $(GO) build ./kv ./sstable ./filterpolicy ./blockindex ./objstore/... || exit 1; \
	done
	@for pair in redisfilter:linux/386 adapters/raft:linux/386 redisfilter:windows/amd64 adapters/raft:windows/amd64 objstore/s3:windows/amd64; do \
		target=$${pair#*:}; \
		echo $$pair; GOOS=$${target%/*} GOARCH=$${target#*/} .ci/in $${pair%:*} $(GO) build ./... || exit 1; \
	done
	GOOS=linux GOARCH=386 .ci/in . $(GO) vet ./blockindex ./filterpolicy/...
	GOOS=linux GOARCH=386 .ci/in redisfilter $(GO) vet ./...
	GOOS=windows .ci/in . $(GO) vet ./sstable ./blockindex ./objstore ./internal/vfs ./internal/wal ./internal/manifest

crossvet: ## vet the store and the laboratory, with their tests, for Windows and macOS: minutes
	@set -e; for module in . cmd/kvbench; do for os in windows darwin; do GOOS=$$os .ci/in $$module $(GO) vet ./...; done; done

embed: ## build what programs embed for the platform it runs on, and test what touches no files
	.ci/in . $(GO) build ./kv ./sstable ./blockindex ./filterpolicy/...
	.ci/in . $(GO) test ./blockindex ./filterpolicy/...

# What docs/durability.md promises, at scale: LONG=n makes tests n times as long (internal/scale).
CRASH = .ci/in . $(GO) test ./kv ./internal/storetest/... -count 1 -timeout $(TIMEOUT) -v -run

crash: ## CUTS power cuts: before every call that changes the disk
	LONG=$$((($(CUTS) + 239) / 240)) $(CRASH) '^(TestPowerCut|TestPowerCutsWhileAStoreResumes)$$'

faults: ## FAULTS failing I/O calls; no space at every byte; a full file system
	LONG=$$((($(FAULTS) + 119) / 120)) $(CRASH) '^(TestFaults|TestNoSpace.*|TestAFull.*|TestAFailed.*|TestLatencySpikes|TestARemoved.*)$$'

bitflip: ## flip every byte of a small store
	LONG=47 $(CRASH) '^(TestBitFlips|TestEveryBit.*)$$'

soak: TIMEOUT = $$(($(MINUTES) + 60))m
soak: ## kill -9 a process that writes, again and again for MINUTES; memory and open files stay bounded
	.ci/in . $(GO) test ./internal/storetest/kills -count 1 -timeout $(TIMEOUT) -v -run '^TestKill$$' -args --minutes $(MINUTES)

stress: ## everything at once beside faults, power cuts and lies, for MINUTES, from SEED on (docs/stress.md)
	.ci/in . $(GO) test ./internal/stress -run '^TestStress$$' -count 1 -timeout 0 -v -args --minutes $(MINUTES) --seed $(SEED)

long: ## what is worth it each night: all tests at full size, the linter, the race detector and fuzz targets of all modules, and the five targets above: hours
	$(MAKE) verify lint
	@set -e; for module in $(MODULES); do echo "-- $$module"; LONG=1 .ci/in $$module $(GO) test -count 1 -timeout $(TIMEOUT) ./...; done
	LONG=1 $(MAKE) race
	GOMAXPROCS=1 .ci/in . $(GO) test -count 1 -timeout $(TIMEOUT) ./kv ./internal/storetest/...
	$(MAKE) cross
	$(MAKE) fuzz FUZZTIME=60s
	$(MAKE) crash faults bitflip soak stress

hosts: ## test the adapters with the last two releases of their hosts: minutes each
	.ci/hosts

readamp: ## the main job
	$(GO) run ./cmd/kvbench readamp

rocksdb: ## the laboratory with RocksDB as an engine: vet and tests (needs librocksdb-dev)
	.ci/in cmd/kvbench $(GO) vet -tags rocksdb ./...
	.ci/in cmd/kvbench $(GO) test -tags rocksdb ./...

lmdb: ## the laboratory with LMDB as an engine: vet and tests (needs liblmdb-dev)
	.ci/in cmd/kvbench $(GO) vet -tags lmdb ./...
	.ci/in cmd/kvbench $(GO) test -tags lmdb ./...

echarts: ## fetch the chart library of the report page again, and check it (needs npm)
	cmd/kvbench/internal/report/chart/echarts/fetch.sh

hooks: ## run gofmt and the architecture tests before each commit in this clone
	git config core.hooksPath .ci/hooks
