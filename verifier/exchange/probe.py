"""Looking at a KernelBench problem: with tensors that have sizes and no values, then for real.

The problem is trusted as every reference is: it is going to be one, and whoever imports it has it
run in the referee. So it is run here, in this process, and nowhere near a kernel.
"""

from __future__ import annotations

import ast
import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from verifier.conventions.module import construct
from verifier.referee.follower import Follower

NEEDED: Final = ("Model", "get_inputs", "get_init_inputs")
HEAVY: Final = frozenset(
    "mm addmm bmm baddbmm convolution _scaled_dot_product_attention lstm gru "  # noqa: SIM905
    "_scaled_dot_product_flash_attention_for_cpu _native_multi_head_attention linear "
    "convolution_overrideable mkldnn_rnn_layer _thnn_fused_lstm_cell".split()
)
"""Operations that composers of kernels usually leave to a library."""
LIGHT: Final = frozenset(
    "view _unsafe_view t transpose permute expand reshape slice select unsqueeze squeeze clone "  # noqa: SIM905
    "detach alias copy_ _to_copy empty zeros ones full zeros_like ones_like empty_like split "
    "new_zeros as_strided lift_fresh unbind".split()
)
"""Operations that compute nothing."""


class ProblemError(ValueError):
    """The file is no problem that can be imported; the message says why."""


class Problem:
    """An executed problem file."""

    def __init__(self, tree: ast.Module, path: str = "problem.py") -> None:
        """Raises ProblemError when it does not run or lacks one of its three parts."""
        self._space: dict[str, Any] = {"__name__": "kernelbench_problem"}
        try:
            exec(compile(tree, path, "exec"), self._space)  # noqa: S102 - trusted, see above
        except Exception as error:
            raise ProblemError(f"it cannot be run: {type(error).__name__}: {error}") from error
        missing = [name for name in NEEDED if not callable(self._space.get(name))]
        if missing:
            raise ProblemError(f"it does not define {', '.join(missing)}")

    @property
    def model(self) -> Callable[..., torch.nn.Module]:
        return self._space["Model"]  # type: ignore[no-any-return]

    def init(self) -> list[Any]:
        """The constructor's arguments."""
        return _listed(self._space["get_init_inputs"](), "get_init_inputs")

    def inputs(self) -> list[Any]:
        """One draw of the forward arguments."""
        return _listed(self._space["get_inputs"](), "get_inputs")

    def names(self, count: int) -> list[str]:
        """Names for the forward arguments: those of ``forward`` where they fit."""
        try:
            taken = list(inspect.signature(self._space["Model"].forward).parameters)[1:]
        except (TypeError, ValueError, AttributeError):
            taken = []
        plain = taken[:count] if len(taken) >= count else []
        usable = len(set(plain)) == count and all(name.isidentifier() for name in plain)
        return plain if usable and "args" not in plain else [f"x{i}" for i in range(count)]


def _listed(value: Any, name: str) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    raise ProblemError(f"{name} returns a {type(value).__name__}, not a list")


