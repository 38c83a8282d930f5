"""Documents: a page for each call, and pages that clients hand in."""
