"""Prometheus itself reads the alert rules, and fires each alert when it should and only then.

The cases are in alerts_test.yml, in the format of `promtool test rules`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/alerts.yml"
CASES = Path(__file__).with_name("alerts_test.yml")
# An indented block of the page, from its first line to the next line at the margin.
_CONFIG = re.compile(r"^    scrape_configs:\n(?:(?:    .*)?\n)+", re.MULTILINE)


def promtool(*arguments: object) -> None:
    if shutil.which("promtool") is None:
        pytest.fail("the alert rules are tested with promtool: apt-get install prometheus")
    command = ["promtool", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_prometheus_takes_the_rules() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)


def test_every_alert_fires_when_it_should_and_only_then() -> None:
    promtool("test", "rules", CASES)


def test_every_alert_has_a_case_in_which_it_fires_beside_one_that_is_well() -> None:
    rules = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    alerts = [rule["alert"] for group in rules for rule in group["rules"]]
    cases = {case["name"]: case for case in yaml.safe_load(CASES.read_text("utf-8"))["tests"]}
    assert list(cases)[1:] == alerts
    for alert in alerts:
        before, after = cases[alert]["promql_expr_test"]
        assert before["exp_samples"] == []
        firing = [sample["labels"] for sample in after["exp_samples"]]
        assert firing
        assert all(f'alertname="{alert}"' in labels for labels in firing)
        assert len(cases[alert]["input_series"]) > len(firing)


def test_prometheus_takes_the_configurations_of_the_docs(tmp_path: Path) -> None:
    found = _CONFIG.findall((ROOT / "docs/metrics.md").read_text("utf-8"))
    assert len(found) == 2
    for text in map(dedent, found):
        config = tmp_path / "prometheus.yml"
        config.write_text(text)
        promtool("check", "config", "--syntax-only", config)
        # HeadraceDown finds the targets by these names.
        names = [scrape["job_name"] for scrape in yaml.safe_load(text)["scrape_configs"]]
        assert all(name.startswith("headrace") for name in names)
