"""Long reasons in one line, faults that are said once, values without surplus digits."""

from __future__ import annotations

import pytest

from verifier.wording import Faults, in_one_line, same_value, value_text

LISTING = (
    "Triton's compiler refuses softmax_kernel: CompilationError: at 5:45:\n"
    "def softmax(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n"
    "    column = tl.arange(0, BLOCK)\n"
    "    power = tl.exp2(x * LOG2E)\n"
    "                        ^\n"
)
CAUSE = 'NameError("Cannot access global variable LOG2E from within @jit\'ed function.")'
TRITON = LISTING + CAUSE


def test_a_compile_error_says_its_cause_behind_its_head() -> None:
    head = "Triton's compiler refuses softmax_kernel: CompilationError: at 5:45:"
    assert in_one_line(TRITON, 400) == f"{head} {CAUSE}"


def test_where_room_is_short_the_head_gives_way_and_not_the_cause() -> None:
    assert in_one_line(TRITON, 130) == f"Triton's compiler refuses softmax_kernel: {CAUSE}"
    assert in_one_line(TRITON, 90) == CAUSE
    assert in_one_line(TRITON, 40) == f"{CAUSE[:39]}…"


def test_an_error_without_words_of_its_own_shows_the_line_above_the_caret() -> None:
    assert in_one_line(LISTING, 400).endswith("at 5:45: power = tl.exp2(x * LOG2E)")


def test_an_error_in_a_called_function_names_the_innermost_cause() -> None:
    assert in_one_line(f"{LISTING}at 2:4:\n    y = z\n    ^\nNameError('z')", 99).endswith("('z')")


def test_of_a_traceback_the_exception_is_shown() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "kernel.py", line 3, in run\n    return f(x)\n           ^^^^\n'
        '  File "kernel.py", line 9, in f\n    raise ValueError("no")\nValueError: no\n'
    )
    assert in_one_line(text, 200) == "ValueError: no"
    assert in_one_line(f"RuntimeError: it failed in the interpreter.\n{text}", 200) == (
        "RuntimeError: it failed in the interpreter. ValueError: no"
    )


def test_of_a_compilers_output_the_line_with_the_error_is_shown() -> None:
    text = (
        "RuntimeError: Error building extension 'k': [1/2] nvcc -c k.cu\n"
        'k.cu(12): error: identifier "foo" is undefined\n'
        "ninja: build stopped: subcommand failed."
    )
    assert in_one_line(text, 200).endswith('k.cu(12): error: identifier "foo" is undefined')


@pytest.mark.parametrize(
    "text",
    [
        "CUDA error: invalid argument\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "nan at [0, 0]\nmore",
        "one line",
    ],
)
def test_a_first_line_that_says_it_stands_alone(text: str) -> None:
    assert in_one_line(text, 200) == text.splitlines()[0]


def test_nothing_is_an_empty_line() -> None:
    assert in_one_line(" \n", 10) == ""


def test_a_fault_is_remembered_by_the_gate_that_said_it_first() -> None:
    faults = Faults()
    assert faults.earlier("G1", "FAIL", "y has shape [1], not [1, 1, 1]") is None
    assert faults.earlier("G4", "FAIL", "y has shape [16], not [1, 1, 16]") == "G1"
    assert faults.earlier("G5", "FAIL", "y has shape [4], not [4]") is None


def test_two_kernels_that_do_not_compile_for_other_reasons_are_two_faults() -> None:
    faults = Faults()
    assert faults.earlier("G1", "FAIL", TRITON) is None
    assert faults.earlier("G2", "FAIL", f"{LISTING}NameError('other')") is None
    assert faults.earlier("G3", "FAIL", TRITON) == "G1"


@pytest.mark.parametrize(
    ("text", "dtype", "shown"),
    [
        ("0.7310585975646973", "float32", "0.731058598"),
        ("0.7310585786300049", "float64", "0.7310585786300049"),
        ("0.333251953125", "float16", "0.33325"),
        ("0.333984375", "bfloat16", "0.33398"),
        ("16777216.0", "float32", "16777216.0"),
        ("123456.789", "float16", "1.2346e+05"),
        ("12345.4", "float16", "12345.0"),
        ("-0.0", "float32", "-0.0"),
        ("nan", "float16", "nan"),
        ("-inf", "float32", "-inf"),
        ("1.401298464324817e-45", "float32", "1.40129846e-45"),
        ("(1+2j)", "complex64", "(1+2j)"),
        ("9007199254740993", "int64", "9007199254740993"),
        ("True", "bool", "True"),
    ],
)
def test_a_value_has_the_digits_of_its_dtype(text: str, dtype: str, shown: str) -> None:
    assert value_text(text, dtype) == shown


@pytest.mark.parametrize(
    ("expected", "got", "dtype", "same"),
    [
        ("0.7310585786300049", "0.7310585975646973", "float32", True),
        ("0.7310585786300049", "0.73105865", "float32", False),
        ("0.1", "0.0999755859375", "float16", True),
        ("0.1", "0.10009765625", "bfloat16", True),
        ("0.1", "0.1005859375", "bfloat16", False),
        ("100000.0", "inf", "float16", True),
        ("3.4e38", "inf", "float32", False),
        ("nan", "nan", "float32", True),
        ("nan", "0.0", "float32", False),
        ("-0.0", "0.0", "float32", True),
        ("(1+2j)", "(1+2j)", "complex64", True),
        ("True", "False", "bool", False),
        ("9007199254740993", "9007199254740992", "int64", False),
    ],
)
def test_a_value_is_the_expected_one_to_the_precision_of_its_dtype(
    expected: str, got: str, dtype: str, same: bool
) -> None:
    assert same_value(expected, got, dtype) is same
