"""What compose/ needs beside the agent: .env checked, its targets, Grafana's password, a health check."""
