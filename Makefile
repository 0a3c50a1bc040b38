# Needs a POSIX shell, make and Go, and no more: tools come with `go tool`.
# What takes more than a line stands in .ci, where it runs without make as well.

FUZZTIME     = 20s
BENCH        = .
CRASH_RUNS   = 10
CRASH_SITES = 50
ARGS         =
MUTANTS      =
SEEDS        =

help: ## print this page
	@echo 'MessageHub: domains announce data, actors fetch it in order.'
	@echo
	@echo 'make TARGET [NAME=VALUE]'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-22s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'NAME=VALUE'
	@echo
	@echo '  ARGS          flags for run, such as ARGS="--in-memory"'
	@echo '  BENCH         which of benchmarks, a regular expression; all by default'
	@echo '  CRASH_SITES   kills at each crash site; $(CRASH_SITES) by default'
	@echo '  CRASH_RUNS    how many runs crash makes; $(CRASH_RUNS) by default'
	@echo '  FUZZTIME      how long each fuzz target runs; $(FUZZTIME) by default'
	@echo '  SEEDS         seeds for test, prove and prove-long; 8, 500, 50,000 by default'
	@echo '  MUTANTS       flags for mutants, such as MUTANTS="-seeds 100 -only gate"'

run: build ## build, and serve on the embedded engine until Ctrl-C
	@exec bin/messagehub serve $(ARGS)

build: ## build bin/messagehub: static, stamped with its version
	@eval "$$(.ci/stamp)"; echo "building bin/messagehub $$version (the first build takes a minute or two)"; \
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$$ldflags" -o bin/messagehub ./cmd/messagehub

image: ## build the image with buildah, run a hub from it, into bin/image (Linux, root)
	@.ci/image

image-files: ## compile what docker build needs, into bin/image/files
	@.ci/image files

test: ## run every test, and the simulation over 8 fresh seeds
	@SEEDS='$(SEEDS)' .ci/test

race: ## test the packages that share state with the race detector
	@.ci/race

race-all: ## test every package with the race detector
	@.ci/race all

cover: ## test it all, and print how much of the code the tests reach
	go test -coverpkg=./... -coverprofile=coverage.out ./...
	@go tool cover -func=coverage.out | tail -n 1
	@echo 'line by line: go tool cover -html=coverage.out'

bench: ## measure the hub against its targets and former layouts, into bench/RESULTS.md and bench/plots
	go run ./bench/compare --results bench/RESULTS.md

bench-quick: ## the same, smaller, in a few minutes, and only on the terminal
	go run ./bench/compare --quick

benchmarks: ## run the Go benchmarks (BENCH)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 2h ./...

bench-engine: ## measure the embedded Cosmos, into cosmos/embedded/RESULTS.md
	@.ci/bench-engine

fuzz: ## run every fuzz target for a while (FUZZTIME)
	@FUZZTIME='$(FUZZTIME)' .ci/fuzz

lint: ## check format and habits: gofumpt, go vet, golangci-lint
	@.ci/lint

backup-figures: ## back up a running hub with 1,000,000 events, into cmd/node/backup/RESULTS.md
	@.ci/bench-backup

backup-kills: ## kill 200 backups and restores, each of which leaves the old or the whole
	MESSAGEHUB_BACKUP_KILLS=200 go test ./cmd/messagehub -run KilledLeaveTheOldOrTheWhole -count 1 -v -timeout 30m

generate: ## write the Go code of the .proto files anew
	go generate ./api/servicebus/contract

deploy-files: ## write the generated files of deploy/azure and deploy/observability, and the chart's copies, again
	go run ./cmd/messagehub/internal/azuretemplate/writefiles deploy/azure
	go run ./deploy/observability deploy

demo: build ## a day of a small energy market, sent, drained and accounted for, and a broadcast to five consumers
	@bin/messagehub demo

prove: ## simulate 500 new seeds and all that failed before (SEEDS)
	@SEEDS='$(SEEDS)' .ci/prove

prove-long: ## simulate for hours, into bench/simulate/RESULTS.md; may be interrupted (SEEDS)
	@SEEDS='$(SEEDS)' .ci/prove long

crash: ## kill a hub under load, 50 times a run; nothing lost (CRASH_RUNS)
	MESSAGEHUB_CRASH_RUNS='$(CRASH_RUNS)' MESSAGEHUB_CRASH_KILLS=50 go test ./cmd/messagehub \
		-run TestCrash -count 1 -v -timeout 12h

crash-bus: ## two hubs on one bus, killed 100 times under 100,000 events; nothing lost
	MESSAGEHUB_BUS_EVENTS=100000 MESSAGEHUB_BUS_ACTORS=200 MESSAGEHUB_BUS_KILLS=100 \
		go test ./cmd/messagehub -run TestBusLosesNothing -count 1 -v -timeout 2h

rolling-upgrade: ## 3 hubs from the last release to this version and back, 10 times under load, into cmd/messagehub/RESULTS.md
	MESSAGEHUB_ROLLING_RESULTS='$(CURDIR)/cmd/messagehub/RESULTS.md' \
		go test ./cmd/messagehub -run TestRollingUpgradeLosesNothing -count 1 -v -timeout 2h

survey-figures: ## the survey of 10,000 and 100,000 mailboxes: cost, lag, Peeks beside it, lists; into cosmos/survey/RESULTS.md
	MESSAGEHUB_SURVEY_RESULTS='$(CURDIR)/cosmos/survey/RESULTS.md' \
		go test ./cosmos -run TestSurvey_StaysWithinItsFigures -count 1 -v -timeout 1h

