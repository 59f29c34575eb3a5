"""The three summaries of a run that the plugin for hyperparameters reads."""

from __future__ import annotations

import logging
from typing import Any

from google.protobuf import struct_pb2
from tensorboard.plugins.hparams import api_pb2 as api
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams import plugin_data_pb2 as data

from pullback import Tensor
from pullback.utils.tensorboard._convert_np import make_np
from pullback.utils.tensorboard._parts import one

logger = logging.getLogger(__name__)
KINDS: list[tuple[Any, str, str]] = [
    ((int, float), "number_value", "DATA_TYPE_FLOAT64"),
    (str, "string_value", "DATA_TYPE_STRING"),
]
"""How a value is stored, and what it is called; True and False are numbers."""


def hparams(hparam_dict: Any = None, metric_dict: Any = None, hparam_domain_discrete: Any = None) -> Any:
    """The summaries of an experiment, of a session's start with its hyperparameters, and of its end.

    Args:
        hparam_dict: the hyperparameters by name.
        metric_dict: the metrics by name.
        hparam_domain_discrete: all values that a hyperparameter may have, by its name.
    """
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            logger.warning("parameter: %s should be a dictionary, nothing logged.", name)
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    domains = hparam_domain_discrete or {}
    check_domains(domains, hparam_dict)
    start, infos = data.SessionStartInfo(), []
    for name, value in hparam_dict.items():
        if value is not None:
            infos.append(described(name, value, domains.get(name), start))
    experiment = api.Experiment(
        hparam_infos=infos, metric_infos=[api.MetricInfo(name=api.MetricName(tag=name)) for name in metric_dict]
    )
    end = data.SessionEndInfo(status=api.Status.Value("STATUS_SUCCESS"))
    return (
        said(metadata.EXPERIMENT_TAG, experiment=experiment),
        said(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        said(metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )


def check_domains(domains: Any, hparam_dict: dict[str, Any]) -> None:
    """Raise unless each is a list of values like that of the hyperparameter."""
    if not isinstance(domains, dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary, nothing logged.")
    for name, values in domains.items():
        alike = name in hparam_dict and isinstance(values, list)
        if not alike or not all(isinstance(value, type(hparam_dict[name])) for value in values):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]."
            )


def described(name: str, value: Any, domain: list[Any] | None, start: Any) -> Any:
    """What is known of a hyperparameter, whose value goes into the start of the session."""
    if isinstance(value, Tensor):
        value, domain = make_np(value)[0], None
        kinds = KINDS[:1]
    else:
        kinds = [kind for kind in KINDS if isinstance(value, kind[0])]
    if not kinds:
        raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
    (_, field, kind) = kinds[0]
    setattr(start.hparams[name], field, value)
    values = [struct_pb2.Value(**{field: each}) for each in domain or ()]
    listed = None if domain is None else struct_pb2.ListValue(values=values)
    return api.HParamInfo(name=name, type=api.DataType.Value(kind), domain_discrete=listed)


def said(tag: str, **content: Any) -> Any:
    """A summary for the plugin."""
    message = data.HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content)
    return one(tag, metadata.PLUGIN_NAME, message.SerializeToString())
