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

.PHONY: demo table2 test check format stub sanitize validity bench docs clean

demo: $(VENV)/user.done
	mkdir -p demo
	$(BIN)/certree table2 --datasets iris,cancer,cultivars,digits --plot demo/table2.png --json demo/table2.json
	@echo "The picture is demo/table2.png, everything that came out is demo/table2.json."

table2: $(VENV)/user.done
	$(BIN)/certree table2

test: $(VENV)/developer.done
	$(BIN)/python -m pytest -n $(CORES)

check: $(VENV)/developer.done
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror $(CORE)
	$(BIN)/mypy
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
sanitize: $(VENV)-sanitize/developer.done
	LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 HYPOTHESIS_PROFILE=sanitize \
	$(VENV)-sanitize/bin/python -m pytest -p no:randomly tests

validity: $(VENV)/developer.done
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n $(CORES)

bench: $(VENV)/developer.done
	for name in grow cart size categorical levels weigh prunings rules decorated predict naive_bayes table2 single_tree certificates import_time interrupt; do $(BIN)/python -m benchmarks.$$name || exit 1; done

docs: $(VENV)/developer.done
	$(BIN)/python -m pytest -q tests/test_docs.py

clean:
	rm -rf build demo $(VENV) $(VENV)-sanitize

$(VENV)/bin/python $(VENV)-sanitize/bin/python:
	$(PYTHON) -m venv $(patsubst %/bin/python,%,$@)

$(VENV)/user.done: $(SOURCES) $(wildcard src/certree/*.py src/certree/*/*.py) | $(BIN)/python
	test -e $(VENV)/developer.done || $(BIN)/python -m pip install -q ".[all]"
	touch $@

# Dependencies of the build are installed first, so that editable builds start from the same place.
$(VENV)/developer.done: $(SOURCES) | $(BIN)/python
	$(BIN)/python -m pip install -q "scikit-build-core>=0.11" "nanobind>=2.9" "cmake>=3.24" ninja
	$(BIN)/python -m pip install -q --no-build-isolation -e ".[dev]" -C cmake.define.CERTREE_WERROR=ON
	touch $@

$(VENV)-sanitize/developer.done: $(SOURCES) | $(VENV)-sanitize/bin/python
	$(VENV)-sanitize/bin/python -m pip install -q "scikit-build-core>=0.11" "nanobind>=2.9" "cmake>=3.24" ninja
	$(VENV)-sanitize/bin/python -m pip install -q --no-build-isolation -e ".[dev]" \
	    -C cmake.define.CERTREE_SANITIZE=ON -C build-dir=build/sanitize
	touch $@
