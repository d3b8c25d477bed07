# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""PyTorch's own functions on the CPU, for tensors of a device whose kernels PyTorch's wheel has only as
machine code. Memory, copies and views are the device's, and so are kernels that others launch on the
tensors, such as Triton's. For tests of those: it is slow, and random numbers are those of the CPU.

    torch_on_host.start()   # in this thread, from now on
"""
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

EMPTY = {'aten::empty', 'aten::empty_strided', 'aten::empty_like', 'aten::new_empty', 'aten::new_empty_strided', 'aten::resize_', 'aten::set_', 'aten::record_stream', 'aten::is_pinned',
         'aten::pin_memory', 'aten::_pin_memory'}


def is_there(value):
    return isinstance(value, torch.Tensor) and value.device.type == 'cuda'


def all_bytes(tensor):
    """All of the tensor's storage, as a tensor of bytes: a copy of it needs no kernel."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def views_only(func):
    """Whether the results share the memory of an argument, which is not written."""
    returns = func._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


class OnHost(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        wanted = torch.device(kwargs['device']) if kwargs.get('device') is not None else None
        there = []
        tree_map(lambda value: there.append(value) if is_there(value) else None, (args, kwargs))
        name = func._schema.name
        if name in EMPTY or views_only(func) or not (there or (wanted and wanted.type == 'cuda')):
            return func(*args, **kwargs)
        images = {}  # of a storage: its bytes on the host

        def host(value):
            if isinstance(value, torch.device):
                return torch.device('cpu')
            if isinstance(value, torch.Generator) or not is_there(value):
                return None if isinstance(value, torch.Generator) else value
            key = value.untyped_storage()._cdata
            if key not in images:
                images[key] = all_bytes(value).cpu()
            return torch.empty(0, dtype=value.dtype).set_(images[key].untyped_storage(), value.storage_offset(), value.size(), value.stride())

        result = func(*tree_map(host, args), **{key: host(value) if key != 'pin_memory' else False for key, value in kwargs.items()})
        written = None
        for i, argument in enumerate(func._schema.arguments):
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                if is_there(tensor):
                    all_bytes(tensor).copy_(images[tensor.untyped_storage()._cdata])
                    written = value
        if written is not None and len(func._schema.returns) == 1:
            return written
        device = wanted or there[0].device
        return tree_map(lambda value: value.to(device) if isinstance(value, torch.Tensor) else value, result)


def start():
    OnHost().__enter__()