@dataclass(frozen=True, slots=True)
class Shape:
    """A tensor without its values."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Origin:
    """How a tensor of ``get_inputs`` was made: the last factory and its bounds for integers."""

    factory: str
    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True)
class Sketch:
    """A problem seen without values."""

    inputs: tuple[Any, ...]
    """A Shape for each tensor, other arguments as they are."""
    origins: tuple[Origin | None, ...]
    """Of inputs that came straight from a factory."""
    outputs: tuple[Shape, ...]
    init: tuple[Any, ...]
    elements: int
    """Of the greatest tensor anywhere, parameters included."""
    flops: int
    operations: tuple[str, ...]
    """Of one forward pass, in order."""


class _Seen(Follower):
    """Notes each operation and the size of what it makes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []
        self.elements = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.names.append(func._schema.name.removeprefix("aten::"))
        sizes = [leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self.elements = max([self.elements, *sizes])
        return result


class _Origins(TorchFunctionMode):
    """Notes which factory made which tensor; casts of one keep its origin."""

    FACTORIES: Final = ("rand", "randn", "randint", "zeros", "ones", "randperm")
    CASTS: Final = ("float", "long", "int", "bool", "to", "double", "half", "contiguous")

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[int, tuple[torch.Tensor, Origin]] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if isinstance(result, torch.Tensor):
            if name in self.FACTORIES:
                self.made[id(result)] = result, _origin(name, args, kwargs)
            elif name in self.CASTS and args and id(args[0]) in self.made:
                self.made[id(result)] = result, self.made[id(args[0])][1]
        return result

    def of(self, value: Any) -> Origin | None:
        found = self.made.get(id(value))
        return found[1] if found else None


def _origin(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Origin:
    if name != "randint":
        return Origin(name)
    numbers = [arg for arg in args if isinstance(arg, int)]
    low, high = kwargs.get("low", 0), kwargs.get("high")
    if len(numbers) == 1:
        low, high = (low, numbers[0]) if high is None else (numbers[0], high)
    elif len(numbers) >= 2:
        low, high = numbers[:2]
    return Origin(name, int(low), int(high or 1))


def sketch(problem: Problem, seed: int) -> Sketch:
    """Make and call the model without values. Raises ProblemError when that does not work."""
    try:
        with ExitStack() as stack:
            stack.enter_context(_quiet())
            stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
            return _sketched(problem, seed)
    except ProblemError:
        raise
    except Exception as error:
        raise ProblemError(f"it cannot be called: {type(error).__name__}: {error}") from error


def _sketched(problem: Problem, seed: int) -> Sketch:
    init = problem.init()
    model = construct(problem.model, init, seed)
    origins = _Origins()
    with origins:
        inputs = problem.inputs()
    seen, flops = _Seen(), FlopCounterMode(display=False)
    with torch.no_grad(), flops, seen:
        returned = model(*inputs)
    outputs = _outputs(returned)
    tensors = [*_tensors(inputs), *outputs, *model.parameters(), *model.buffers()]
    return Sketch(
        inputs=tuple(_shape(value) for value in inputs),
        origins=tuple(origins.of(value) for value in inputs),
        outputs=tuple(Shape(tuple(out.shape), out.dtype) for out in outputs),
        init=tuple(init),
        elements=max([seen.elements, *(tensor.numel() for tensor in tensors)]),
        flops=int(flops.get_total_flops()),
        operations=tuple(seen.names),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Sizes that do not fit are tried on purpose: what torch has to say about each is not for our
    users."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.disabled = before


def _tensors(values: Sequence[Any]) -> list[torch.Tensor]:
    return [value for value in values if isinstance(value, torch.Tensor)]


def _shape(value: Any) -> Any:
    return Shape(tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else value


def _outputs(returned: Any) -> list[torch.Tensor]:
    values = list(returned) if isinstance(returned, tuple | list) else [returned]
    if not values or not all(isinstance(value, torch.Tensor) for value in values):
        kinds = ", ".join(type(value).__name__ for value in values) or "nothing"
        raise ProblemError(f"its forward returns {kinds}; tensors are wanted")
    return values


@dataclass(frozen=True, slots=True)
class Trial:
    """A problem really run, twice with one set of inputs: are its answers the same?"""

    inputs: tuple[Any, ...]
    random: bool


def trial(problem: Problem, seed: int) -> Trial:
    """Draw inputs and call the model for real, at sizes that are small by now."""
    with _quiet(), torch.random.fork_rng(devices=[]), torch.no_grad():
        model = construct(problem.model, problem.init(), seed)
        torch.manual_seed(seed)
        inputs = problem.inputs()
        kept = {name: value.clone() for name, value in model.state_dict().items()}
        answers = []
        for draw in (1, 2):
            torch.manual_seed(seed + draw)
            model.load_state_dict(kept)
            answers.append(_outputs(model(*inputs)))
    pairs = zip(*answers, strict=True)
    differ = any(not torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs)
    return Trial(tuple(inputs), differ)
