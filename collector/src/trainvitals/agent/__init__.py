"""The agent, one a node: samples devices, follows runs, keeps the journal and answers from a snapshot."""
