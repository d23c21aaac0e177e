"""The agent's one HTTP server: page, JSON API, /metrics and /healthz."""
