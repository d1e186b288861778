"""What is raised for policies and prompts that cannot be used."""


class PolicyError(RuntimeError):
    """A policy folder that cannot be used, or a prompt that does not fit the policy."""
