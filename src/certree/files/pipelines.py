"""Files of scikit-learn pipelines that end in an estimator of certree.

A file is a zip archive of two members. "pipeline.skops" holds all steps but the last, as skops writes
them; "model.certree" is the model file of the last step. skops creates objects of known types only,
so that loading a file runs no code from it.
"""

from __future__ import annotations

import io
import json
import os
import stat
import zipfile
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from certree.interface.extras import import_extra

_STEPS, MODEL = "pipeline.skops", "model.certree"
# Types of fitted transformers of scikit-learn that skops does not trust by default. They hold names,
# patterns and dtypes, and run nothing.
_TRUSTED = [
    "numpy.dtype",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
]
# In the archives of skops: the member that describes all objects, and the type of constants in it.
_SCHEMA, _CONSTANT = "schema.json", "JsonNode"
# The time that members of archives get, so that equal pipelines have equal files.
_TIME = (1980, 1, 1, 0, 0, 0)
# Bytes that the steps may have in memory, and the ratio to their file size beyond which they may
# not have more: Deflate would allow a ratio of 1000.
_MIN_BYTE_LIMIT, _MAX_BYTE_RATIO = 2**26, 100


def write_pipeline(file: BinaryIO, pipeline: Pipeline, model: bytes) -> None:
    """Write a fitted pipeline to a file.

    Parameters
    ----------
    file : binary file
        A file that is open for writing.
    pipeline : Pipeline
        The pipeline. Its `memory` is not stored.
    model : bytes
        Content of the model file of its last step.

    Raises
    ------
    ImportError
        If skops is not installed.
    TypeError
        If a step is of a type that skops does not trust, such as one with functions of the user.
    """
    skops = import_extra("skops.io", "pipelines")
    steps = replace_model(pipeline, "passthrough")
    content = _renumber_objects(skops.dumps(steps))
    unknown = {*skops.get_untrusted_types(data=content)} - {*_TRUSTED}
    if unknown:
        names = [
            repr(name)
            for name, step in steps.steps[:-1]
            if unknown & {*skops.get_untrusted_types(data=skops.dumps(step))}
        ]
        raise TypeError(
            "model cannot be saved: steps of a pipeline before the last must be transformers of "
            "scikit-learn without functions of your own, got "
            f"{', '.join(sorted(unknown))} in the steps {', '.join(names)}"
        )
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in ((_STEPS, content), (MODEL, model)):
            archive.writestr(zipfile.ZipInfo(name, _TIME), data)


def _renumber_objects(content: bytes) -> bytes:
    """Return an archive of skops in which nothing depends on the process or the time.

    skops writes the address of each object in memory, names the files of arrays by addresses, and
    adds the time. Here objects and files get running numbers, and a fixed time. So equal pipelines
    have equal files, and thus equal hashes. content: bytes of the archive.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    numbers: dict[int, int] = {}
    names: dict[str, str] = {}

    def renumber(node: dict[str, Any]) -> dict[str, Any]:
        """Replace the memory address and file name in one JSON object of a skops file by numbers.

        Numbers are given in the order of first use, so that equal pipelines have equal files. node:
        a dictionary by which skops describes a Python object; it is changed and returned.
        """
        if isinstance(address := node.get("__id__"), int):
            if node.get("__loader__") == _CONSTANT:
                # Whether two equal constants are one object differs between processes.
                del node["__id__"]
            else:
                node["__id__"] = numbers.setdefault(address, len(numbers) + 1)
        if isinstance(name := node.get("file"), str) and name in members:
            node["file"] = names.setdefault(name, f"{len(names) + 1}{Path(name).suffix}")
        return node

    schema = json.loads(members[_SCHEMA], object_hook=renumber)
    members[_SCHEMA] = json.dumps(schema).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(names.get(name, name), _TIME), data)
    return buffer.getvalue()


def replace_model(pipeline: Pipeline, model: Any) -> Pipeline:
    """Return a pipeline with the same steps, except that the last one is replaced by `model`."""
    name = pipeline.steps[-1][0]
    replaced = Pipeline([*pipeline.steps[:-1], (name, model)], verbose=pipeline.verbose)
    replaced.transform_input = getattr(pipeline, "transform_input", None)
    return replaced


def get_model(pipeline: Pipeline) -> Any:
    """Return the last step of a fitted pipeline, an estimator that a model file can hold.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the pipeline is not fitted.
    """
    check_is_fitted(pipeline)
    return pipeline.steps[-1][1]


def split_pipeline(model: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Split a fitted pipeline into its last step and the transformation before it.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one
        The model.

    Returns
    -------
    estimator : fitted estimator
        The last step; the model itself if it is no pipeline.
    transform : callable
        Takes rows as the model's `predict` does, and returns those that the last step reads.
    """
    if not isinstance(model, Pipeline) or len(model.steps) == 1:
        return (model.steps[-1][1] if isinstance(model, Pipeline) else model), lambda rows: rows
    return model.steps[-1][1], model[:-1].transform


