"""The command ``certree``: it starts the command line, or says in one line what that needs."""

from certree.extras import needed


def main() -> None:
    """Run the command line."""
    try:
        for module in ("typer", "rich", "pyarrow"):
            needed(module, "cli")
    except ImportError as error:
        raise SystemExit(f"error: {error}") from None
    from certree.cli import app

    app()


if __name__ == "__main__":
    main()
