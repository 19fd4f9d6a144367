"""`headrace serve`, `submit`, `jobs`, `apply`, `rollback` and `job …`: the commands and their
options; what they do is in cli/jobs.py and cli/serving.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Json

job_app = typer.Typer(no_args_is_help=True, help="Show and control one job of a server.")
Job = Annotated[str, typer.Argument(metavar="JOB", help="the job's name")]
Project = Annotated[Path, typer.Argument(metavar="DIR", help="the project's folder")]
Server = Annotated[
    str | None, typer.Option(metavar="URL", help="the server; else HEADRACE_SERVER, else --home")
]
Home = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="the domain's folder; else HEADRACE_HOME, else ~/.headrace"),
]
Id = Annotated[
    str | None, typer.Option("--id", help="the command's id; a command is executed once per id")
]
Cores = Annotated[int | None, typer.Option(min=1, help="cores of its Spark")]
Memory = Annotated[str | None, typer.Option(metavar="2g", help="memory of its driver")]
Pool = Annotated[str | None, typer.Option(help="Spark pool of the server")]
Tag = Annotated[
    list[str] | None, typer.Option(help="a tag that the server must have; may be repeated")
]


def serve(
    home: Home = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="HTTP port; 0 selects a free one")
    ] = None,
    json: Json = False,
) -> int:
    """Serve jobs until Ctrl-C; jobs keep running without it."""
    from headrace.cli import serving as body

    return body.serve(home, port, json=json)


def submit(
    folder: Project,
    name: Annotated[str | None, typer.Option(help="the job's name; else the project's")] = None,
    cores: Cores = None,
    memory: Memory = None,
    pool: Pool = None,
    tag: Tag = None,
    server: Server = None,
    home: Home = None,
    id: Id = None,
    json: Json = False,
) -> int:
    """Create a job from a project, on a server."""
    from headrace.cli import jobs as body

    resources = body.resource_request(cores, memory, pool, tag)
    return body.submit(body.server_address(server, home), folder, name, resources, id).print(json)


def jobs(server: Server = None, home: Home = None, json: Json = False) -> int:
    """Show the jobs of a server."""
    from headrace.cli import jobs as body

    return body.list_jobs(body.server_address(server, home)).print(json)


def apply(
    folder: Project,
    job: Job,
    cores: Cores = None,
    memory: Memory = None,
    pool: Pool = None,
    tag: Tag = None,
    server: Server = None,
    home: Home = None,
    id: Id = None,
    json: Json = False,
) -> int:
    """Make a project the next version of a job."""
    from headrace.cli import jobs as body

    resources = body.resource_request(cores, memory, pool, tag)
    return body.apply(body.server_address(server, home), folder, job, resources, id).print(json)


def rollback(
    job: Job,
    version: Annotated[
        int | None, typer.Argument(metavar="[VERSION]", help="else the one before")
    ] = None,
    server: Server = None,
    home: Home = None,
    id: Id = None,
    json: Json = False,
) -> int:
    """Make an earlier version of a job the current one."""
    from headrace.cli import jobs as body

    return body.rollback(body.server_address(server, home), job, version, id).print(json)


@job_app.command()
def show(job: Job, server: Server = None, home: Home = None, json: Json = False) -> int:
    """Show one job and its versions."""
    from headrace.cli import jobs as body

    return body.show_job(body.server_address(server, home), job).print(json)


def _switch(verb: str) -> Callable[..., int]:
    def command(
        job: Job, server: Server = None, home: Home = None, id: Id = None, json: Json = False
    ) -> int:
        from headrace.cli import jobs as body

        return body.switch(body.server_address(server, home), job, verb, id).print(json)

    return command


for verb, meaning in (
    ("cancel", "Stop a job permanently; its state and versions are kept."),
    ("restart", "Restart a job's process; also one that has failed."),
    ("pause", "Stop a job until it is resumed; it still answers reads."),
    ("resume", "Resume a paused job."),
):
    job_app.command(verb, help=meaning)(_switch(verb))


@job_app.command()
def logs(
    job: Job,
    tail: Annotated[int, typer.Option(min=1, max=10_000, help="number of lines")] = 100,
    server: Server = None,
    home: Home = None,
    json: Json = False,
) -> int:
    """Show the end of a job's log."""
    from headrace.cli import jobs as body

    return body.logs(body.server_address(server, home), job, tail).print(json)
