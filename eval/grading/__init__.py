"""Whether two open answers are equal. The answer side is untrusted: nothing here evaluates it as code."""
