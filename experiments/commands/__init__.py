"""The commands of `fastrl`, one module each: `add_arguments(parser)`, `execute(arguments) -> exit code`."""
