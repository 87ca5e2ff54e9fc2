# A front for scripts/, which holds all there is to know: scripts/NAME --help. ARGS goes to the script, as in
# make test ARGS='--test live'.

.DEFAULT_GOAL := help
.PHONY: help run test demo bench clients matrix fuzz memcheck gate plot servers lint package monitoring scale

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST) | expand -t 12

run: ## Start a server with the module and show a rate limit at work
	@scripts/run $(ARGS)

test: ## Build, and run all tests on the installed redis-server
	@scripts/test $(ARGS)

clients: ## Run the snippets of docs/clients.md
	@scripts/clients $(ARGS)

demo: ## Run a fleet of API servers that share one limit
	@scripts/demo $(ARGS)

bench: ## Measure what calls cost, beside Redis' own, Lua and others
	@scripts/bench $(ARGS)

matrix: ## Run the long tests, on every supported Redis and Valkey
	@scripts/matrix $(ARGS)

fuzz: ## Give the limiters random bytes, steered by the code that they reach
	@scripts/fuzz $(ARGS)

memcheck: ## Run the module under valgrind, on Redis 7.0 and Valkey 9.1
	@scripts/memcheck $(ARGS)

plot: ## Draw what each algorithm lets through
	@scripts/plot $(ARGS)

monitoring: ## Scrape a server with Prometheus' exporter, and try the alerts
	@scripts/monitoring $(ARGS)

servers: ## Fetch the servers that the matrix needs
	@scripts/servers $(ARGS)

lint: ## Check formatting, clippy and documentation
	@scripts/lint $(ARGS)

gate: ## Count a call's instructions and hold them against the baseline
	@scripts/gate $(ARGS)

package: ## Pack the module for other machines
	@scripts/package $(ARGS)

scale: ## Measure what a core does, and what a load takes
	@scripts/scale $(ARGS)
