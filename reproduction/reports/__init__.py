"""From rows of results to pages: tables and figures, next to the numbers that the paper prints."""
