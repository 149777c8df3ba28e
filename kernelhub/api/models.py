"""What the API remembers beside core's rows."""

from __future__ import annotations

from django.db import models

from kernelhub.core.models import Run


class Submission(models.Model):
    """The digest of the request body behind a run that was submitted with an Idempotency-Key.

    The run itself carries the key. A repeated key whose body has another digest is an error of
    the caller, whatever field differs.
    """

    run = models.OneToOneField(Run, primary_key=True, on_delete=models.CASCADE)
    body_sha256 = models.CharField(max_length=64)

    def __str__(self) -> str:
        return str(self.run_id)
