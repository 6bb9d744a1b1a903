"""What a person sees of a clustering: a summary in words and numbers, and a page."""
