#!/usr/bin/env python
"""Django's command line."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelhub.settings.local")
    from django.core.management import execute_from_command_line

    from kernelhub import celery  # noqa: F401 - the application that sends messages

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
