"""Errors of the model that reads calls. The tree is drawn in errors/__init__.py."""

from aftercall.errors.root import AftercallError


class ModelError(AftercallError):
    """The model that reads calls gave nothing that can be used."""

    code = "model"
    http_status = 502


class ModelUnavailable(ModelError):
    """The model is away, overloaded, limits us or takes too long; tried again when it asks for that."""

    code = "model.unavailable"
    retryable = True
    http_status = 503

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelRefused(ModelError):
    """The model's server does not take the request: check key, account, model name and address."""

    code = "model.refused"


class ModelDeclined(ModelError):
    """The model will not answer for what was said in this call; read it with another model, or by rules."""

    code = "model.declined"


class ModelCutOff(ModelError):
    """The answer was longer than `reading.max_tokens` allows; allow more and run the step again."""

    code = "model.cut_off"


class ModelOffForm(ModelError):
    """The answer had not the form asked for, and putting it right failed too; use a more able model."""

    code = "model.off_form"
