"""Naive Bayes: a yardstick for tables of numbers and categories; it grows no tree."""

from certree.estimators.naive_bayes.classifier import NaiveBayesClassifier

__all__ = ["NaiveBayesClassifier"]
