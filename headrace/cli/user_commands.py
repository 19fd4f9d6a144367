"""`headrace user`, `token` and `grant`: the commands and their options; what they do is in
cli/users.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.options import Json, OfHome, OfServer, ProjectOption

user_app = typer.Typer(no_args_is_help=True, help="Add and remove users.")
token_app = typer.Typer(no_args_is_help=True, help="Create and revoke tokens.")
grant_app = typer.Typer(no_args_is_help=True, help="Add and remove grants.")

Name = Annotated[str, typer.Argument(metavar="USER", help="the user's name")]
OfUser = Annotated[str | None, typer.Option("--user", help="only those of this user")]
May = Annotated[str, typer.Argument(metavar="ROLE|OPERATION", help="such as viewer, or send")]
On = Annotated[str, typer.Argument(metavar="[OBJECT]", help="such as stream:clicks, or *")]


@user_app.command("add")
def add_user(
    name: Name,
    role: Annotated[str | None, typer.Option(help="a role on everything")] = None,
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Add a user, who has no permissions without grants."""
    from headrace.cli import users as body

    return body.add_user(body.access_target(project, server, home), name, role).print(json)


@user_app.command("list")
def list_users(
    project: ProjectOption = None, server: OfServer = None, home: OfHome = None, json: Json = False
) -> int:
    """Show all users and their grants."""
    from headrace.cli import users as body

    return body.list_users(body.access_target(project, server, home)).print(json)


@user_app.command("remove")
def remove_user(
    name: Name,
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Remove a user, with all tokens and grants."""
    from headrace.cli import users as body

    return body.remove_user(body.access_target(project, server, home), name).print(json)


@token_app.command("create")
def create_token(
    user: Annotated[str | None, typer.Option("--user", help="its user; else the caller")] = None,
    name: Annotated[str, typer.Option(help="what it is for")] = "",
    may: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE|OPERATION", help="limit it to this role or operation"),
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option(metavar="OBJECT", help="limit it to this object")
    ] = None,
    life: Annotated[str, typer.Option("--for", metavar="30d", help="its lifetime")] = "90 days",
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Create a token and show it, once."""
    from headrace.cli import users as body

    return body.create_token(
        body.access_target(project, server, home), user, name, may or [], on or [], life
    ).print(json)


@token_app.command("list")
def list_tokens(
    user: OfUser = None,
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Show tokens, without their secrets."""
    from headrace.cli import users as body

    return body.list_tokens(body.access_target(project, server, home), user).print(json)


@token_app.command("revoke")
def revoke_token(
    id: Annotated[str, typer.Argument(metavar="TOKEN", help="the token's id")],
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Revoke a token at once."""
    from headrace.cli import users as body

    return body.revoke_token(body.access_target(project, server, home), id).print(json)


@grant_app.command("add")
def add_grant(
    user: Name,
    may: May,
    on: On = "*",
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Grant a role or operation on an object; by default on everything."""
    from headrace.cli import users as body

    return body.add_grant(body.access_target(project, server, home), user, may, on).print(json)


@grant_app.command("list")
def list_grants(
    user: OfUser = None,
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Show all grants."""
    from headrace.cli import users as body

    return body.list_grants(body.access_target(project, server, home), user).print(json)


@grant_app.command("remove")
def remove_grant(
    user: Name,
    may: May,
    on: On = "*",
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Remove a grant."""
    from headrace.cli import users as body

    return body.remove_grant(body.access_target(project, server, home), user, may, on).print(json)
