"""Certify a tree: what the certificate guarantees, and what it is made of.

On scikit-learn's breast cancer set: a fit that keeps rows apart for its certificate, the certificates
of both candidates, how many rows another bound would need, and a classifier of somebody else, certified
by rows that it has never seen.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from certree import CertifiedTreeClassifier, certify

TARGET = 0.10


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_new, y_train, y_new = train_test_split(
        X, y, train_size=400, stratify=y, random_state=0
    )
    model = CertifiedTreeClassifier(delta=0.05, random_state=0)
    model.fit(X_train, y_train)
    print(model.report())

    print("\nThe two candidates, which hold together:")
    for certificate in model.certificates_[:2]:
        print(f"  {certificate}")

    certificate = model.certificate_
    rows = certificate.n_samples_needed(TARGET)
    print(f"\nWeighing rows that would bring the bound down to {100 * TARGET:.0f} %: ", end="")
    print(
        "none, the observed error is too high" if rows is None else f"{rows:,}, if all else stays"
    )
    print(
        f"Error on {len(y_new)} rows that were kept for the end: {1 - model.score(X_new, y_new):.3f}"
    )

    # These rows have chosen nothing, so they may certify any classifier, but only one.
    forest = RandomForestClassifier(random_state=0).fit(X_train, y_train)
    print(f"\nA forest of all training rows: {certify(forest, X_new, y_new)}")


if __name__ == "__main__":
    main()
