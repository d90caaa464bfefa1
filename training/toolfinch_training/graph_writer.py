"""Collects the nodes and constants of an ONNX graph under construction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

MICROSOFT = "com.microsoft"
OPSET = 17
MICROSOFT_OPSET = 1
IR_VERSION = 8

Attribute = int | float | Sequence[int]


class GraphWriter:
    """Nodes and constants, each known by the name of its (single) value."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: NDArray[np.generic] | np.generic) -> str:
        """Add a constant, or reuse the one of the same name."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def node(
        self,
        kind: str,
        inputs: Sequence[str],
        output: str,
        domain: str = "",
        **attributes: Attribute,
    ) -> str:
        """Add a node with one output and return that output's name."""
        self._nodes.append(
            helper.make_node(kind, inputs, [output], output, None, domain, None, **attributes)
        )
        return output

    def finish(
        self,
        name: str,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
    ) -> onnx.ModelProto:
        """The checked model."""
        graph = helper.make_graph(
            self._nodes, name, inputs, outputs, list(self._constants.values())
        )
        model = helper.make_model(
            graph,
            producer_name="toolfinch",
            ir_version=IR_VERSION,
            opset_imports=[
                helper.make_opsetid("", OPSET),
                helper.make_opsetid(MICROSOFT, MICROSOFT_OPSET),
            ],
        )
        onnx.checker.check_model(model)
        return model
