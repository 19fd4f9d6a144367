"""The screen of users: what those see and do who manage users, and what the others are told."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import expect

from tests.access.users import bearer

from .conftest import Harbour, Visit, Visiting


@pytest.fixture
def client(harbour: Harbour) -> Iterator[httpx.Client]:
    who = bearer(harbour.token)
    with httpx.Client(base_url=harbour.url, headers=who, trust_env=False) as made:
        yield made


@pytest.fixture
def viewer(client: httpx.Client) -> Iterator[str]:
    """The token of vera, who may read and nothing else."""
    assert client.post("/v1/users", json={"name": "vera", "role": "viewer"}).is_success
    yield client.post("/v1/tokens", json={"user": "vera", "name": "desk"}).json()["secret"]
    client.post("/v1/users/vera/remove")


def test_a_user_is_added_granted_something_let_in_and_removed(
    visit: Visit, client: httpx.Client
) -> None:
    page = visit.page
    visit.go("#/users")
    page.get_by_role("button", name="Add a user").click()
    page.get_by_label("Name").fill("ada")
    visit.shot("user-added")
    assert visit.findings() == []
    page.get_by_role("button", name="Add", exact=True).click()
    panel = page.get_by_role("dialog", name="ada", exact=True)
    panel.get_by_label("Role or operation").select_option("send")
    panel.get_by_role("combobox", name="On", exact=True).fill("stream:notes")
    panel.get_by_role("button", name="Grant").click()
    expect(panel.get_by_role("row")).to_contain_text(["Granted", "viewer", "stream:notes"])
    secret = _new_token(visit)
    assert client.get("/v1/session", headers=bearer(secret)).json()["user"] == "ada"
    expect(panel).to_contain_text("importer")
    visit.shot("user")
    assert visit.findings() == []
    panel.get_by_role("button", name="Revoke importer").click()
    page.get_by_role("button", name="Revoke", exact=True).click()
    expect(panel).to_contain_text("revoked")
    assert client.get("/v1/session", headers=bearer(secret)).status_code == 401
    panel.get_by_role("button", name="Take back send").click()
    page.get_by_role("button", name="Take back", exact=True).click()
    expect(panel).not_to_contain_text("stream:notes")
    panel.get_by_role("button", name="Remove ada").click()
    visit.shot("user-removed")
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_role("cell", name="ada", exact=True)).to_have_count(0)
    assert "ada" not in client.get("/v1/users").text


def _new_token(visit: Visit) -> str:
    """Make a token on the open panel, and read it while it is shown."""
    panel = visit.page.get_by_role("dialog", name="ada", exact=True)
    panel.get_by_role("button", name="Make a token").click()
    asking = visit.page.get_by_role("dialog", name="Make a token")
    asking.get_by_label("Name").fill("importer")
    asking.get_by_role("button", name="Make it").click()
    shown = visit.page.get_by_role("dialog", name="A token of ada")
    secret = shown.locator("pre").inner_text()
    visit.shot("token-made")
    assert visit.findings() == []
    shown.get_by_role("button", name="I have it").click()
    expect(visit.page.get_by_text(secret)).to_have_count(0)
    return secret


def test_the_audit_log_is_filtered_by_decision_deed_and_words(
    visit: Visit, client: httpx.Client, viewer: str
) -> None:
    assert client.get("/v1/users", headers=bearer(viewer)).status_code == 403
    visit.go("#/users?tab=log&of=vera")
    rows = visit.page.locator("tbody tr")
    refused = rows.filter(has_text="vera may not manage everything")
    expect(refused.first).to_contain_text("refused")
    visit.page.get_by_label("Decision").select_option("allowed")
    expect(refused).to_have_count(0)
    visit.page.get_by_label("Find in the log").fill("nothing of this kind")
    visit.see("No matching entry")
    visit.go("#/users?tab=log")
    visit.page.get_by_label("What was done").select_option("add_user")
    visit.page.get_by_label("Find in the log").fill("vera")
    expect(rows.first).to_contain_text("add user")
    expect(rows.first).not_to_contain_text("refused")


def test_older_entries_of_the_audit_log_are_a_press_away(
    visit: Visit, client: httpx.Client, viewer: str
) -> None:
    for _ in range(201):
        assert client.get("/v1/users", headers=bearer(viewer)).status_code == 403
    newest = client.get("/v1/audit-log?limit=201").json()["entries"]
    visit.go("#/users?tab=log")
    rows = visit.page.locator("tbody tr")
    expect(rows).to_have_count(200)
    visit.page.get_by_role("button", name="Older").click()
    visit.see(f"before entry {newest[199]['number']:,}")
    expect(rows.first).to_contain_text(newest[200]["at"][11:19])
    visit.page.get_by_label("User", exact=True).select_option("vera")
    expect(rows).to_have_count(200)
    expect(visit.page.get_by_role("button", name="Newest")).to_have_count(0)


def test_whoever_may_not_manage_sees_their_own_and_what_they_would_need(
    visiting: Visiting, viewer: str
) -> None:
    with visiting(token=viewer) as visit:
        visit.go("#/users")
        visit.see("headrace grant add vera manage '*'")
        expect(visit.page.get_by_role("button", name="Add a user")).to_have_count(0)
        visit.shot("users-of-a-viewer")
        assert visit.findings() == []
        visit.page.get_by_role("tab", name="Tokens").click()
        visit.see("desk")
        visit.page.get_by_role("tab", name="Audit log").click()
        visit.see("headrace grant add vera audit '*'")
        assert visit.complaints == []
