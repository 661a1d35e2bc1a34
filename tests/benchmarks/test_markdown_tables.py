"""Tables of the pages: figures are aligned on the right, words on the left."""

from benchmarks.harness.tables import Table, markdown_rows


def test_words_are_aligned_on_the_left_and_figures_on_the_right():
    table = Table(
        columns=["program", "seconds", "gap", "outcome", "reason", "change"],
        rows=[
            ["a|b", "0.1 s", "1.5%", "failed", "no model of five features", "+2%"],
            ["c", "-", "failed", "best", "3 of them ran out of memory", "best"],
            ["d", "2 s", "-", "failed", "too slow", "-1%"],
        ],
    )
    assert markdown_rows(table)[:3] == [
        "| program | seconds | gap | outcome | reason | change |",
        "| --- | ---: | ---: | ---: | --- | ---: |",
        "| a\\|b | 0.1 s | 1.5% | failed | no model of five features | +2% |",
    ]


def test_a_table_without_rows_has_its_head():
    assert len(markdown_rows(Table(columns=["k", "seconds"]))) == 3
