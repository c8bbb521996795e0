"""Base of objects of settings that scikit-learn can clone and search over."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from .errors import InvalidParameter

T = TypeVar("T", bound="Parameters")


class Parameters:
    """Base of frozen dataclasses whose fields scikit-learn can read, clone and search over: ``strategy__solver``."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the fields by name.

        Parameters
        ----------
        deep : bool, default=True
            Has no effect: no field has parameters of its own.

        Returns
        -------
        dict
        """
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}

    def set_params(self: T, **params: Any) -> T:
        """Set fields in place, for scikit-learn, which sets those of a clone; use ``dataclasses.replace`` otherwise.

        Parameters
        ----------
        **params
            Fields by name.

        Returns
        -------
        self : object
        """
        unknown = [name for name in params if name not in self.get_params()]
        if unknown:
            names = ", ".join(self.get_params())
            raise InvalidParameter(unknown[0], f"be a parameter of {type(self).__name__}: one of {names}")
        checked = replace(cast(Any, self), **params)
        vars(self).update(vars(checked))
        return self
