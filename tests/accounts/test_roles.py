from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User

from kernelhub.accounts.roles import Role, Scope, role_scopes, user_role
from kernelhub.accounts.services import roles_sync, user_role_set

pytestmark = pytest.mark.django_db


def test_migrations_create_one_group_for_each_role() -> None:
    assert set(Group.objects.values_list("name", flat=True)) == set(Role)


@pytest.mark.parametrize("role", list(Role))
def test_a_user_has_the_role_of_their_group(alice: User, role: Role) -> None:
    user_role_set(user=alice, role=role)
    assert user_role(alice) is role


def test_the_most_powerful_of_several_roles_counts(alice: User) -> None:
    alice.groups.add(*Group.objects.filter(name__in=[Role.VIEWER, Role.CURATOR]))
    assert user_role(alice) is Role.CURATOR


def test_nobody_and_the_group_less_have_no_role(db: None) -> None:
    assert user_role(AnonymousUser()) is None
    assert user_role(User.objects.create_user("eve")) is None


def test_a_disabled_account_has_no_role(alice: User) -> None:
    alice.is_active = False
    assert user_role(alice) is None


def test_a_superuser_is_an_administrator() -> None:
    assert user_role(User.objects.create_superuser("root")) is Role.ADMINISTRATOR


def test_no_role_gives_a_person_the_scope_of_nodes() -> None:
    assert all(Scope.NODE not in role_scopes(role) for role in Role)


def test_a_viewer_may_not_write_runs() -> None:
    assert Scope.RUNS_WRITE not in role_scopes(Role.VIEWER)
    assert Scope.RUNS_WRITE in role_scopes(Role.SUBMITTER)


def test_only_curators_and_administrators_enter_the_admin(alice: User) -> None:
    staff = set()
    for role in Role:
        user_role_set(user=alice, role=role)
        if alice.is_staff:
            staff.add(role)
    assert staff == {Role.CURATOR, Role.ADMINISTRATOR}


def test_curators_may_change_tasks_but_neither_runs_nor_people() -> None:
    permissions = Group.objects.get(name=Role.CURATOR).permissions
    names = set(permissions.values_list("codename", flat=True))
    assert "change_task" in names
    assert "view_run" in names
    assert not names & {"change_run", "delete_run", "add_user", "change_user", "delete_task"}


def test_a_repeated_sync_changes_nothing() -> None:
    before = set(Group.objects.values_list("name", "permissions__codename"))
    roles_sync()
    assert set(Group.objects.values_list("name", "permissions__codename")) == before
