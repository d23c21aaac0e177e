"""A stand-in for the google provider, where its plugin cannot be had: it has the published schema and nothing else.

Terraform reaches it by TF_REATTACH_PROVIDERS. It answers what `terraform validate`, and `terraform test` with
`mock_provider`, ask of a provider: its schema, and whether a configuration is right (yes: Terraform itself has held
it against the schema before it asks). In tests of AWS it repeats what the real provider said, which is slow to start.
"""
