"""The laptop benchmark: synthetic geometry word problems with numbers that training does not see."""
