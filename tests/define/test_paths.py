"""Definitions read inside the project and write inside its output folder, and no link leads out."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.core.errors import BadDefinition, HeadraceError
from headrace.define.paths import output_file
from headrace.define.project import Project, load_project, read_project
from headrace.define.settings import Settings

STREAM = "CREATE STREAM s (a INT) WITH (source = 'files', path = '{}');"
TABLE = "CREATE TABLE t (a INT) USING csv LOCATION '{}';"
RULES = "CREATE STREAM s (a INT); CREATE RULES r ON s FROM '{}';"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a link to its own definitions, one to its folder and one out of it."""
    made = tmp_path / "shop"
    (made / "out").mkdir(parents=True)
    (made / "headrace.toml").write_text('name = "shop"\n')
    (made / "lookups").mkdir()
    (made / "lookups" / "t.csv").write_text("a\n1\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "t.csv").write_text("a\n1\n")
    (made / "out" / "up").symlink_to(made)
    (made / "out" / "away").symlink_to(tmp_path / "elsewhere")
    (made / "out" / "file").symlink_to(made / "headrace.toml")
    (made / "linked.csv").symlink_to(tmp_path / "elsewhere" / "t.csv")
    return made


@pytest.mark.parametrize("target", ["a.ndjson", "deep/er/a.ndjson", "x.sql", "./a", "b/../a"])
def test_a_definition_writes_inside_the_output_folder(folder: Path, target: str) -> None:
    path = output_file(load_project(folder), target, "rule 'r'")
    assert path == (folder / "out" / target).resolve()


@pytest.mark.parametrize(
    "target",
    [
        "/tmp/x", "/etc/cron.d/x", "../x", "../functions.py", "../x.sql", "../headrace.toml",
        "../.headrace/serving.db", "../lookups/t.csv", "a/../../x", "up/x.sql", "up/functions.py",
        "away/x", "away/t.csv", "file", "", ".", "..", "a/", "a/..", "a\0b", "a\nb", "..\\x",
        "x" * 201,
    ],
)  # fmt: skip
def test_no_way_leads_out_of_the_output_folder(folder: Path, target: str) -> None:
    with pytest.raises(BadDefinition) as refused:
        output_file(load_project(folder), target, "rule 'r'")
    assert refused.value.message == (
        f"rule 'r' writes to '{target[:100]}', which is not in the project's output folder"
    )
    assert refused.value.hint == "the path is relative to out/, such as 'alerts.ndjson'."


def mistakes(folder: Path, text: str) -> list[str]:
    (folder / "shop.sql").write_text(text)
    return [error.message for error in read_project(folder)[1]]


@pytest.mark.parametrize(
    ("text", "what"), [(TABLE, "table 't'"), (STREAM, "stream 's'"), (RULES, "rules 'r'")]
)
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../elsewhere/t.csv", "linked.csv", "lookups/../../elsewhere/t.csv"]
)
def test_a_definition_reads_inside_the_project(
    folder: Path, text: str, what: str, path: str
) -> None:
    said = f"{what} reads '{path}', which is outside the project's folder"
    assert said in mistakes(folder, text.replace("{}", path))


@pytest.mark.parametrize("path", ["out/t.csv", "./out", ".headrace/serving.db"])
def test_a_project_does_not_read_what_it_writes(folder: Path, path: str) -> None:
    (said,) = mistakes(folder, TABLE.replace("{}", path))
    kind = "state" if "headrace" in path else "output"
    assert said == f"table 't' reads '{path}', which is in the project's {kind} folder"
    (said,) = mistakes(folder, STREAM.replace("{}", f"{path}/*.csv"))
    assert said.endswith(f"which is in the project's {kind} folder")


def test_paths_of_the_project_are_read(folder: Path) -> None:
    assert mistakes(folder, TABLE.replace("{}", "lookups/t.csv")) == []
    assert mistakes(folder, STREAM.replace("{}", "**/*.csv")) == []


@pytest.mark.parametrize("output", [".", "..", "/tmp", ".headrace", ".headrace/out", "out/away"])
def test_output_is_a_folder_of_its_own(folder: Path, output: str) -> None:
    (folder / "headrace.toml").write_text(f'name = "shop"\noutput = "{output}"\n')
    (error,) = read_project(folder)[1]
    assert isinstance(error, HeadraceError)
    assert error.message == (
        f"output must be a folder inside the project and outside its state folder, not '{output}'"
    )


def test_the_state_may_not_lie_in_the_output(folder: Path) -> None:
    (folder / "headrace.toml").write_text('name = "shop"\nstate = "out/state"\n')
    assert len(read_project(folder)[1]) == 1


def test_a_project_elsewhere_has_its_own_output(tmp_path: Path) -> None:
    project = Project(tmp_path, Settings(name="p", output="sent"), ())
    assert output_file(project, "a", "x") == tmp_path.resolve() / "sent" / "a"
