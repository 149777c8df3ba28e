"""What a CHECK constraint cannot say: rows that never change, and a speedup that needs a verdict.

An illegal write raises an integrity error, so Django reports it as it reports a broken constraint.
"""

from __future__ import annotations

from django.db import migrations

REFUSE = """
CREATE FUNCTION core_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is immutable: %', TG_TABLE_NAME, TG_ARGV[0]
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
"""

SPEEDUP = """
CREATE FUNCTION core_speedup_needs_accepted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT outcome FROM core_verdict WHERE id = NEW.verdict_id) IS DISTINCT FROM 'accepted' THEN
        RAISE EXCEPTION 'a speedup exists only under an accepted verdict'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER core_measurement_speedup BEFORE INSERT ON core_measurement
    FOR EACH ROW WHEN (NEW.speedup IS NOT NULL) EXECUTE FUNCTION core_speedup_needs_accepted();
"""

# Table: its columns that never change ('*' for all), and what to do instead.
FROZEN = {
    "core_task": (
        ("suite_id", "slug", "revision", "contract", "contract_text", "reference", "digest"),
        "store a new revision",
    ),
    "core_kernel": (("task_id", "source", "sha256", "entry"), "register another kernel"),
    "core_event": (("*",), "append another event"),
    "core_verdict": (("*",), "launch another run"),
    "core_gateresult": (("*",), "launch another run"),
    "core_measurement": (("*",), "launch another run"),
}


def _freeze(table: str, columns: tuple[str, ...], advice: str) -> str:
    old, new = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
    return f"""
    CREATE TRIGGER {table}_frozen BEFORE UPDATE ON {table} FOR EACH ROW
        WHEN (({old}) IS DISTINCT FROM ({new})) EXECUTE FUNCTION core_refuse_change('{advice}');
    """


def _thaw(table: str) -> str:
    return f"DROP TRIGGER {table}_frozen ON {table};"


class Migration(migrations.Migration):
    dependencies = [("core", "0001_initial")]

    operations = [
        migrations.RunSQL(REFUSE, "DROP FUNCTION core_refuse_change();"),
        *[
            migrations.RunSQL(_freeze(table, columns, advice), _thaw(table))
            for table, (columns, advice) in FROZEN.items()
        ],
        migrations.RunSQL(
            SPEEDUP,
            "DROP TRIGGER core_measurement_speedup ON core_measurement;"
            "DROP FUNCTION core_speedup_needs_accepted();",
        ),
    ]
