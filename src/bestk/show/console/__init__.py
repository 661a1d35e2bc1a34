"""What the command ``bestk`` writes: tables for people, or JSON documents."""

from bestk.show.console.as_typed import as_typed, of_table_as_typed
from bestk.show.console.documents import (
    cv_document,
    data_document,
    discovery_document,
    doctor_document,
    list_document,
    model_document,
    path_document,
    write_json,
)
from bestk.show.console.lists import show_list, show_list_verification
from bestk.show.console.machine import show_check, show_machine
from bestk.show.console.models import (
    show_data,
    show_discovery,
    show_history,
    show_model,
    show_path,
    show_structure,
    show_validation,
)
from bestk.show.console.words import escape, stdout

__all__ = [
    "as_typed",
    "cv_document",
    "data_document",
    "discovery_document",
    "doctor_document",
    "escape",
    "list_document",
    "model_document",
    "of_table_as_typed",
    "path_document",
    "show_check",
    "show_data",
    "show_discovery",
    "show_history",
    "show_list",
    "show_list_verification",
    "show_machine",
    "show_model",
    "show_path",
    "show_structure",
    "show_validation",
    "stdout",
    "write_json",
]
