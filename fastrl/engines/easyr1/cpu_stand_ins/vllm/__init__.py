"""Lets EasyR1 be imported on a machine without vLLM, for its CPU worker. Nothing here works."""

__version__ = "0.0.0"


class _Absent:
    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("vLLM is not installed: engine=easyr1 needs it; engine=easyr1_cpu does without")


class LLM(_Absent): ...


class RequestOutput(_Absent): ...


class SamplingParams(_Absent): ...
