"""Which files a folder holds."""

from certree.parts.table_files import files_of


def test_what_is_hidden_or_no_table_is_passed_over(tmp_path):
    for name in ("a.parquet", "deep/b.csv", "_SUCCESS.csv", ".hidden/c.csv", "notes.txt"):
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("")
    assert [one.name for one in files_of(tmp_path)] == ["a.parquet", "b.csv"]
