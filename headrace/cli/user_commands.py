"""`headrace user`, `token` and `grant`: the commands and their options; what they do is in
cli/users.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.options import Json, OfHome, OfServer, ProjectOption

user_app = typer.Typer(no_args_is_help=True, help="Add and remove users.")
token_app = typer.Typer(no_args_is_help=True, help="Make and revoke tokens.")
grant_app = typer.Typer(no_args_is_help=True, help="Say who may do what.")

Name = Annotated[str, typer.Argument(metavar="USER", help="the user's name")]
OfUser = Annotated[str | None, typer.Option("--user", help="only those of this user")]
May = Annotated[str, typer.Argument(metavar="ROLE|OPERATION", help="such as viewer, or send")]
On = Annotated[str, typer.Argument(metavar="[OBJECT]", help="such as stream:clicks, or *")]


@user_app.command("add")
def add_user(
    name: Name,
    role: Annotated[str | None, typer.Option(help="a role that the user has on all")] = None,
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Add a user, who may do nothing but what is granted."""
    from headrace.cli import users as body

    return body.add_user(body.of(project, server, home), name, role).say(json)


@user_app.command("list")
def list_users(
    project: ProjectOption = None, server: OfServer = None, home: OfHome = None, json: Json = False
) -> int:
    """Show all users and what they may do."""
    from headrace.cli import users as body

    return body.list_users(body.of(project, server, home)).say(json)


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

    return body.remove_user(body.of(project, server, home), name).say(json)


@token_app.command("create")
def create_token(
    user: Annotated[str | None, typer.Option("--user", help="whose; else who asks")] = None,
    name: Annotated[str, typer.Option(help="what it is for")] = "",
    may: Annotated[
        list[str] | None, typer.Option(metavar="ROLE|OPERATION", help="carry only this")
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option(metavar="OBJECT", help="carry it only for this")
    ] = None,
    life: Annotated[str, typer.Option("--for", metavar="30d", help="how long")] = "90 days",
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Make a token and show it, once."""
    from headrace.cli import users as body

    return body.create_token(
        body.of(project, server, home), user, name, may or [], on or [], life
    ).say(json)


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

    return body.list_tokens(body.of(project, server, home), user).say(json)


@token_app.command("revoke")
def revoke_token(
    id: Annotated[str, typer.Argument(metavar="TOKEN", help="the token's id")],
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Let a token be valid no more, at once."""
    from headrace.cli import users as body

    return body.revoke_token(body.of(project, server, home), id).say(json)


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
    """Let a user do something on an object; on all if none is named."""
    from headrace.cli import users as body

    return body.add_grant(body.of(project, server, home), user, may, on).say(json)


@grant_app.command("list")
def list_grants(
    user: OfUser = None,
    project: ProjectOption = None,
    server: OfServer = None,
    home: OfHome = None,
    json: Json = False,
) -> int:
    """Show who may do what."""
    from headrace.cli import users as body

    return body.list_grants(body.of(project, server, home), user).say(json)


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
    """Take a grant back."""
    from headrace.cli import users as body

    return body.remove_grant(body.of(project, server, home), user, may, on).say(json)
