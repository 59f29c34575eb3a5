"""Programs written down as graphs, changed, and made into programs again: `torch.fx`.

`symbolic_trace` runs a module with stand-ins for its arguments and writes down what it does. The result is a
`GraphModule`, with a `graph` of nodes that can be changed, and `code` made from it, which is what runs.
"""

from pullback.fx import experimental as experimental
from pullback.fx import immutable_collections as immutable_collections
from pullback.fx._symbolic_trace import PH as PH
from pullback.fx._symbolic_trace import ProxyableClassMeta as ProxyableClassMeta
from pullback.fx._symbolic_trace import Tracer as Tracer
from pullback.fx._symbolic_trace import symbolic_trace as symbolic_trace
from pullback.fx._symbolic_trace import wrap as wrap
from pullback.fx.annotate import annotate as annotate
from pullback.fx.graph import CodeGen as CodeGen
from pullback.fx.graph import Graph as Graph
from pullback.fx.graph_module import GraphModule as GraphModule
from pullback.fx.interpreter import Interpreter as Interpreter
from pullback.fx.interpreter import Transformer as Transformer
from pullback.fx.node import Node as Node
from pullback.fx.node import has_side_effect as has_side_effect
from pullback.fx.node import map_arg as map_arg
from pullback.fx.proxy import Proxy as Proxy
from pullback.fx.subgraph_rewriter import replace_pattern as replace_pattern

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
