"""`torch.distributed.device_mesh`: ranks in the order of a grid, with a process group for each of its lines."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import pullback as torch
from pullback import Tensor
from pullback.distributed.process_group import ProcessGroup
from pullback.distributed.world import (
    default_group,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group_or_default,
    init_process_group,
    is_initialized,
    new_group,
)

__all__ = ["DeviceMesh", "init_device_mesh"]

active: list[Any] = []
"""The meshes of the `with` blocks around, the innermost last."""


class DeviceMesh:
    """A grid of ranks. Every rank makes it, with the same arguments; `get_group` is the line this rank is in."""

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
        _rank: int | None = None,
        _groups: list[Any] | None = None,
        _root: DeviceMesh | None = None,
    ) -> None:
        if mesh is None:
            raise TypeError("Must provide either mesh or both _layout and _rank_map")
        self._device_type = device_type
        grid = mesh.detach().cpu().numpy() if isinstance(mesh, Tensor) else np.asarray(mesh)
        self._grid = grid.astype(np.int32)
        self._mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        self._root_of, self._flattened = _root, {}  # type: ignore[var-annotated]
        if _groups is None and _init_backend:
            self._join()
        self._rank = get_rank() if is_initialized() else _rank or 0
        found = np.argwhere(self._grid == self._rank)
        self._coordinate = tuple(found[0].tolist()) if len(found) else None
        if _groups is not None:
            self._groups = _groups
        elif _init_backend:
            self._groups = self._made_groups()

    def _join(self) -> None:
        """All ranks of the grid must be there, each once."""
        if not is_initialized():
            init_process_group()
        size = get_world_size()
        if self._grid.size > size:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {size}, but found {self._grid.size} ranks!"
            )
        if len(np.unique(self._grid)) != self._grid.size:
            raise AssertionError(f"DeviceMesh cannot have duplicate ranks, but found {self._grid.tolist()}")

    def _made_groups(self) -> list[Any]:
        """For each dimension the group of the line this rank is in."""
        own: list[Any] = []
        for dim in range(self._grid.ndim):
            if self._grid.size == get_world_size() and self._grid.ndim == 1 and self._in_order():
                own.append(default_group())
                continue
            lines = np.moveaxis(self._grid, dim, -1).reshape(-1, self._grid.shape[dim])
            name = f"mesh_{self._mesh_dim_names[dim] if self._mesh_dim_names else f'dim_{dim}'}"
            groups = [new_group(line.tolist(), group_desc=name) for line in lines]
            mine = [group for group, line in zip(groups, lines) if self._rank in line]
            own.append(mine[0] if mine else None)
        return own

    def _in_order(self) -> bool:
        return self._grid.reshape(-1).tolist() == list(range(self._grid.size))

    # ------------------------------------------------------------------ facts

    @property
    def device_type(self) -> str:
        """What kind of device the ranks compute on."""
        return self._device_type

    @property
    def mesh(self) -> Tensor:
        """The ranks, in a tensor."""
        return torch.from_numpy(self._grid.copy())

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of the dimensions."""
        return self._mesh_dim_names

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._grid.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """How many ranks lie along each dimension."""
        return self._grid.shape

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, or lie along a dimension."""
        return self._grid.size if mesh_dim is None else self._grid.shape[mesh_dim]

    def get_rank(self) -> int:
        """The rank of this process in the world."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where in the grid this rank is; None if it is not."""
        return self._coordinate

    def _is_current_rank_part_of_mesh(self) -> bool:
        return self._coordinate is not None

    def _dim(self, mesh_dim: int | str | None, more: tuple[str, ...] = ()) -> int:
        """The number of a dimension."""
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions",
                    "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                    *more,
                )
            return 0
        if isinstance(mesh_dim, int):
            return mesh_dim
        if self._mesh_dim_names is None or not self._mesh_dim_names:
            raise KeyError("No `mesh_dim_names` found.")
        if mesh_dim not in self._mesh_dim_names:
            raise KeyError(
                f"Mesh dimension '{mesh_dim}' does not exist.",
                f"Available mesh dimensions are: mesh_dim_names={self._mesh_dim_names}",
            )
        return self._mesh_dim_names.index(mesh_dim)

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of the ranks that lie with this one along a dimension."""
        if not hasattr(self, "_groups"):
            raise RuntimeError("DeviceMesh process groups not initialized!")
        more = (
            "If you want to get the list of all the ProcessGroups in the DeviceMesh,please use `get_all_groups()` "
            "instead.",
        )
        root = self._root()
        if isinstance(mesh_dim, str) and mesh_dim in root._flattened and mesh_dim not in (self._mesh_dim_names or ()):
            return root._flattened[mesh_dim].get_group()  # type: ignore[no-any-return]
        return self._groups[self._dim(mesh_dim, more)]  # type: ignore[no-any-return]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The rank of this process along a dimension."""
        dim = self._dim(mesh_dim)
        if self._coordinate is None:
            raise AssertionError("Current rank is not part of the mesh")
        return self._coordinate[dim]

    # ------------------------------------------------------------------ parts

    def _root(self) -> DeviceMesh:
        return self if self._root_of is None else self._root_of

    def _get_root_mesh(self) -> DeviceMesh:
        return self._root()

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._mesh_dim_names:
            return self
        root = self._root()
        if len(names) == 1 and names[0] in root._flattened and names[0] not in self._mesh_dim_names:
            return root._flattened[names[0]]  # type: ignore[no-any-return]
        for name in names:
            if name not in self._mesh_dim_names:
                known = [*self._mesh_dim_names, *root._flattened]
                raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {known}.")
        dims = [self._mesh_dim_names.index(name) for name in names]
        return self._part(dims, names)

    def _part(self, dims: list[int], names: tuple[str, ...] | None) -> DeviceMesh:
        """The grid of some dimensions that this rank is in."""
        if self._coordinate is None:
            raise RuntimeError("Current rank is not part of the mesh: it has no slice of it")
        place = tuple([slice(None) if dim in dims else at for dim, at in enumerate(self._coordinate)])
        left = sorted(dims)
        grid = np.moveaxis(self._grid[place], [left.index(dim) for dim in dims], list(range(len(dims))))
        groups = [self._groups[dim] for dim in dims]
        return DeviceMesh(self._device_type, grid, mesh_dim_names=names, _groups=groups, _root=self._root())

    def _get_all_submeshes(self, mesh_dim_name: str) -> list[DeviceMesh]:
        """The lines along a dimension, of all ranks."""
        dim = self._dim(mesh_dim_name)
        lines = np.moveaxis(self._grid, dim, -1).reshape(-1, self._grid.shape[dim])
        group = self._groups[dim]
        return [
            DeviceMesh(
                self._device_type,
                line,
                mesh_dim_names=(mesh_dim_name,),
                _groups=[group if self._rank in line else None],
                _root=self._root(),
            )
            for line in lines
        ]

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """All ranks of the grid in one line, which the whole grid knows by its name."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._mesh_dim_names)
        root = self._root()
        if name in (root._mesh_dim_names or ()) and self.ndim > 1:
            raise ValueError(
                f"{name} already exists for submesh of the {root}. The mesh_dim_names of submesh and flattened mesh "
                f"are {root._mesh_dim_names}. Please specify another valid mesh_dim_name."
            )
        if name in root._flattened:
            return root._flattened[name]  # type: ignore[no-any-return]
        if self.ndim == 1:
            return self
        dims = [root._dim(one) for one in self._mesh_dim_names]
        others = [dim for dim in range(root.ndim) if dim not in dims]
        lines = np.moveaxis(root._grid, dims, list(range(root.ndim - len(dims), root.ndim))) if others else self._grid
        lines = lines.reshape(-1, self._grid.size)
        groups = [new_group(line.tolist(), group_desc=f"mesh_{name}") for line in lines]  # all ranks make all of them
        mine = [group for group, line in zip(groups, lines) if self._rank in line]
        flat = DeviceMesh(
            self._device_type, self._grid.reshape(-1), mesh_dim_names=(name,), _groups=[mine[0]], _root=root
        )
        root._flattened[name] = flat
        return flat

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None
    ) -> DeviceMesh:
        """A mesh of groups that are there already: of one, or of one for each dimension."""
        if isinstance(group, ProcessGroup):
            ranks = get_process_group_ranks(group)
            if mesh is not None and np.asarray(mesh).tolist() != ranks:
                raise ValueError(f"Invalid mesh {mesh!s} for ProcessGroup with ranks {ranks}")
            return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _groups=[group])
        groups = list(group)
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        if mesh_dim_names is None:
            raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _groups=groups)
        if made.ndim != len(groups):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got "
                f"mesh {made._grid.tolist()} and {len(groups)} ProcessGroups"
            )
        return made

    # ------------------------------------------------------------------ as an object

    def _key(self) -> tuple[Any, ...]:
        return self._grid.tobytes(), self._grid.shape, self._device_type, self._mesh_dim_names

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._key() == other._key())

    def _strides(self) -> str:
        """How far apart the ranks along each dimension are; () where there is one."""
        steps = []
        for dim, n in enumerate(self._grid.shape):
            line = np.moveaxis(self._grid, dim, 0).reshape(n, -1)[:, 0] if self._grid.size else []
            steps.append(str(int(line[1] - line[0])) if n > 1 else "()")
        return f"({', '.join(steps)}{',' if len(steps) == 1 else ''})"

    def __repr__(self) -> str:
        if self._mesh_dim_names:
            sizes = ", ".join([f"{name}={n}" for name, n in zip(self._mesh_dim_names, self._grid.shape)])
            shape = f"({sizes})"
        else:
            shape = str(self._grid.shape)
        return f"DeviceMesh({shape}, '{self._device_type}', stride={self._strides()})"

    def __enter__(self) -> DeviceMesh:
        active.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        active.pop()

    def __reduce__(self) -> Any:
        return rebuilt, (self._device_type, self._grid.tolist(), self._mesh_dim_names)


def rebuilt(device_type: str, grid: Any, names: tuple[str, ...] | None) -> DeviceMesh:
    """A mesh that was pickled: without groups, unless its ranks are those of the world in order."""
    alone = DeviceMesh(device_type, grid, mesh_dim_names=names, _init_backend=False)
    if is_initialized() and alone.ndim == 1 and alone.size() == get_world_size() and alone._in_order():
        alone._groups = [group_or_default()]
    return alone


def current_mesh() -> DeviceMesh:
    """The mesh of the innermost `with` block."""
    if not active:
        raise RuntimeError("No device mesh is currently active!")
    return active[-1]  # type: ignore[no-any-return]


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """The first ranks of the world in a grid of this shape."""
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names "
                f"{tuple(mesh_dim_names)}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
                f"{len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    if backend_override:
        warnings.warn("backend_override: every backend here is carried by the same transports", stacklevel=2)
    count = int(np.prod(mesh_shape)) if mesh_shape else 1
    return DeviceMesh(device_type, np.arange(count).reshape(mesh_shape), mesh_dim_names=mesh_dim_names)


DeviceMesh.__module__ = "torch.distributed.device_mesh"
