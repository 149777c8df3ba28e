"""The four roles as groups. Their permissions follow after every migrate (accounts/apps.py)."""

from django.db import migrations

ROLES = ("viewer", "submitter", "curator", "administrator")


def create_groups(apps, schema_editor):
    group = apps.get_model("auth", "Group")
    for name in ROLES:
        group.objects.get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial"), ("auth", "0012_alter_user_first_name_max_length")]

    operations = [migrations.RunPython(create_groups, migrations.RunPython.noop)]
