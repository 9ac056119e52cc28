"""`cuwarden export --format html`: the page's data is compared with what this file reads from the reports."""

import base64
import json
import re
import zlib

import pytest

from conftest import one_line


def data_of(page):
    """The page's data, after a check that nothing in it can act before the page's own script."""
    text = page.read_text()
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    [packed] = re.findall(r'id="data">([A-Za-z0-9+/=]+)</script>', text)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


@pytest.fixture
def page(cuwarden, tmp_path):
    """Exports reports to a page; skips the test where cuwarden is built without the page."""

    def export(*reports):
        path = tmp_path / "page.html"
        done = cuwarden("export", "--format", "html", "-o", path, *reports)
        if "built without the page" in done.stderr:
            assert done.returncode == 2 and one_line(done.stderr)
            pytest.skip("cuwarden is built without the page")
        return done, path

    return export


def test_a_page_has_the_groups_of_the_report(page, sample_report):
    done, path = page(sample_report)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    data = data_of(path)
    report = json.loads(sample_report.read_text())
    [shown] = data["reports"]
    groups = sorted(report["leak_groups"], key=lambda group: -group["bytes"])
    assert shown["groups"]["bytes"] == [group["bytes"] for group in groups]
    assert [data["strings"][kind] for kind in shown["groups"]["kind"]] == [group["kind"] for group in groups]
    assert shown["groups"]["fingerprint"] == [group["fingerprint"] for group in groups]
    assert data["difference"] is None
    assert "no-such-host" not in path.read_text()


def test_a_page_refers_to_no_other_file(page, sample_report):
    text = page(sample_report)[1].read_text()
    markup = re.sub(r"<script>.*?</script>|<style>.*?</style>|<pre>.*?</pre>", "", text, flags=re.DOTALL)
    assert not re.search(r"\b(?:src|href)\s*=\s*[\"'](?!#)", markup)
    assert "default-src 'none'" in markup


def test_two_reports_have_a_difference(page, sample_report, tmp_path):
    report = json.loads(sample_report.read_text())
    grown, gone = report["leak_groups"][0], report["leak_groups"][1]
    report["leak_groups"] = [dict(grown, bytes=grown["bytes"] + 1024)]
    now = tmp_path / "now.json"
    now.write_text(json.dumps(report))
    rows = {row["fingerprint"]: row for row in data_of(page(sample_report, now)[1])["difference"]["rows"]}
    assert rows[grown["fingerprint"]]["change"] == "grown"
    assert rows[grown["fingerprint"]]["bytes"] - rows[grown["fingerprint"]]["bytes_before"] == 1024
    assert rows[gone["fingerprint"]]["change"] == "gone"


def test_reports_share_their_frames(page, sample_report, tmp_path):
    copies = []
    for number in range(3):
        copies.append(tmp_path / f"copy_{number}.json")
        copies[-1].write_text(sample_report.read_text())
    one = data_of(page(sample_report)[1])
    three = data_of(page(*copies)[1])
    assert len(three["reports"]) == 3 and three["difference"] is None
    assert three["frames"] == one["frames"] and three["nodes"] == one["nodes"]


def test_a_damaged_report_is_left_out_and_named(page, sample_report, tmp_path):
    damaged = tmp_path / "damaged.json"
    damaged.write_text(sample_report.read_text()[:-100])
    done, path = page(damaged, sample_report)
    assert done.returncode == 2 and one_line(done.stderr) and "damaged.json" in done.stderr
    assert len(data_of(path)["reports"]) == 1


def test_a_merged_report_is_refused(page, cuwarden, sample_report, tmp_path):
    page(sample_report)
    merged = tmp_path / "merged.json"
    assert cuwarden("merge", sample_report, "-o", merged).returncode == 0
    done, _ = page(merged)
    assert done.returncode == 2 and one_line(done.stderr) and "it is a merged report" in done.stderr


def test_a_folder_that_cannot_be_written_is_named(cuwarden, page, sample_report, tmp_path):
    page(sample_report)
    done = cuwarden("export", "--format", "html", "-o", tmp_path / "none" / "page.html", sample_report)
    assert done.returncode == 2 and one_line(done.stderr) and "none/page.html" in done.stderr
