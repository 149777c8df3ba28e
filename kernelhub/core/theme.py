"""The admin's base classes, themed. Nothing else names the theme, which ships no types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.contrib import admin

    ModelAdmin = admin.ModelAdmin[Any]
    TabularInline = admin.TabularInline[Any, Any]
else:
    from unfold.admin import ModelAdmin, TabularInline

__all__ = ["ModelAdmin", "TabularInline"]
