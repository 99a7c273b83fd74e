"""The paper's experiment: `protocol` runs it, `table2` and `figure2` say what came out."""
