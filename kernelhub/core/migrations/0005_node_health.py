from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0004_run_ended"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="health",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="node",
            name="health_changed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="node",
            name="health_reason",
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name="node",
            name="outages",
            field=models.PositiveSmallIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="node",
            name="retest_asked",
            field=models.BooleanField(default=False),
        ),
        migrations.RemoveConstraint(model_name="node", name="node_status"),
        migrations.AlterField(
            model_name="node",
            name="status",
            field=models.CharField(
                choices=[
                    ("online", "Online"),
                    ("draining", "Draining"),
                    ("offline", "Offline"),
                    ("sick", "Sick"),
                ],
                default="offline",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="node",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["online", "draining", "offline", "sick"])),
                name="node_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="node",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "sick"), _negated=True),
                    models.Q(("health_reason", ""), _negated=True),
                    _connector="OR",
                ),
                name="node_sick_says_why",
            ),
        ),
    ]
