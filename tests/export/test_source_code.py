"""Models as source code of C, Java and JavaScript, compiled and run here."""

import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import certree
from certree.export.plain_dict import predict_from_dict
from certree.export.source_code import write_source

# Programs that read rows, one JSON-like line each, and print the predictions of each row.
C_MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    static char line[1 << 16];
    double x[N_FEATURES], out[N_RESULTS];
    while (fgets(line, sizeof line, stdin)) {
        char *start = line;
        for (int j = 0; j < N_FEATURES; ++j) {
            char *end = start + strcspn(start, "\t\n");
            int is_text = *start == 't';
            *end = 0;
            x[j] = is_text ? Model_category(j, start + 1) : strtod(start + 1, 0);
            start = end + 1;
        }
        Model_predict(x, out);
        for (int k = 0; k < N_RESULTS; ++k) printf("%.17g%c", out[k], k + 1 < N_RESULTS ? ' ' : '\n');
    }
    return 0;
}
"""
JAVA_MAIN = """
class Main {
    public static void main(String[] arguments) throws Exception {
        var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] cells = line.split("\\t", -1);
            double[] x = new double[cells.length];
            for (int j = 0; j < x.length; ++j)
                x[j] = cells[j].charAt(0) == 't'
                        ? Model.category(j, cells[j].substring(1))
                        : Double.parseDouble(cells[j].substring(1));
            StringBuilder out = new StringBuilder();
            for (double number : Model.predict(x)) out.append(number).append(' ');
            System.out.println(out.toString().trim());
        }
    }
}
"""
JAVASCRIPT_MAIN = """
import { readFileSync } from "fs";
const number = (text) => (text === "inf" ? Infinity : text === "-inf" ? -Infinity : parseFloat(text));
for (const line of readFileSync(0, "utf8").split("\\n").slice(0, -1)) {
  const read = (cell) => (cell[0] === "t" ? cell.slice(1) : number(cell.slice(1)));
  const row = line.split("\\t").map(read);
  console.log(predict(row).join(" "));
}
"""


def run_c(code, rows, folder):
    (folder / "model.c").write_text(code + C_MAIN, encoding="utf-8")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
    subprocess.run(
        ["cc", *flags, "model.c", "-o", "model", "-lm"], cwd=folder, check=True, timeout=120
    )
    return execute(["./model"], rows, folder)


def run_java(code, rows, folder):
    (folder / "Main.java").write_text(JAVA_MAIN + code, encoding="utf-8")
    text = rows.replace("ninf", "nInfinity").replace("n-inf", "n-Infinity").replace("nnan", "nNaN")
    return execute(["java", "-Dfile.encoding=UTF-8", "Main.java"], text, folder)


def run_javascript(code, rows, folder):
    (folder / "model.mjs").write_text(code + JAVASCRIPT_MAIN, encoding="utf-8")
    return execute(["node", "model.mjs"], rows, folder)


def execute(command, rows, folder):
    done = subprocess.run(
        command, input=rows.encode(), capture_output=True, cwd=folder, check=True, timeout=120
    )
    lines = done.stdout.decode().splitlines()
    return np.array([[float(word) for word in line.split()] for line in lines])


RUNNERS = {"c": ("cc", run_c), "java": ("java", run_java), "javascript": ("node", run_javascript)}


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    towns = ['a "q??!"', "b\\", "ü, */ %d", "tab\x01"]
    X = pd.DataFrame(
        {
            "income": rng.normal(size=n),
            "debt */ \\u": rng.random(n),
            "town": pd.Categorical(rng.choice(towns, n), categories=towns),
            "code": pd.Categorical(rng.choice([1.5, 2.0, 7.0], n)),
        }
    )
    X.loc[rng.random(n) < 0.2, "debt */ \\u"] = np.nan
    X.loc[rng.random(n) < 0.1, "town"] = None
    X.loc[rng.random(n) < 0.1, "code"] = None
    score = X["income"] + (X["town"] == towns[1]) + (X["code"] == 2) + X["debt */ \\u"].isna()
    return X, (score + rng.normal(size=n) * 0.3).to_numpy()


def write_rows(X):
    """Return rows as lines of cells: "t" and a text, or "n" and a number."""
    lines = []
    for row in X.astype(object).itertuples(index=False):
        cells = [f"t{cell}" if isinstance(cell, str) else f"n{float(cell)!r}" for cell in row]
        lines.append("\t".join(cells) + "\n")
    return "".join(lines)


def three_classes(y):
    return np.digitize(y, np.quantile(y, [0.3, 0.7]))


# Each kind of model, and its target made from numbers.
MODELS = {
    "boosted classes": (certree.BoostedTreesClassifier(max_iter=8), lambda y: y > 1),
    "three classes": (certree.BoostedTreesClassifier(max_iter=5), three_classes),
    "boosted numbers": (certree.BoostedTreesRegressor(max_iter=8), lambda y: y),
    "counts": (
        certree.BoostedTreesRegressor(loss="poisson", max_iter=5),
        lambda y: y.round().clip(0),
    ),
    "quantiles": (
        certree.BoostedTreesRegressor(loss="quantile", quantile=[0.1, 0.5, 0.9], max_iter=5),
        lambda y: y,
    ),
    "forest of classes": (certree.TreeForestClassifier(n_estimators=5), three_classes),
    "forest of two": (certree.TreeForestClassifier(n_estimators=5), lambda y: y > 1),
    "forest of numbers": (certree.TreeForestRegressor(n_estimators=5), lambda y: y),
    "tree": (certree.PACBayesTreeClassifier(), three_classes),
    "tree of numbers": (certree.PACBayesTreeRegressor(), lambda y: y),
    "certified": (certree.CertifiedTreeClassifier(), lambda y: np.where(y > 1, "yes", "no")),
    "AdaBoost": (certree.AdaBoostTreeClassifier(n_estimators=5), three_classes),
}


@pytest.mark.parametrize("language", RUNNERS)
@pytest.mark.parametrize("kind", MODELS)
def test_code_predicts_as_the_model(kind, language, tmp_path):
    program, run = RUNNERS[language]
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    estimator, make_target = MODELS[kind]
    X, numbers = draw(400)
    model = estimator.set_params(random_state=0).fit(X, make_target(numbers))
    new, _ = draw(120, seed=1)
    largest = np.inf if model._takes_infinities else 1e308
    new.loc[:3, "income"] = [largest, -largest, np.nan, 1e308]
    new["town"] = new["town"].cat.add_categories("new")
    new.loc[20:40, "town"] = "new"
    new["code"] = new["code"].cat.add_categories(99.5)
    new.loc[30:50, "code"] = 99.5
    known = json.loads(json.dumps(model.to_dict()))
    expected = predict_from_dict(
        known, [column.tolist() for _, column in new.astype(object).items()]
    )
    own = model.predict_proba(new) if hasattr(model, "predict_proba") else model.predict(new)
    np.testing.assert_allclose(np.reshape(own, expected.shape), expected, rtol=1e-10, atol=1e-12)
    found = run(model.to_code(language, "Model"), write_rows(new), tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


LEAVES = {
    "softmax of large scores": ("softmax", [900.0, 899.0, -900.0], [0, 1, 2]),
    "a share above one": ("shares", [1.25], [0, 1]),
    "a share below zero": ("shares", [-0.25], [0, 1]),
    "quantiles that cross": ("sorted", [3.0, 1.0, 2.0], None),
}


@pytest.mark.parametrize("language", ["c", "javascript"])
@pytest.mark.parametrize("name", LEAVES)
def test_extreme_scores_become_predictions(name, language, tmp_path):
    program, run = RUNNERS[language]
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    link, value, classes = LEAVES[name]
    document = {
        "trees": [[{"value": value}]],
        "features": [{"name": "x", "categories": None}],
        "classes": classes,
        "start": [0.0] * len(value),
        "sum": "sum",
        "link": link,
        "power": 1.0,
    }
    found = run(write_source(document, language, "Model"), "n0.0\n", tmp_path)
    expected = {
        "softmax of large scores": [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1)), 0],
        "a share above one": [0, 1],
        "a share below zero": [1, 0],
        "quantiles that cross": [1, 2, 3],
    }[name]
    np.testing.assert_allclose(found[0], expected, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("language", RUNNERS)
def test_a_large_model_compiles(language, tmp_path):
    program, run = RUNNERS[language]
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    model = certree.TreeForestRegressor(n_estimators=20, random_state=0).fit(X, X @ [1, 2, 3])
    assert (model.trees_.left < 0).sum() > 20_000
    found = run(model.to_code(language, "Model"), write_rows(pd.DataFrame(X[:50])), tmp_path)
    np.testing.assert_allclose(found[:, 0], model.predict(X[:50]), rtol=1e-10)


@pytest.mark.parametrize("language", RUNNERS)
def test_comments_state_types_units_and_codes(language):
    X = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=40), "size": range(40)})
    X["town"] = pd.Categorical([*"ab*/"] * 10)
    X["code"] = pd.Categorical([7.5, 9.0] * 20)
    X["many"] = pd.Categorical([f"m{i:02d}" for i in range(40)])
    X["wait"] = pd.to_timedelta(np.arange(40), unit="h")
    X["seen"] = X["day"].dt.tz_localize("Europe/Zurich")
    X["few"] = pd.Categorical([f"f{i % 20:02d}" for i in range(40)])
    model = certree.PACBayesTreeClassifier(random_state=0).fit(X, np.arange(40) > 20)
    features = model.to_dict()["features"]
    towns = features[2]["categories"]
    code = model.to_code(language, "Model")
    if language != "javascript":
        towns = ["with codes 0 " + towns[0], *(f"{k} {towns[k]}" for k in (1, 2, 3))]
    for line in (
        "x[0] day: date, days since 1970-01-01T00:00:00Z",
        "x[1] size: number",
        f"x[2] town: category, {', '.join(towns)}",
        f"x[3] code: category that is a number, {', '.join(map(repr, features[3]['categories']))}",
        "x[5] wait: time span, days",
        "x[6] seen: date, days since 1970-01-01T00:00:00Z, time zone Europe/Zurich",
        "out[1] probability of True",
    ):
        assert f"\n *     {line}\n" in code
    (many,) = re.findall(r"x\[4\] many: .*", code)
    assert many.endswith(", ...")
    (few,) = re.findall(r"x\[7\] few: .*", code)
    assert "..." not in few
    assert many.count("m") == 20 + 1


def test_a_null_pointer_of_c_is_a_missing_category(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("there is no cc")
    X, numbers = draw(400)
    model = certree.PACBayesTreeClassifier(random_state=0).fit(X, numbers > 1)
    code = model.to_code("c", "Model").replace("Model_predict(", "Model_predict_row(")
    code += (
        "#define Model_predict(x, out) (x[2] = Model_category(2, 0), Model_predict_row(x, out))\n"
    )
    new = X[:20].assign(town=None)
    found = run_c(code, write_rows(new.where(new.notna(), np.nan)), tmp_path)
    np.testing.assert_allclose(found, model.predict_proba(new), rtol=1e-10)


CALLS = {"c": "Model_category({}, {})", "java": "Model.category({}, {})"}


@pytest.mark.parametrize("language", CALLS)
@pytest.mark.parametrize("feature", [0, 3, 4, -1])
def test_codes_of_features_without_texts_are_refused(tmp_path, language, feature):
    """Feature 0 is a number, feature 3 has categories that are numbers, and there are four features."""
    command, run = RUNNERS[language]
    if shutil.which(command) is None:
        pytest.skip(f"there is no {command}")
    X, numbers = draw(400)
    model = certree.PACBayesTreeClassifier(random_state=0).fit(X, numbers > 1)
    code = model.to_code(language, "Model")
    call = CALLS[language].format(feature, '"x"')
    if language == "c":
        code += f"#define Model_predict(x, out) ((x)[0] = {call}, Model_predict(x, out))\n"
    else:
        code = code.replace(
            "double[] predict(double[] x) {", f"double[] predict(double[] x) {{ {call};"
        )
        assert call in code
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run(code, write_rows(X[:2]), tmp_path)
    assert b"feature must be one whose categories are texts" in caught.value.stderr
    if language == "c":  # Without assertions the value is missing.
        lone = run_c("#define NDEBUG\n" + code, write_rows(X[:2]), tmp_path)
        expected = model.predict_proba(X[:2].assign(income=np.nan))
        np.testing.assert_allclose(lone, expected, rtol=1e-10)


@pytest.mark.parametrize("language", CALLS)
def test_a_feature_without_any_value_takes_texts(tmp_path, language):
    command, run = RUNNERS[language]
    if shutil.which(command) is None:
        pytest.skip(f"there is no {command}")
    X = pd.DataFrame({"x": np.arange(40.0), "empty": np.array([None] * 40, dtype=object)})
    model = certree.PACBayesTreeClassifier(random_state=0).fit(X, X.x > 20)
    assert model.to_dict()["features"][1]["categories"] == []
    found = run(model.to_code(language, "Model"), write_rows(X[:9].assign(empty="new")), tmp_path)
    np.testing.assert_allclose(found, model.predict_proba(X[:9]), rtol=1e-10)


def test_javascript_refuses_rows_that_it_would_misread(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    X, numbers = draw(400)
    model = certree.PACBayesTreeClassifier(random_state=0).fit(X, numbers > 1)
    (tmp_path / "model.mjs").write_text(model.to_code("javascript"), encoding="utf-8")
    calls = {
        "{ income: 1 }": "x must be an array of 4 values, got object",
        "[1, 2, 'ü']": "x must be an array of 4 values, got 3",
        "['1,5', 2, 'ü', 2]": "x[0] must be a number or null, got string 1,5",
        "[new Date(0), 2, 'ü', 2]": "x[0] must be a number or null, got object",
    }
    tries = "".join(
        f"try {{ predict({row}); }} catch (e) {{ console.log(e.message); }}\n" for row in calls
    )
    main = (
        f'import {{ predict }} from "./model.mjs";\n{tries}predict([true, null, undefined, NaN]);'
        'predict([1n, null, "x", 2]);'
    )
    (tmp_path / "main.mjs").write_text(main, encoding="utf-8")
    done = subprocess.run(["node", "main.mjs"], cwd=tmp_path, check=True, capture_output=True)
    for line, message in zip(done.stdout.decode().splitlines(), calls.values(), strict=True):
        assert line.startswith(message)


def test_a_name_that_is_no_identifier_is_refused():
    model = certree.BoostedTreesRegressor(max_iter=1).fit([[0.0], [1.0]], [0.0, 1.0])
    for name in ("", "2x", "A b", "A;b"):
        with pytest.raises(ValueError, match=r"^name, .* and begin with no digit, got"):
            model.to_code("c", name)
    for name in ("2x", "class", "model"):
        with pytest.raises(ValueError, match=r"^name, .* and begin with a capital letter, got"):
            model.to_code("java", name)
    assert "void model_predict(" in model.to_code("c", "model")
    with pytest.raises(ValueError, match="language must be one of c, java, javascript, got 'rust'"):
        model.to_code("rust")


def test_models_in_leaves_have_no_code():
    model = certree.DecoratedTreeClassifier().fit([[0.0], [1.0]] * 20, [0, 1] * 20)
    with pytest.raises((TypeError, ValueError)):
        model.to_code("c")
