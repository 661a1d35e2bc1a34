"""Pages and pictures say that a result holds inside a box only."""

import bestk
from bestk import Advanced
from bestk.show import report

SLOW = Advanced(enumeration=False, batch_size=1)


def test_a_report_says_conditional(easy_data, hard_data):
    result = bestk.solve(*easy_data, 3, bounds="auto")
    for page in (report.result_page(result), result._repr_html_()):
        assert "<strong>Conditional.</strong>" in page
        assert "larger coefficients were not looked at" in page
        assert "Proven optimal" not in page
        assert 'class="verdict"' in page
        assert 'class="verdict proven"' not in page
    assert "search ended early" not in report.result_page(result)
    stopped = bestk.solve(*hard_data, 6, bounds="auto", node_limit=5, advanced=SLOW)
    assert "features inside the box is better by more than" in report.result_page(stopped)


def test_a_path_report_and_picture_say_conditional(easy_data):
    path = bestk.solve_path(*easy_data, [1, 2], bounds="auto")
    for page in (report.path_page(path), path._repr_html_()):
        assert "<strong>Conditional.</strong>" in page
        assert "proven optimal" not in page.lower()
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert path.plot(ax).get_title() == "All sizes proven inside a chosen box"