def name_model_features(model: Any) -> Any:
    """Return the last step of a fitted pipeline, with names for the features that it reads.

    The names are those that the steps before the last give to their columns, such as "town_Lima".
    They change no prediction. model: a fitted estimator of certree, which is returned as it is, or
    a pipeline that ends in one. The last step is returned as it is if it has names already, or if
    the steps before it give none.
    """
    if not isinstance(model, Pipeline):
        return model
    estimator, _ = split_pipeline(model)
    if hasattr(estimator, "feature_names_in_") or len(model.steps) == 1:
        return estimator
    try:
        names = model[:-1].get_feature_names_out()
    except (AttributeError, ValueError):  # a step cannot name its columns
        return estimator
    named = copy(estimator)
    named.feature_names_in_ = np.asarray(names, dtype=object)
    return named


def transform_rows(model: Any, rows: Any) -> tuple[Any, Any]:
    """Return the estimator that explanations and reports need, and the dense rows that it reads.

    model: a fitted estimator, or a pipeline that ends in one. rows: the rows that the model reads.
    For a pipeline the result is its last step, with feature names from the other steps, and the
    rows that these return.
    """
    _, transform = split_pipeline(model)
    X: Any = transform(rows)
    is_sparse: bool = issparse(X)
    return name_model_features(model), X.toarray() if is_sparse else X


def is_pipeline_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a zip archive with the two members of a pipeline's file.

    path: the file. Pipes and devices are not read. Raise an OSError if the file does not exist or
    cannot be read.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        return False
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return {_STEPS, MODEL} == {*archive.namelist()}
        except Exception:  # noqa: BLE001 -- zipfile raises errors of any type on damaged bytes
            return False


def read_pipeline(path: str | os.PathLike[str]) -> tuple[Pipeline, bytes]:
    """Read a pipeline from a file that `write_pipeline` wrote.

    Parameters
    ----------
    path : path
        The file, for which `is_pipeline_file` is True.

    Returns
    -------
    pipeline : Pipeline
        The pipeline, whose last step is "passthrough".
    model : bytes
        Content of the model file of the last step, not checked.

    Raises
    ------
    ImportError
        If skops is not installed.
    ValueError
        If the file holds types that skops does not trust, or is damaged.
    """
    skops = import_extra("skops.io", "pipelines")
    with zipfile.ZipFile(path) as archive:
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise ValueError(
                "the pipeline file must have members that are not compressed: save it again by "
                "certree.save"
            )
        content, model = archive.read(_STEPS), archive.read(MODEL)
    with zipfile.ZipFile(io.BytesIO(content)) as inner:
        size = sum(member.file_size for member in inner.infolist())
    if size > max(_MIN_BYTE_LIMIT, _MAX_BYTE_RATIO * len(content)):
        raise ValueError(
            f"the steps of the pipeline have {size:,} bytes, too many for a file of this size: "
            "save the pipeline again by certree.save"
        )
    unknown = {*skops.get_untrusted_types(data=content)} - {*_TRUSTED}
    if unknown:
        raise ValueError(
            "the pipeline file holds types that skops does not trust, "
            f"{', '.join(sorted(unknown))}: save the pipeline again by certree.save"
        )
    pipeline = skops.loads(content, trusted=_TRUSTED)
    if not isinstance(pipeline, Pipeline) or pipeline.steps[-1][1] != "passthrough":
        raise ValueError("the pipeline file must hold a Pipeline whose last step is a model file")
    return pipeline, model
