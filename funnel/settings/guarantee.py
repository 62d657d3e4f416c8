"""What is promised about every record, how sure of the frequencies, and by which mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictFloat,
    StrictStr,
    field_validator,
    model_serializer,
    model_validator,
)

from funnel.errors import SpecError
from funnel.settings.fields import Line, Positive, Section
from funnel.wording import did_you_mean, listed, nearest

if TYPE_CHECKING:
    from funnel.guarantees import Guarantee

# Between guarantees that hold together.
_TOGETHER = " & "
# Beyond this e^ε exceeds 10^43: no count of people could ever show such a factor.
MAX_EPSILON = 100.0
# Below this a level has no digit on the grid of twelve decimals that it is published on.
MIN_EPSILON = 1e-9


class GuaranteeSettings(Section):
    """``[guarantee]``, ``guarantee = "lip:1.0"``, or a list of such texts, all of which hold about every record.

    Besides its kind a guarantee has what its dataclass has: the number ``epsilon`` for most, ``lower`` and ``upper``
    where losses and gains of belief are bounded apart (``inf`` for no bound), the word ``set`` for robust ones, and so
    on. They become settings of the same names here, all of them, in their order, those left out with their default.

    Attributes
    ----------
    kind : str
        Name of a guarantee.
    parts : tuple of str
        The guarantees that hold together, as texts; none where there is one alone.
    """

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)
    __pydantic_extra__: dict[str, StrictFloat | StrictStr]

    kind: Line
    parts: tuple[Line, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: object) -> object:
        from funnel.guarantees import guarantee_of, parse_guarantee, parts_of, words_in

        try:
            if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
                value = _TOGETHER.join(value)
            if isinstance(value, str):
                for text in value.split("&"):
                    cls._known(text.partition(":")[0])
                guarantee = parse_guarantee(value)
            elif isinstance(value, Mapping) and isinstance(value.get("kind"), str):
                kind = cls._known(value["kind"])
                settings = {str(name): setting for name, setting in value.items() if name != "kind"}
                words = words_in(kind)
                for name, setting in settings.items():
                    if name in words:
                        if not isinstance(setting, str):
                            raise ValueError(f"{name} must be a word in quotes")
                    elif isinstance(setting, bool) or not isinstance(setting, (int, float)):
                        raise ValueError(f"{name} must be a number")
                guarantee = guarantee_of(kind, settings)
            else:
                if isinstance(value, Mapping) and "kind" not in value:
                    for name in value:
                        if nearest(str(name), ("kind",)):
                            raise ValueError(f"{name}: unknown setting; did you mean kind?")
                # No text, no table, or one without a kind: the model says so.
                return value
        except SpecError as error:
            raise ValueError(str(error)) from error
        parts = parts_of(guarantee)
        for part in parts:
            _within_reason(part)
        if len(parts) > 1:
            return {"kind": guarantee.name, "parts": tuple(map(str, parts))}
        return {"kind": guarantee.name, **guarantee.settings}

    @field_validator("kind")
    @classmethod
    def _known(cls, value: str) -> str:
        from funnel.guarantees import names

        kind, known = value.strip().lower(), names()
        if kind not in known:
            hint = did_you_mean(kind, known) or "; known are " + listed(known)
            raise ValueError(f"kind {value!r} is not a guarantee{hint}")
        return kind

    @model_serializer(mode="wrap")
    def _written(self, written: SerializerFunctionWrapHandler) -> Any:
        """As a spec has it: a table, or a list of texts."""
        return list(self.parts) or {key: value for key, value in written(self).items() if key != "parts"}

    @property
    def canonical(self) -> str:
        """The one way to write this guarantee as text, such as ``"lip:1.0"``."""
        from funnel.guarantees import guarantee_of

        return _TOGETHER.join(self.parts) or str(guarantee_of(self.kind, self.__pydantic_extra__))


def _within_reason(guarantee: Guarantee) -> None:
    """Refuse a budget that protects nobody, one too small to be told, and zero where a guarantee says that better."""
    from funnel.guarantees.budgets import OneBudget

    budget = guarantee.budget
    if budget == 0 and isinstance(guarantee, OneBudget):
        raise ValueError(
            "epsilon must be above zero: 0 asks that a record tell nothing at all about the secret, which is "
            'guarantee = "perfect"'
        )
    for name, number in guarantee.settings.items():
        if name in ("epsilon", "lower", "upper", "bound") and not isinstance(number, str) and 0 < number < MIN_EPSILON:
            raise ValueError(f"{name} of {number:g} nats cannot be told from none; give at least {MIN_EPSILON:g}")
    if budget > MAX_EPSILON:
        name = next((name for name, number in guarantee.settings.items() if number == budget), "a budget")
        raise ValueError(f"{name} of {budget:g} nats is no protection at all; give at most {MAX_EPSILON:g}")


class MechanismSettings(Section):
    """``[mechanism]``, or ``mechanism = "optimal"``: how the protocol is made.

    Attributes
    ----------
    name : str
        A registered mechanism, or "auto" for the most useful one that meets the guarantee.
    reads_secret : bool
        Whether the protocol may look at the secret of a record as well as at the columns to publish.
    time_limit : float
        Seconds that one optimisation may take.
    weights : "root", "share" or "uniform"
        For invariant, which records to leave unchanged first: values count by the root of their share of the records,
        by their share, so that most records are unchanged, or all alike, so that rare values are. Where whole records
        are drawn by class, ``utility = "estimation"`` means "share".
    """

    name: Line = "auto"
    reads_secret: StrictBool = False
    time_limit: Positive = 60.0
    weights: Literal["root", "share", "uniform"] = "root"

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("name")
    @classmethod
    def _known(cls, value: str) -> str:
        from funnel.mechanisms import names

        known = ("auto", *names())
        if value not in known:
            hint = did_you_mean(value, known) or "; known are " + listed(known)
            raise ValueError(f"{value!r} is not a mechanism{hint}")
        return value


class ConfidenceSettings(Section):
    """``[confidence]``: how sure to be of the frequencies estimated from the source.

    Attributes
    ----------
    alpha : float
        Probability, between 0 and 1, that the true distribution lies outside the confidence set.
    """

    alpha: Annotated[StrictFloat, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.05
