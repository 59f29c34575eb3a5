"""TorchScript's names: `torch.jit`. There is no compiler: what is scripted or traced runs as the Python code it is."""

from pullback.jit.futures import Future as Future
from pullback.jit.futures import _fork as _fork
from pullback.jit.futures import _wait as _wait
from pullback.jit.futures import fork as fork
from pullback.jit.futures import wait as wait
from pullback.jit.marks import Attribute as Attribute
from pullback.jit.marks import Final as Final
from pullback.jit.marks import _copy_to_script_wrapper as _copy_to_script_wrapper
from pullback.jit.marks import _drop as _drop
from pullback.jit.marks import _overload as _overload
from pullback.jit.marks import _overload_method as _overload_method
from pullback.jit.marks import _unwrap_optional as _unwrap_optional
from pullback.jit.marks import annotate as annotate
from pullback.jit.marks import export as export
from pullback.jit.marks import ignore as ignore
from pullback.jit.marks import interface as interface
from pullback.jit.marks import is_scripting as is_scripting
from pullback.jit.marks import is_tracing as is_tracing
from pullback.jit.marks import unused as unused
from pullback.jit.optimizing import enable_onednn_fusion as enable_onednn_fusion
from pullback.jit.optimizing import export_opnames as export_opnames
from pullback.jit.optimizing import freeze as freeze
from pullback.jit.optimizing import fuser as fuser
from pullback.jit.optimizing import last_executed_optimized_graph as last_executed_optimized_graph
from pullback.jit.optimizing import onednn_fusion_enabled as onednn_fusion_enabled
from pullback.jit.optimizing import optimize_for_inference as optimize_for_inference
from pullback.jit.optimizing import optimized_execution as optimized_execution
from pullback.jit.optimizing import run_frozen_optimizations as run_frozen_optimizations
from pullback.jit.optimizing import set_fusion_strategy as set_fusion_strategy
from pullback.jit.optimizing import strict_fusion as strict_fusion
from pullback.jit.saving import jit_module_from_flatbuffer as jit_module_from_flatbuffer
from pullback.jit.saving import load as load
from pullback.jit.saving import save as save
from pullback.jit.saving import save_jit_module_to_flatbuffer as save_jit_module_to_flatbuffer
from pullback.jit.scripting import CompilationUnit as CompilationUnit
from pullback.jit.scripting import Error as Error
from pullback.jit.scripting import RecursiveScriptClass as RecursiveScriptClass
from pullback.jit.scripting import RecursiveScriptModule as RecursiveScriptModule
from pullback.jit.scripting import ScriptFunction as ScriptFunction
from pullback.jit.scripting import ScriptModule as ScriptModule
from pullback.jit.scripting import ScriptWarning as ScriptWarning
from pullback.jit.scripting import _script_if_tracing as _script_if_tracing
from pullback.jit.scripting import script as script
from pullback.jit.scripting import script_if_tracing as script_if_tracing
from pullback.jit.scripting import script_method as script_method
from pullback.jit.tracing import TopLevelTracedModule as TopLevelTracedModule
from pullback.jit.tracing import TracedModule as TracedModule
from pullback.jit.tracing import TracerWarning as TracerWarning
from pullback.jit.tracing import TracingCheckError as TracingCheckError
from pullback.jit.tracing import trace as trace
from pullback.jit.tracing import trace_module as trace_module
from pullback.jit.type_checks import isinstance as isinstance

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
