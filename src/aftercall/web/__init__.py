"""HTTP: webhooks, API, pages. The only home of FastAPI."""
