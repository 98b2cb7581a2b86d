SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
export GOTOOLCHAIN := local

WORLD := go -C testcluster run ./cmd/testcluster
ROOT := $(CURDIR)

FUZZTIME ?= 5s
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: guests
guests: ## build the guest modules
	go run ./guests/build/all

.PHONY: build
build: guests ## build the service: bin/k8s
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/k8s .

.PHONY: run
run: build ## the service alone, credentials in memory; with KUBECONFIG it says how to register that cluster
	bin/k8s

.PHONY: demo
demo: build ## two real clusters, a real Vault, and a walk through it all; KEEP=1 leaves it running
	$(WORLD) run -- go -C $(ROOT) run ./ops/demo -binary $(ROOT)/bin/k8s $(if $(KEEP),-keep)

.PHONY: test
test: guests ## every check, on real parts
	go -C testcluster vet ./...
	$(WORLD) run -- $(MAKE) -C $(ROOT) test-on-world

.PHONY: test-on-world
test-on-world:
	$(MAKE) fuzz FUZZTIME=$(FUZZTIME)
	go -C testcluster run ./cmd/mutants -root $(ROOT)
	go -C testcluster test -p 1 -timeout 20m ./...
	go -C ops/contract test -timeout 20m ./...
	go test -p 1 -timeout 30m ./...

.PHONY: bench
bench: guests ## measure this service against what people run instead
	go run ./ops/bench

.PHONY: load
load: build ## tenants, callers and faults for a minute on real parts; every answer is looked at for another's mark
	$(WORLD) run -- go -C $(ROOT) run ./ops/load -binary $(ROOT)/bin/k8s

# A target that fails by the deadline of its own time, with no input, is
# go.dev/issue/75804, and gets one more try. Inputs are not made small: that can
# take all of the time there is.
.PHONY: fuzz
fuzz: guests ## every fuzz target in turn, for FUZZTIME each
	@go list -f '{{.Dir}} {{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}' ./... | while read -r dir files; do \
		for f in $$files; do \
			for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$dir/$$f"); do \
				echo "fuzz $${dir#$(ROOT)/} $$target"; \
				fuzz() { go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x -parallel 2 "$$dir" 2>&1; }; \
				out=$$(fuzz) || { \
					! grep -q 'Failing input' <<< "$$out" && grep -q '^    context deadline exceeded$$' <<< "$$out" && out=$$(fuzz); \
				} || { echo "$$out"; exit 1; }; \
				tail -n 1 <<< "$$out"; \
			done; \
		done; \
	done

.PHONY: mutants
mutants: guests ## remove each guard in turn and see its tests fail
	$(WORLD) run -- go -C $(ROOT)/testcluster run ./cmd/mutants -root $(ROOT)

.PHONY: generate
generate: guests ## write the table of kinds, and the projections: rbac.yaml, openapi.json, k8s.plugin.json and the README's tables
	go run ./guests/build/kinds guests/build/kinds.txt
	go run ./ops/generate

.PHONY: lint
lint: guests ## go vet, gofmt, staticcheck, govulncheck
	test -z "$$(gofmt -l $$(git ls-files '*.go'))"
	go vet ./...
	go -C testcluster vet ./...
	go -C ops/contract vet ./...
	go run $(STATICCHECK) ./...
	@out=$$(go run $(GOVULNCHECK) ./... 2>&1) && echo "$$out" || { status=$$?; echo "$$out"; \
		grep -q "fetching vulnerabilities" <<< "$$out" || exit $$status; \
		echo "govulncheck did not run: its database cannot be reached from here"; }

.PHONY: clean
clean: ## remove what was built here; the cached parts of the test world stay
	rm -rf bin guests/bin/*.wasm guests/bin/*.sum
