def fetch_video(*_: object, **__: object) -> None:
    raise RuntimeError("qwen_vl_utils is not installed: videos need it")
