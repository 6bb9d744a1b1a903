"""The constructed transformers of section 3, measured against Lloyd and against the bounds."""
