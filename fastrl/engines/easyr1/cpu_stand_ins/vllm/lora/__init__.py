"""What EasyR1 imports of vLLM's LoRA modules, by their names there."""

import sys
from types import ModuleType


def _stand_in(name: str, **contents: object) -> None:
    module = ModuleType(f"{__name__}.{name}")
    module.__dict__.update(contents)
    sys.modules[module.__name__] = module


def get_adapter_absolute_path(path: str) -> str:
    return path


class LoRAModel: ...


class LoRARequest: ...


class LRUCacheWorkerLoRAManager: ...


_stand_in("models", LoRAModel=LoRAModel)
_stand_in("request", LoRARequest=LoRARequest)
_stand_in("worker_manager", LRUCacheWorkerLoRAManager=LRUCacheWorkerLoRAManager)
_stand_in("utils", get_adapter_absolute_path=get_adapter_absolute_path)
