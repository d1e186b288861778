"""The laptop benchmark that sees: geometry problems in figures, with numbers that training does not see."""
