# What people and CI run. `make demo` and `make test` work on a machine that has python3 (3.11 or
# later), a C++ compiler and make: they set up everything else in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(wildcard src/core/*.?pp src/core/*/*.?pp)
SOURCES := pyproject.toml CMakeLists.txt $(CORE)
CORES := $(shell $(PYTHON) -c "import os; print(os.cpu_count())")

# The tables of the paper, where they are at hand; tests that need them are skipped elsewhere.
DATA := $(wildcard ../shared/data)
ifneq ($(DATA),)
export CERTREE_DATA ?= $(abspath $(DATA))
endif

.PHONY: demo table2 test oldest check format stub sanitize fuzz browser validity bench docs clean

demo: $(VENV)/user.done
	mkdir -p demo
	$(BIN)/certree demo -o demo/demo.html

table2: $(VENV)/user.done
	$(BIN)/certree table2

test: $(VENV)/developer.done
	$(BIN)/python -m pytest -n $(CORES)

# The lowest versions that pyproject.toml allows, also of what builds. What they bring along is new and
# may deprecate what they call.
oldest: $(VENV)-oldest/developer.done
	$(VENV)-oldest/bin/python -m pytest -n $(CORES) -W ignore::DeprecationWarning

check: $(VENV)/developer.done
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror $(CORE)
	$(BIN)/mypy
	$(BIN)/mypy tests/typed.py
	$(MAKE) stub STUB=$(VENV)/_core.pyi
	diff $(VENV)/_core.pyi src/certree/_core.pyi

format: $(VENV)/developer.done
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CORE)

STUB ?= src/certree/_core.pyi
stub: $(VENV)/developer.done
	$(BIN)/python -m nanobind.stubgen -q -m certree._core -o $(STUB)

# The sanitizers' runtime must be loaded before Python; leaks of the interpreter itself are not ours.
# Memory and undefined behaviour: all tests, and a minute of the fuzzer. Races: the tests of threads.
MEMORY_CHECKS = LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
RACE_CHECKS = LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libtsan.so)" \
    TSAN_OPTIONS=suppressions=$(CURDIR)/tests/races.txt OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# These files alone, as others import polars, which does not load beside the thread sanitizer.
RACE_TESTS = $(shell grep -rl mark.threads --include="test_*.py" tests)
sanitize: $(VENV)-memory/developer.done $(VENV)-races/developer.done
	$(MEMORY_CHECKS) HYPOTHESIS_PROFILE=sanitize $(VENV)-memory/bin/python -m pytest -n $(CORES) -p no:randomly tests
	cd tests && $(MEMORY_CHECKS) ../$(VENV)-memory/bin/python -m fuzz --seconds 60 --patience 300
	$(RACE_CHECKS) HYPOTHESIS_PROFILE=sanitize $(VENV)-races/bin/python -m pytest -p no:randomly -m threads \
	    $(or $(RACE_TESTS),$(error no tests of threads were found))

FUZZ_SECONDS ?= 600
fuzz: $(VENV)/developer.done
	cd tests && ../$(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS)

# The report, in a real Chromium without a window; needs the programs chromium and chromedriver.
browser: $(VENV)/browser.done
	$(BIN)/python -m pytest -p no:randomly tests/browser

validity: $(VENV)/developer.done
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n $(CORES)

bench: $(VENV)/developer.done
	for name in grow memory scale cart counts forest_growth forest size categorical levels weigh prunings rules decorated predict predict_boosted naive_bayes table2 table2_cells table2_borders single_tree learning_curves boosting boosting_large boosting_steps boosting_tuned classes certificates duplicates thresholds certified_boosting certified_forest small_tree bands evidence explain boolean shapley import_time interrupt; do $(BIN)/python -m benchmarks.$$name || exit 1; done

docs: $(VENV)/developer.done
	$(BIN)/python -m pytest -q tests/test_docs.py

clean:
	rm -rf build demo $(VENV) $(VENV)-oldest $(VENV)-memory $(VENV)-races

$(VENV)/bin/python $(VENV)-oldest/bin/python $(VENV)-memory/bin/python $(VENV)-races/bin/python:
	$(PYTHON) -m venv $(patsubst %/bin/python,%,$@)

$(VENV)/user.done: $(SOURCES) $(wildcard src/certree/*.py src/certree/*/*.py) | $(BIN)/python
	test -e $(VENV)/developer.done || $(BIN)/python -m pip install -q ".[all]"
	touch $@

# Dependencies of the build are installed first, so that editable builds start from the same place.
$(VENV)/developer.done: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install -q "scikit-build-core>=0.11" "nanobind>=2.9" "cmake>=3.24" ninja
	$(BIN)/python -m pip install -q --no-build-isolation -e ".[dev]" -C cmake.define.CERTREE_WERROR=ON
	touch $@

$(VENV)/browser.done: $(VENV)/developer.done
	$(BIN)/python -m pip install -q "selenium>=4.20"
	touch $@

# uv alone can take the lowest versions; -U makes it forget those that are installed.
INSTALL_LOWEST = $(VENV)-oldest/bin/python -m uv pip install -q -U --resolution lowest-direct \
    --python $(VENV)-oldest/bin/python
$(VENV)-oldest/developer.done: $(SOURCES) | $(VENV)-oldest/bin/python
	$(VENV)-oldest/bin/python -m pip install -q uv
	$(INSTALL_LOWEST) "scikit-build-core>=0.11" "nanobind>=2.9" "cmake>=3.24" "ninja>=1.11"
	PATH="$(CURDIR)/$(VENV)-oldest/bin:$$PATH" $(INSTALL_LOWEST) --no-build-isolation -e ".[dev]" \
	    -C cmake.define.CERTREE_WERROR=ON -C build-dir=build/oldest
	touch $@

$(VENV)-memory/developer.done: SANITIZERS = address,undefined
$(VENV)-races/developer.done: SANITIZERS = thread
$(VENV)-memory/developer.done $(VENV)-races/developer.done: $(VENV)-%/developer.done: $(SOURCES) | $(VENV)-%/bin/python
	$(VENV)-$*/bin/python -m pip install -q "scikit-build-core>=0.11" "nanobind>=2.9" "cmake>=3.24" ninja
	$(VENV)-$*/bin/python -m pip install -q --no-build-isolation -e ".[dev]" \
	    -C cmake.define.CERTREE_SANITIZE=$(SANITIZERS) -C build-dir=build/$*
	touch $@