production-day: ## deploy three hubs to the emulators, upgrade, back up, lose all disks, restore; 10,000 events
	MESSAGEHUB_DAY_EVENTS=667 go test ./cmd/messagehub -run TestADayInProduction -count 1 -v

crash-sites: ## kill a hub before and after every step; may be interrupted (CRASH_SITES)
	MESSAGEHUB_CRASH_SITES='$(CRASH_SITES)' MESSAGEHUB_CRASH_SITES_FILE='$(CURDIR)/bin/crash-sites.jsonl' \
		go test ./bench/simulate/crashsites -run TestEveryCrashSite -count 1 -v -timeout 24h

crash-images: ## open 2,000 disks on which the embedded Cosmos lost its power
	EMBEDDED_CRASH_IMAGES=2000 go test ./cosmos/embedded -run TestNoCrash -count 1 -v

explore: ## run every interleaving of small scenarios, into bench/simulate/explorer/RESULTS.md
	MESSAGEHUB_EXPLORER_RESULTS=RESULTS.md MESSAGEHUB_COMMIT=$$(git rev-parse --short=12 HEAD) \
		go test ./bench/simulate/explorer -run TestEveryScenario -count 1 -v -timeout 12h

model: ## every state of the model of small Saves, and mutations, into bench/model/smallsaves/RESULTS.md
	go run ./bench/model/smallsaves/explore -results bench/model/smallsaves/RESULTS.md

error-branches: ## count the error branches that the simulation reaches, into bench/simulate/errorbranches/RESULTS.md
	@SEEDS='$(SEEDS)' .ci/error-branches

campaign: ## chaos, interleavings, broken calls and thirty days of retention, into cosmos/RESULTS.md
	@.ci/campaign

mutants: ## leave out one rule at a time; a test must fail for each (MUTANTS)
	go run ./bench/simulate/mutants $(MUTANTS)

conformance-azcosmos: ## run azcosmos's own 43 emulator tests on the embedded Cosmos
	@go run ./cosmos/embedded/internal/azcosmossuite

conformance-gocosmos: ## run the tests of gocosmos, a database/sql driver, on the Cosmos DB emulator, and write their figure into its page (minutes)
	@.ci/conformance-gocosmos

conformance-servicebus: ## run the tests of azservicebus and go-amqp on the embedded bus (Linux)
	@go run ./api/servicebus/embedded/internal/clientsuite

conformance-pubsub: ## run the suites of gocloud.dev and Dapr on the embedded bus, figures into its page (Linux)
	@.ci/conformance-pubsub/run

conformance-blob: ## run the tests of gocloud.dev and azblob on the embedded Blob Storage, figures into its page
	@mkdir -p bin/tools
	@go build -o bin/tools/blob-emulator ./cmd/messagehub
	@go -C .ci/conformance-blob run . -page "$(CURDIR)/deploy/handbook/blob-emulator.md" "$(CURDIR)/bin/tools/blob-emulator"

test-clients: ## run Microsoft's clients for Node on the emulators, the content store on Azurite, receivers in Node, producers, consumers and actors in Node, Python and Java, and generators on the OpenAPI document
	@.ci/test-clients

test-compose: ## check deploy/compose.yaml as Docker reads it
	@.ci/test-compose

try-compose: ## run the services of deploy/compose.yaml in network namespaces, without a container engine (Linux, root)
	@.ci/try-compose

test-rules: ## check rules, their tests and the queries of dashboards by promtool
	@.ci/test-rules

test-unit: ## check deploy/messagehub.service by systemd-analyze
	@.ci/test-unit

test-console: ## test the pages for operators in chromium, with axe-core; screenshots into bin/console
	@.ci/test-console

release: ## make archives, packages and sums for six platforms, into bin/release; Go alone does it
	@.ci/release/run

release-twice: ## make them again from a copy of the tree, and compare every byte
	@.ci/release/run twice

goreleaser: ## check .goreleaser.yaml by goreleaser and a snapshot, against make release
	@.ci/goreleaser

first-minutes: ## time the way from the archive to the first peeked message, and of the compose file, into deploy/RESULTS.md
	@.ci/first-minutes

pages: ## write the tables that the handbook has from the code
	go test ./cmd/node/config -run ConfigurationPage -update
	go test ./cmd/messagehub -run CommandsPage -update

notices: ## list the licences of what the command links, into bin/NOTICES
	go run ./deploy/notices -o bin/NOTICES

test-deploy: ## render the Helm chart with every combination of its options; not part of check, as its first build takes a minute or more
	go -C .ci/deploy test ./...

chart: ## package the Helm chart with the version of the hub, into bin
	@version=$$(git describe --tags --always --dirty 2>/dev/null || echo dev); mkdir -p bin; \
	@eval "$$(.ci/stamp)"; mkdir -p bin; \
	go -C .ci/deploy run ./package -version "$$version" -out '$(CURDIR)/bin'

check: lint test race ## lint, test and race: before you commit

clean: ## remove what was built and measured; stored data stays
	rm -rf bin coverage.out

.PHONY: help run build image image-files test race race-all cover bench bench-quick benchmarks bench-engine fuzz lint generate demo prove prove-long crash crash-bus production-day crash-sites crash-images explore model error-branches campaign mutants conformance-azcosmos conformance-servicebus conformance-pubsub conformance-blob test-clients test-compose test-rules test-unit release release-twice goreleaser first-minutes check clean deploy-files notices pages test-deploy chart try-compose rolling-upgrade survey-figures conformance-gocosmos
